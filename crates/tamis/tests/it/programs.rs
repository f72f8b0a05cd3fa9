//! programs as users write them -> what the interface must allow: no cast, and no `Result` that cannot fail.
//!
//! Each test is one program. They use what the first page of the documentation shows, and nothing that is hidden.

use std::io::BufRead;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::thread;

use tamis::{BuildError, Digest, Error, Filter, Hasher, Key, KeyType, Options, Progress, Typed};

/// A service that blocks hosts, and must never block a popular one.
#[test]
fn a_block_list() -> Result<(), Error> {
    let hosts = (0..5000).map(|i| format!("bad{i}.example"));
    let popular = (0..20_000).map(|i| format!("good{i}.example"));
    let filter = tamis::build(hosts).exclude(popular).fpr(0.001).finish()?;
    let blocked: Typed<str> = filter.into_typed()?;
    let threads: Vec<_> = (0..2)
        .map(|thread| {
            let blocked = blocked.clone();
            thread::spawn(move || {
                (thread..5000).step_by(2).all(|i| {
                    blocked.contains(format!("bad{i}.example")) && !blocked.contains(format!("good{i}.example"))
                })
            })
        })
        .collect();
    assert!(threads.into_iter().all(|thread| thread.join().unwrap()));
    Ok(())
}

