//! a type and a few of its numbers -> `Debug`: short, and without bytes, digests, salts or secrets.
//!
//! Derived `Debug` prints tables, and with a keyed hash the secret or what follows from it. Public types that hold any of these show their name, their
//! keys and their size. Types inside them may derive `Debug`: nothing public prints them. `Salt` and [`Hasher`](crate::Hasher) are opaque by themselves.

/// `brief_debug!(Name<Parameter: Bound>, it => field: value, ..)`, or `Name<'a>`.
macro_rules! brief_debug {
    ($name:ident $(<$($life:lifetime $(,)?)? $($param:ident $(: $bound:path)?),*>)?, $it:ident => $($field:ident: $value:expr),*) => {
        impl$(<$($life,)? $($param $(: $bound)?),*>)? std::fmt::Debug for $name$(<$($life,)? $($param),*>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let $it = self;
                f.debug_struct(stringify!($name))$(.field(stringify!($field), &$value))*.finish_non_exhaustive()
            }
        }
    };
}
pub(crate) use brief_debug;
