//! what one writes on the first day -> it compiles, does what it says, and tells what it cannot do.
//!
//! Each test names a promise; most of them are kept by the compiler.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::Rc;
use std::sync::Arc;

use tamis::adaptive::{AdaptiveFilter, Broom};
use tamis::learned::{Built, Learned};
use tamis::{Bloom, Chained, Cuckoo, Digest, Error, Filter, Hasher, Key, KeyType, Map, Patch, Quotient};
use tamis::{Sequence, Sets, Stacked};

use super::learned;

/// Calls the same method with each of the arguments, whatever their types; the compiler says which it takes.
macro_rules! each {
    ($typed:ident: $($key:expr),+ $(,)?) => {
        $( assert!($typed.contains($key), stringify!($key)); )+
        $( assert_eq!($typed.contains_many(&[$key][..]), [true], stringify!($key)); )+
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

/// A file is there after `save`, with the bytes that were in memory, and `read` takes it.
#[test]
fn what_is_a_file_is_saved_and_read() -> Result<(), Error> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("file.tamis");
    macro_rules! kept {
        ($($type:ident: $made:expr, $bytes:ident;)+) => {$({
            let made = $made;
            made.save(&path)?;
            assert_eq!(std::fs::read(&path)?, made.$bytes(), stringify!($type));
            assert_eq!(<$type>::read(&path)?.$bytes(), made.$bytes(), stringify!($type));
        })+};
    }
    macro_rules! changing {
        ($($type:ident: $made:expr;)+) => {$({
            let made = $made;
            made.save(&path)?;
            let bytes = made.snapshot()?;
            assert_eq!(std::fs::read(&path)?, bytes, stringify!($type));
            assert_eq!($type::read(&path)?.snapshot()?, bytes, stringify!($type));
        })+};
    }
    let base = tamis::build(0..100u64).exclude(100..500u64).exact().finish()?;
    let mut diff = base.diff()?;
    (1..100u64).try_for_each(|key| diff.push(key))?;
    (100..500u64).chain([0]).try_for_each(|key| diff.exclude(key))?;
    let patch = diff.finish()?;
    let (members, excluded) = (learned::members(400), learned::excluded(400));
    let (model, _) = tamis::stream().exact().learn(&members, &excluded).finish()?;
    kept! {
        Filter: base.clone(), as_bytes;
        Map: tamis::map([("ann", 1u64)]).finish()?, as_bytes;
        Sequence: tamis::sequence([1u64, 2, 3]).finish()?, as_bytes;
        Sets: tamis::sets([("ann", "red")]).finish()?, as_bytes;
        Patch: patch.clone(), as_bytes;
    }
    if let Built::Learned(model) = model {
        kept!(Learned: model, as_bytes;);
    }
    base.with_patches([patch])?.save(&path)?;
    assert!(!Filter::read(&path)?.contains(0u64)? && Filter::read(&path)?.contains(1u64)?);
    changing! {
        Bloom: Bloom::with_capacity(10).build::<u64>()?;
        Cuckoo: Cuckoo::with_capacity(10).build::<u64>()?;
        Quotient: Quotient::with_capacity(10).build::<u64>()?;
        Chained: Chained::over(Bloom::with_capacity(10).build::<u64>()?)?;
        Stacked: Stacked::restore(Bloom::with_capacity(10).build::<u64>()?.snapshot()?)?;
        Broom: Broom::with_capacity(10).secret([1, 2]).build::<u64>()?;
    }
    // Whoever saves a secret beside the file reads it with the secret.
    let beside = Bloom::with_capacity(10).hasher(Hasher::secret([1, 2])).secret_beside();
    beside.build::<u64>()?.save(&path)?;
    assert!(Bloom::read(&path).is_err() && Bloom::read_with_secret(&path, [1, 2])?.is_empty());
    let error = Bloom::read(dir.path().join("none")).unwrap_err().to_string();
    assert!(error.contains("none: "), "{error}");
    Ok(())
}

/// A key is found however the program holds it, and an address is not found by its text.
#[test]
fn addresses_and_wide_integers_are_keys_of_bytes() -> Result<(), Error> {
    let (four, six) = (Ipv4Addr::new(192, 0, 2, 1), Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));
    let wide = u128::from(six);
    for secret in [false, true] {
        let options = || if secret { tamis::stream().secret([1, 2]) } else { tamis::stream() };
        let filter = options().fpr(1e-6).build([IpAddr::V4(four), IpAddr::V6(six)]).exclude([7u128]).finish()?;
        assert!(filter.contains(four)? && filter.contains(IpAddr::V4(four))? && filter.contains(four.octets())?);
        assert!(filter.contains(six)? && filter.contains(IpAddr::V6(six))? && filter.contains(&six.octets()[..])?);
        assert!(filter.contains(wide)? && filter.contains(six.octets())? && !filter.contains(7u128)?);
        assert!(!filter.contains(wide.swap_bytes())? && !filter.contains(four.to_ipv6_mapped())?);
        assert!(!filter.contains("192.0.2.1")? && filter.contains(7u64).is_err());
        assert_eq!(filter.contains_many(&[four, Ipv4Addr::LOCALHOST])?, [true, false]);
        let typed = filter.typed::<IpAddr>()?;
        each!(typed: IpAddr::V4(four), &IpAddr::V6(six));
    }
    let map = tamis::map([(four, 4u64)]).finish()?;
    assert_eq!(map.get_u64(IpAddr::V4(four))?, Some(4));
    let mut seen = Bloom::with_capacity(10).build::<u128>()?;
    seen.insert(wide)?;
    assert!(seen.contains(six)?);
    let sets = tamis::sets([(six, "red")]).finish()?;
    assert_eq!(sets.find(wide)?.len(), 1);
    Ok(())
}