/// An engine that has hashed its keys, and holds a filter for each of its tables.
#[test]
fn an_engine_with_its_own_hash() -> Result<(), Error> {
    let mine = |key: u32| Digest::from_hash(u64::from(key).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let policy = Options::default().hasher(Hasher::foreign(1)).fpr(0.01).threads(1);
    let tables = (0..20).map(|table| {
        let digests: Vec<Digest> = (table * 100..(table + 1) * 100).map(mine).collect();
        policy.clone().build_digests(digests, KeyType::Digest).finish()
    });
    let tables: Vec<Typed<Digest>> = tables.map(|table| Ok(table?.into_typed()?)).collect::<Result<_, Error>>()?;
    for key in 0..2000 {
        let digest = mine(key);
        assert!(tables[(key / 100) as usize].contains(digest));
    }
    // The engine's keys themselves mean nothing to the filter.
    assert!(tables[0].filter().contains(7).is_err());
    Ok(())
}

/// Revoked certificates, each issuer with its own, and no wrong answer for any that was issued.
#[test]
fn revocation() -> Result<(), Error> {
    let mut certificates = tamis::stream().exact().partitioned();
    for serial in 0..3000 {
        let issuer = if serial % 3 == 0 { "Issuer A" } else { "Issuer B" };
        match serial % 50 {
            0 => certificates.push(issuer, serial)?,
            _ => certificates.exclude(issuer, serial)?,
        }
    }
    let revoked = certificates.finish()?;
    for serial in (0..3000).step_by(3) {
        assert_eq!(revoked.contains_in("Issuer A", serial)?, serial % 50 == 0);
    }
    assert!(!revoked.has_partition("Issuer C")?);
    Ok(())
}

/// Genomes by their k-mers: which of them have this one?
#[test]
fn kmers() -> Result<(), Error> {
    let genomes = [("phage", "ACGTACGTTAGC"), ("virus", "TTAGCACGTAAA")];
    let pairs = genomes.iter().flat_map(|(name, bases)| bases.as_bytes().windows(5).map(move |kmer| (kmer, *name)));
    let index = tamis::sets(pairs).finish()?;
    let names: Vec<_> = index.find("TTAGC")?.into_iter().filter_map(|set| index.name(set)).collect();
    assert_eq!(names, ["phage", "virus"]);
    Ok(())
}

/// Numbers of jobs that a pipeline has done, read from a file that may be broken. Some are negative.
#[test]
fn ids_of_a_pipeline() -> Result<(), Box<dyn std::error::Error>> {
    let mut done = tamis::stream().start();
    let lines = std::io::Cursor::new("-7\n0\n18446744073709551615\n").lines();
    done.try_extend(lines.map(|line| -> Result<u64, Box<dyn std::error::Error>> {
        let line = line?;
        Ok(line.parse::<u64>().or_else(|_| line.parse::<i64>().map(|id| id.unsigned_abs()))?)
    }))?;
    let done = done.finish()?;
    assert!(done.contains(7)? && done.contains(0u8)? && done.contains(u64::MAX)?);

    let ids: Vec<i64> = (-500..500).collect();
    let done = tamis::build(&ids).finish()?;
    assert_eq!(done.contains_many(&ids)?, vec![true; 1000]);
    assert!(done.contains(-500i16)? && done.contains(499usize)?);

    let mut broken = tamis::stream().start();
    let error = broken.try_extend([Ok("a"), Err(std::io::Error::other("the disk is gone")), Ok("b")]).unwrap_err();
    assert_eq!(error.to_string(), "the disk is gone");
    Ok(())
}

/// A reader that gets a filter in a message and queries it for what a page shows.
#[test]
fn a_reader_of_messages() -> Result<(), Error> {
    let mut message = Vec::new();
    tamis::build(["ads.example", "spam.example"]).fpr(0.001).finish_into(&mut message)?;
    let filter = Filter::open(message)?;
    assert_eq!(filter.contains_many(&["ads.example", "spam.example"])?, [true, true]);
    assert_eq!((filter.len(), filter.key_type(), filter.version()), (2, KeyType::Bytes, 1));
    Ok(())
}

/// A list that is replaced while threads query it.
#[test]
fn hot_reload() -> Result<(), Error> {
    let path = tempfile::NamedTempFile::new()?.into_temp_path();
    tamis::build(0..1000).finish_to(&path)?;
    let current = Arc::new(RwLock::new(Filter::read(&path)?.into_typed::<u32>()?));
    let reader = thread::spawn({
        let current = Arc::clone(&current);
        move || (0..2000).all(|_| current.read().unwrap().clone().contains(999))
    });
    for day in 1..5 {
        tamis::build(0..1000 + day).finish_to(&path)?;
        *current.write().unwrap() = Filter::read(&path)?.into_typed()?;
    }
    assert!(reader.join().unwrap() && current.read().unwrap().contains(1003));
    assert_eq!(current.read().unwrap().filter(), &Filter::read(&path)?);
    Ok(())
}

/// A bar that borrows from its window, and a button that stops the build.
#[test]
fn progress_and_cancel() -> Result<(), Error> {
    let (seen, button) = (AtomicU64::new(0), Arc::new(AtomicBool::new(false)));
    let filter = tamis::build(0..200_000)
        .progress(|progress| {
            if let Progress::Read { keys, total: Some(total) } = progress {
                assert!(keys <= total);
                seen.fetch_max(keys, Ordering::Relaxed);
            }
        })
        .cancel(Arc::clone(&button))
        .finish()?;
    assert_eq!((filter.len(), seen.load(Ordering::Relaxed)), (200_000, 200_000));

    // Maps and set indexes take the same callback, with what it borrows.
    let pairs = AtomicU64::new(0);
    let options = tamis::Options::default().progress(|progress| {
        if let Progress::Read { keys, total } = progress {
            assert_eq!(total, Some(100_000));
            pairs.fetch_max(keys, Ordering::Relaxed);
        }
    });
    let map = options.clone().map((0..100_000).map(|key| (key, 7u64))).finish()?;
    let sets = options.clone().sets((0..100_000).map(|key| (key, "all"))).finish()?;
    let letters = options.sequence((0..100_000).map(|at| at as u64 % 3)).finish()?;
    assert_eq!((map.len(), sets.keys(), letters.len()), (100_000, 100_000, 100_000));
    assert_eq!(pairs.load(Ordering::Relaxed), 100_000);

    button.store(true, Ordering::Relaxed);
    let stopped = tamis::build(0..200_000).cancel(button).finish();
    assert!(matches!(stopped, Err(Error::Build(BuildError::Cancelled))));
    Ok(())
}

/// Connections, which are a host and a port.
struct Connection<'a> {
    host: &'a str,
    port: u16,
}

impl Key for Connection<'_> {
    const KEY_TYPE: KeyType = KeyType::Fields;

    fn digest(&self, hasher: &Hasher) -> Digest {
        hasher.fields().bytes(self.host).integer(self.port).finish()
    }
}

#[test]
fn a_key_of_ones_own() -> Result<(), Error> {
    let connection = |host, port| Connection { host, port };
    let open = [connection("a.example", 443), connection("b.example", 80)];
    for options in [Options::default(), Options::default().secret([1, 2])] {
        let filter = options.build(&open).exclude([connection("a.example", 80)]).finish()?;
        assert!(filter.contains(connection("b.example", 80))? && !filter.contains(connection("a.example", 80))?);
        assert!(filter.contains("a.example").is_err() && filter.contains(80).is_err());
    }
    Ok(())
}

/// A filter inside the program.
#[test]
fn include_bytes() -> Result<(), Error> {
    let filter = Filter::open(include_bytes!("../golden/ribbon.tamis"))?;
    assert!(!filter.is_empty() && filter.fpr() < 0.02);
    let shared: Arc<[u8]> = filter.as_bytes().into();
    assert_eq!(Filter::open(shared)?, filter);
    Ok(())
}
