//! values -> JSON, bytes -> equal values; damage, other forms and other texts -> errors that say what is wrong.

use std::fmt::Debug;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tamis::{Filter, Map, Sequence, Sets};

fn filter() -> Filter {
    tamis::build(["ann", "bob"]).fpr(0.001).finish().unwrap()
}

fn map() -> Map {
    tamis::map([("ann", 3u64), ("bob", 5)]).finish().unwrap()
}

/// Both formats, and the value again; the binary one has little more than the bytes.
fn comes_back<T: Serialize + DeserializeOwned + PartialEq + Debug + AsRef<[u8]>>(value: T) {
    let text = serde_json::to_string(&value).unwrap();
    assert!(text.starts_with("\"") && text.len() < value.as_ref().len() * 4 / 3 + 6);
    assert_eq!(serde_json::from_str::<T>(&text).unwrap(), value);
    let bytes = postcard::to_allocvec(&value).unwrap();
    assert!(bytes.ends_with(value.as_ref()) && bytes.len() <= value.as_ref().len() + 10);
    assert_eq!(postcard::from_bytes::<T>(&bytes).unwrap(), value);
}

#[test]
fn values_come_back() {
    comes_back(filter());
    // Every length of padding.
    (0..3).for_each(|more| comes_back(tamis::build(0..50 + 64 * more).fpr(0.01).finish().unwrap()));
    comes_back(map());
    comes_back::<Sequence>(tamis::sequence([3u64, 5, 3]).finish().unwrap());
    comes_back::<Sets>(tamis::sets([("ann", "red"), ("bob", "blue")]).finish().unwrap());
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Release {
    version: u32,
    deny: Filter,
    countries: Option<Map>,
}

/// Serde reads it into a buffer first, which does not know what the format was.
#[derive(Serialize, Deserialize, PartialEq, Debug)]
#[serde(tag = "kind")]
enum Message {
    Release(Release),
}

#[test]
fn structs_derive() {
    for countries in [None, Some(map())] {
        let release = Release { version: 7, deny: filter(), countries };
        let back: Release = postcard::from_bytes(&postcard::to_allocvec(&release).unwrap()).unwrap();
        assert!(back == release && back.deny.contains("ann").unwrap());
        let message = Message::Release(release);
        assert_eq!(serde_json::from_str::<Message>(&serde_json::to_string(&message).unwrap()).unwrap(), message);
        let mut binary = vec![];
        ciborium::into_writer(&message, &mut binary).unwrap();
        assert_eq!(ciborium::from_reader::<Message, _>(&binary[..]).unwrap(), message);
    }
}

#[test]
fn every_damaged_byte_is_an_error() {
    let good = postcard::to_allocvec(&filter()).unwrap();
    for at in 0..good.len() {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        assert!(postcard::from_bytes::<Filter>(&bytes).is_err(), "byte {at}");
        assert!(postcard::from_bytes::<Filter>(&good[..at]).is_err(), "cut at {at}");
    }
}

#[test]
fn errors_say_what_is_wrong() {
    let refused = |json: &str| serde_json::from_str::<Filter>(json).unwrap_err().to_string();
    let text = serde_json::to_string(&filter()).unwrap();
    // The payload starts after 16 bytes, which are a quote and 21 characters.
    let other = if &text[26..27] == "A" { "B" } else { "A" };
    let damaged = refused(&format!("{}{other}{}", &text[..26], &text[27..]));
    let open = |bytes: Vec<u8>| Filter::open(bytes).unwrap_err().to_string();
    for (found, expected) in [
        (damaged, "filter: damaged: the checksum of the payload does not match".to_string()),
        (refused("\"bm90IGEgZmlsdGVy\""), format!("filter: {}", open(b"not a filter".to_vec()))),
        (refused(&serde_json::to_string(&map()).unwrap()), format!("filter: {}", open(map().as_bytes().to_vec()))),
        (refused(&format!("{}\"", &text[..text.len() - 2])), "filter: not base64: Invalid padding".to_string()),
        (refused("\"%%%%\""), "filter: not base64: Invalid symbol 37, offset 0.".to_string()),
        (refused("7"), "invalid type: integer `7`, expected the bytes of a tamis filter, or their base64".to_string()),
    ] {
        assert!(found.starts_with(&expected), "{found}\n{expected}");
    }
}

/// Serde has no place for a secret: what is written without one is not read.
#[test]
fn a_secret_that_is_kept_outside_is_an_error() {
    let options = || tamis::Options::default().secret([1, 2]).secret_beside();
    fn refused<T: Serialize + DeserializeOwned + Debug>(name: &str, value: &T) {
        let expected = format!("{name}: the secret is not in the file; expected to be given it");
        let error = serde_json::from_str::<T>(&serde_json::to_string(value).unwrap()).unwrap_err().to_string();
        assert!(error.starts_with(&expected), "{error}");
        assert!(postcard::from_bytes::<T>(&postcard::to_allocvec(value).unwrap()).is_err());
    }
    refused("filter", &options().build(["ann"]).finish().unwrap());
    refused("map", &tamis::map([("ann", 3u64)]).options(options()).finish().unwrap());
    refused("sequence", &tamis::sequence([3u64, 5]).options(options()).finish().unwrap());
    refused("set index", &tamis::sets([("ann", "red")]).options(options()).finish().unwrap());
}