/// Nothing stops an insertion into a Bloom filter past its capacity, so the filter says so.
#[test]
fn a_bloom_filter_past_its_capacity_says_so() -> Result<(), Error> {
    for builder in [Bloom::with_capacity(1000).fpr(0.01), Bloom::with_capacity(1000).fpr(0.01).classic()] {
        let mut over = Chained::over(builder.clone().build::<u64>()?)?;
        let mut seen = builder.build::<u64>()?;
        for n in [1000, 2000, 4000, 16_000] {
            for key in seen.len()..n {
                seen.insert(key)?;
                over.insert(key)?;
            }
            let unlisted = 1 << 40..(1 << 40) + 100_000u64;
            let found = unlisted.filter(|&key| seen.contains(key).unwrap()).count() as f64 / 1e5;
            assert!((found - seen.fpr_now()).abs() < 0.01, "{n}: {found}, {}", seen.fpr_now());
            assert!((seen.fpr_now() <= 0.013) == (n == 1000) && (0.2..=1.0).contains(&seen.fill()), "{n}: {seen:?}");
            assert_eq!((over.fill(), over.fpr_now()), (seen.fill(), seen.fpr_now() / 2.0));
        }
    }
    Ok(())
}

/// The error comes before a file, and names the option.
#[test]
fn what_contradicts_itself_says_so() {
    let foreign = || tamis::Options::default().hasher(Hasher::foreign(1));
    let mut partitioned = foreign().partitioned();
    partitioned.push("one", 5u64).unwrap();
    let errors = [
        foreign().build([5u64]).finish().unwrap_err(),
        partitioned.finish().unwrap_err(),
        tamis::map([("ann", 1u64)]).options(foreign()).finish().unwrap_err(),
        tamis::sequence([1u64]).options(foreign()).finish().unwrap_err(),
        tamis::sets([("ann", "red")]).options(foreign()).finish().unwrap_err(),
        Bloom::with_capacity(10).hasher(Hasher::foreign(1)).build::<str>().unwrap_err().into(),
    ];
    for error in errors {
        assert_eq!(error.to_string(), "hasher: no effect; expected keys of type Digest with Hasher::foreign");
    }
    for (fpr, end) in [(0.0, ", but not 0"), (1.0, ", but not 1"), (1.5, ""), (-1.0, "")] {
        let error = tamis::build(["ann"]).fpr(fpr).finish().unwrap_err().to_string();
        assert_eq!(error, format!("fpr {fpr}: out of range; expected 0 to 1{end}"));
    }
}

/// A value is compared and printed as it was put in.
#[test]
fn values_are_what_they_were() -> Result<(), Error> {
    let map = tamis::map([("ann", "red"), ("bob", "blue")]).finish()?;
    assert_eq!(map.get("ann")?, Some("red".into()));
    assert_eq!(map.get_many(&["ann", "bob"])?, [Some("red".into()), Some(b"blue"[..].into())]);
    assert_eq!(format!("{:?}", map.get("ann")?), "Some(Bytes(b\"red\"))");
    let map = tamis::map([("ann", 7u8)]).finish()?;
    assert_eq!((map.get("ann")?, format!("{:?}", map.get("ann")?)), (Some(7.into()), "Some(Number(7))".into()));
    Ok(())
}
