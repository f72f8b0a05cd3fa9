//! what one writes on the first day -> it compiles, does what it says, and tells what it cannot do.
//!
//! Each test names a promise; most of them are kept by the compiler.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use tamis::{Digest, Error, Hasher, Key, KeyType};

/// Calls the same method with each of the arguments, whatever their types; the compiler says which it takes.
macro_rules! each {
    ($typed:ident: $($key:expr),+ $(,)?) => {
        $( assert!($typed.contains($key), stringify!($key)); )+
        $( assert_eq!($typed.contains_many(&[$key]), [true], stringify!($key)); )+
    };
}

#[test]
fn a_typed_filter_takes_its_keys_however_they_are_held() -> Result<(), Error> {
    let filter = tamis::build(["ann", "bob"]).finish()?;
    let owned = String::from("ann");
    let (text, bytes) = (filter.typed::<str>()?, filter.typed::<[u8]>()?);
    each!(text: "ann", &"ann", owned.clone(), &owned, &&owned, Cow::from("ann"), &Cow::from("ann"), Box::<str>::from("ann"));
    each!(text: Rc::<str>::from("ann"), &Arc::<str>::from("ann"), &mut owned.clone());
    each!(bytes: b"ann", &b"ann", *b"ann", &b"ann"[..], b"ann".to_vec(), &b"ann".to_vec(), bytes::Bytes::from("ann"));
    each!(bytes: Cow::from(&b"ann"[..]), &Cow::from(&b"ann"[..]), Box::<[u8]>::from(&b"ann"[..]), "ann", &owned);
    let queries: Vec<String> = vec![owned];
    for query in &queries {
        assert!(text.contains(query));
    }
    assert_eq!(queries.iter().filter(|query| text.contains(query)).count(), 1);

    // A number keeps the type that the filter names, also one that only this type can hold.
    let wide = tamis::build([5u64, 5_000_000_000]).finish()?.into_typed::<u64>()?;
    each!(wide: 5, &5, 5_000_000_000, &5_000_000_000, Box::new(5), Rc::new(5), &Arc::new(5), &mut 5);
    assert_eq!([5u64, 6].iter().filter(|key| wide.contains(*key)).count(), 1);
    assert_eq!([5u64, 6].iter().filter(|key| wide.contains(key)).count(), 1);
    Ok(())
}

/// Neither `Clone` nor any other trait is asked of it.
#[test]
fn a_type_of_ones_own_is_borrowed_too() -> Result<(), Error> {
    struct Host(&'static str);
    impl Key for Host {
        const KEY_TYPE: KeyType = KeyType::Bytes;
        fn digest(&self, hasher: &Hasher) -> Digest {
            hasher.bytes(self.0.to_ascii_lowercase().as_bytes())
        }
    }
    let hosts = tamis::build([Host("Ann")]).finish()?.into_typed::<Host>()?;
    each!(hosts: Host("aNN"), &Host("aNN"), &&Host("aNN"), Box::new(Host("aNN")), &Arc::new(Host("aNN")));
    Ok(())
}
