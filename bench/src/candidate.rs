//! a way to build a filter -> something the experiments can time.
//!
//! A candidate is data: a name and a closure that builds. What it builds answers whole slices, so that the loop over
//! keys is compiled together with the structure's own code and the indirect call is paid once per slice, not per key.
//!
//! ```text
//!   Candidate::new("name", |keys, threads| Ok(Built::new(filter, |f, key| f.contains(key))))
//!       .threads()            the closure honours `threads`
//!       .at_load(0.95)        the structure has a power of two of places: build it on fewer keys, as full as it gets
//! ```

use std::error::Error;
use std::rc::Rc;

/// What building gives.
pub type Outcome = Result<Built, Box<dyn Error>>;

/// Builds with a number of threads.
type Ready<'a> = Box<dyn Fn(usize) -> Outcome + 'a>;

/// Does what is not timed; the result builds.
type Prepare = Box<dyn for<'a> Fn(&'a [u64]) -> Ready<'a>>;

/// A structure that takes part.
pub struct Candidate {
    /// The row's name.
    pub name: String,
    /// Whether builds can use several threads.
    pub threads: bool,
    /// The share of a power of two at which the structure is full.
    load: Option<f64>,
    prepare: Prepare,
}

impl Candidate {
    fn of(name: impl Into<String>, prepare: impl for<'a> Fn(&'a [u64]) -> Ready<'a> + 'static) -> Candidate {
        Candidate { name: name.into(), threads: false, load: None, prepare: Box::new(prepare) }
    }

    /// A candidate whose `build` is given distinct keys and a number of threads.
    pub fn new(name: impl Into<String>, build: impl Fn(&[u64], usize) -> Outcome + 'static) -> Candidate {
        let build = Rc::new(build);
        Candidate::of(name, move |keys| {
            let build = Rc::clone(&build);
            Box::new(move |threads| build(keys, threads))
        })
    }

    /// A candidate that starts from something made of the keys beforehand, digests for instance; making it is not timed.
    pub fn prepared<P: 'static>(
        name: impl Into<String>,
        prepare: impl Fn(&[u64]) -> P + 'static,
        build: impl Fn(&P, usize) -> Outcome + Clone + 'static,
    ) -> Candidate {
        Candidate::of(name, move |keys| {
            let (prepared, build) = (prepare(keys), build.clone());
            Box::new(move |threads| build(&prepared, threads))
        })
    }

    /// Builds of this candidate use the number of threads they are given.
    pub fn threads(mut self) -> Candidate {
        self.threads = true;
        self
    }

    /// Gives this candidate only so many keys that a power of two of places is full to `load`.
    pub fn at_load(mut self, load: f64) -> Candidate {
        self.load = Some(load);
        self
    }

    /// How many of `n` keys this candidate is built on: all, or as many as fill a power of two.
    pub fn keys_of(&self, n: usize) -> usize {
        let Some(load) = self.load else { return n };
        (0..usize::BITS - 1).rev().map(|bits| ((1usize << bits) as f64 * load) as usize).find(|&m| m <= n).unwrap_or(n)
    }

    /// Does what is not timed; the result builds with a number of threads.
    pub fn ready<'a>(&self, keys: &'a [u64]) -> Ready<'a> {
        (self.prepare)(keys)
    }
}

type Count = Box<dyn Fn(&[u64]) -> usize>;
type Batch = Box<dyn Fn(&[u64], &mut [bool])>;

/// A filter that was built.
pub struct Built {
    /// Exact size, if the structure can tell: the length of its file. Without it, the memory the build left in use.
    pub bytes: Option<usize>,
    /// How many keys the structure refused to take.
    pub refused: usize,
    count: Count,
    batch: Option<Batch>,
}

impl Built {
    /// A filter and how to ask it for one key.
    pub fn new<F: 'static>(filter: F, contains: impl Fn(&F, u64) -> bool + 'static) -> Built {
        let count = move |keys: &[u64]| keys.iter().filter(|&&key| contains(&filter, key)).count();
        Built { bytes: None, refused: 0, count: Box::new(count), batch: None }
    }

    /// A filter that can also be asked for many keys in one call.
    pub fn with_batch<F: 'static>(
        filter: F,
        contains: impl Fn(&F, u64) -> bool + 'static,
        batch: impl Fn(&F, &[u64], &mut [bool]) + 'static,
    ) -> Built {
        let filter = Rc::new(filter);
        let shared = Rc::clone(&filter);
        let count = move |keys: &[u64]| {
            let filter: &F = &filter;
            keys.iter().filter(|&&key| contains(filter, key)).count()
        };
        let batch: Batch = Box::new(move |keys, out| batch(&shared, keys, out));
        Built { bytes: None, refused: 0, count: Box::new(count), batch: Some(batch) }
    }

    /// An empty filter that is given the keys one by one; `insert` says whether it takes a key.
    pub fn inserted<F: 'static>(
        mut filter: F,
        keys: &[u64],
        mut insert: impl FnMut(&mut F, u64) -> bool,
        contains: impl Fn(&F, u64) -> bool + 'static,
    ) -> Built {
        let refused = keys.iter().filter(|&&key| !insert(&mut filter, key)).count();
        Built { refused, ..Built::new(filter, contains) }
    }

    /// The same filter, which can tell its size.
    pub fn of_bytes(self, bytes: usize) -> Built {
        Built { bytes: Some(bytes), ..self }
    }

    /// How many of `keys` the filter says yes to, one call per key.
    pub fn count(&self, keys: &[u64]) -> usize {
        (self.count)(keys)
    }

    /// Whether there is a call for many keys.
    pub fn has_batch(&self) -> bool {
        self.batch.is_some()
    }

    /// Asks for many keys in one call; does nothing where there is no such call. `out` is as long as `keys`.
    pub fn batch(&self, keys: &[u64], out: &mut [bool]) {
        if let Some(batch) = &self.batch {
            batch(keys, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_structure_gets_as_many_keys_as_fit() {
        let plain = Candidate::new("", |_, _| Err("".into()));
        assert_eq!([0, 1, 1000].map(|n| plain.keys_of(n)), [0, 1, 1000]);
        let full = plain.at_load(0.75);
        assert_eq!([768, 1000, 1535, 1536].map(|n| full.keys_of(n)), [768, 768, 768, 1536]);
        assert_eq!([0, 1, 2, 3].map(|n| full.keys_of(n)), [0, 1, 1, 3]);
    }

    #[test]
    fn loop_and_batch_ask_the_same_filter() {
        let built = Built::with_batch(
            3u64,
            |&d, key| key.is_multiple_of(d),
            |&d, keys, out| {
                for (out, key) in out.iter_mut().zip(keys) {
                    *out = key.is_multiple_of(d);
                }
            },
        );
        let mut out = [false; 4];
        built.batch(&[3, 4, 5, 6], &mut out);
        assert_eq!((built.count(&[3, 4, 5, 6]), out), (2, [true, false, false, true]));
    }
}
