//! a real database behind adaptive filters -> the answers of a hash map, through failures, aborts and new starts.

use std::cell::Cell;
use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;

use redb::Error;
use tamis::Digest;
use tamis::adaptive::{AdaptError, Broom, Dictionary, Guarded, LargeBroom, Remove, ReverseMap};

use super::mix;
use store::Store;

#[path = "../../examples/guarded_database/store.rs"]
mod store;

/// A store that fails when it is asked for the n-th time.
struct Failing {
    store: Store,
    left: Rc<Cell<u32>>,
}

impl Failing {
    fn ask(&mut self) -> Result<&mut Store, Error> {
        match self.left.get() {
            0 => Err(Error::Corrupted("the disk is gone".into())),
            left => {
                self.left.set(left - 1);
                Ok(&mut self.store)
            }
        }
    }
}

impl ReverseMap for Failing {
    type Error = Error;

    fn file(&mut self, key: Digest, name: u64) -> Result<(), Error> {
        self.ask()?.file(key, name)
    }

    fn unfile(&mut self, key: Digest, name: u64) -> Result<bool, Error> {
        self.ask()?.unfile(key, name)
    }

    fn refile(&mut self, key: Digest, from: u64, to: u64) -> Result<bool, Error> {
        self.ask()?.refile(key, from, to)
    }

    fn filed(&mut self, name: u64, found: &mut Vec<Digest>) -> Result<(), Error> {
        self.ask()?.filed(name, found)
    }

    fn next(&mut self, after: Option<Digest>) -> Result<Option<Digest>, Error> {
        self.ask()?.next(after)
    }
}

impl Dictionary<str> for Failing {
    type Value = u64;

    fn get(&mut self, key: &str) -> Result<Option<u64>, Error> {
        self.ask()?.get(key)
    }

    fn insert(&mut self, key: &str, value: u64) -> Result<Option<u64>, Error> {
        self.ask()?.insert(key, value)
    }

    fn remove(&mut self, key: &str) -> Result<Option<u64>, Error> {
        self.ask()?.remove(key)
    }
}

/// One transaction after the other, each of which is committed, aborted, or fails half-way; now and then the process ends between two.
fn through_transactions<F: Remove>(file: &Path, filter: F, keys: u64) {
    let left = Rc::new(Cell::new(u32::MAX));
    let open = |filter: &F| Failing { store: Store::open(file, filter.hasher().clone()).unwrap(), left: left.clone() };
    let store = open(&filter);
    let mut guarded = Guarded::new(filter, store);
    let (mut committed, mut state) = (HashMap::new(), 1);
    let mut random = |below: u64| {
        state = mix(state + 1);
        state % below
    };
    let (mut failures, mut repairs) = (0, 0);
    for transaction in 0..120u64 {
        let mut map: HashMap<String, u64> = committed.clone();
        // The first one is committed, so that there is a filter to go back to.
        left.set(if transaction > 0 && random(3) == 0 { random(100) as u32 } else { u32::MAX });
        let mut work = || -> Result<(), AdaptError<Error>> {
            for _ in 0..100 {
                let key = format!("key {}", random(keys + keys / 4));
                match random(8) {
                    0..3 => assert_eq!(guarded.insert(key.as_str(), transaction)?, map.insert(key, transaction)),
                    3 => assert_eq!(guarded.remove(key.as_str())?, map.remove(&key)),
                    4..6 => assert_eq!(guarded.get(key.as_str())?, map.get(&key).copied()),
                    _ => assert_eq!(guarded.get(format!("stranger {}", random(1 << 20)).as_str())?, None),
                }
            }
            Ok(())
        };
        let done = work();
        repairs += guarded.counts().false_positives;
        let (mut filter, Failing { mut store, .. }) = guarded.into_parts();
        match done {
            Ok(()) if transaction == 0 || random(4) != 0 => {
                store.commit(&filter.snapshot().unwrap()).unwrap();
                committed = map;
            }
            done => {
                failures += u64::from(done.is_err());
                filter = F::restore(store.abort().unwrap().unwrap()).unwrap();
            }
        }
        let store = match random(8) {
            0 => {
                // What is not committed is gone with the process; both are taken up again.
                drop(store);
                filter = F::restore(Store::snapshot(file).unwrap().unwrap()).unwrap();
                open(&filter)
            }
            _ => Failing { store, left: left.clone() },
        };
        guarded = Guarded::new(filter, store);
        left.set(u32::MAX);
        assert_eq!(guarded.filter().len(), committed.len() as u64);
        for key in (0..keys + keys / 4).map(|key| format!("key {key}")) {
            let value = committed.get(&key).copied();
            // The filter knows every key of the database; what else it lets through is found out and repaired.
            assert!(value.is_none() || guarded.filter().contains(key.as_str()).unwrap());
            assert_eq!(guarded.get(key.as_str()).unwrap(), value);
        }
        let (filter, Failing { mut store, .. }) = guarded.into_parts();
        store.commit(&filter.snapshot().unwrap()).unwrap();
        guarded = Guarded::new(filter, Failing { store, left: left.clone() });
    }
    assert!(failures > 10 && repairs > 0, "{failures} failures, {repairs} repairs");
}

#[test]
fn a_broom_filter_and_its_database_stay_together() {
    let folder = tempfile::tempdir().unwrap();
    let filter = Broom::with_capacity(300).fpr(1.0 / 64.0).secret([1, 2]).build::<str>().unwrap();
    through_transactions(&folder.path().join("broom.redb"), filter, 240);
}

#[test]
fn a_broom_filter_of_large_remainders_and_its_database_stay_together() {
    let folder = tempfile::tempdir().unwrap();
    // The highest rate that it has, so that there is something to repair.
    let filter = LargeBroom::with_capacity(300).fpr(0.5).secret([1, 2]).build::<str>().unwrap();
    through_transactions(&folder.path().join("large.redb"), filter, 240);
}
