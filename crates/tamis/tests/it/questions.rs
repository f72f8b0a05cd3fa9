//! golden files -> their answers to the questions of tests/questions, written as text: what another reader must find too.
//!
//! ```text
//!   file golden/keyed.tamis                    a file, and the secret that is kept outside it: two words, hexadecimal
//!   hex:6b65792d30 yes                         a key of bytes, an integer, a digest (upper half first), a list of fields, letters x
//!   int:-5 int:7                               filters: yes, no. Maps: int:, hex:, none. Sets: their numbers
//!   in:666577 hex:6b65792d30 no                a key in a partition
//!   patch golden-patches/list.tamis            the next patch of the file; answers from here on are those of both
//! ```
//!
//! After `TAMIS_BLESS=1 cargo test -p tamis golden` wrote files, the same command once more writes their answers.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use tamis::learned::Learned;
use tamis::maps::Value;
use tamis::slices::{MANIFEST, Sliced};
use tamis::{Digest, Filter, Hasher, Key, Map, Patch, Sequence, Sets};

use super::golden::{Flow, SECRET};
use super::integers;
use super::learned;
use super::repair::{FORM, Parts};

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// A key of any type.
pub(crate) enum Asked {
    Bytes(Vec<u8>),
    Integer(i128),
    Digest(Digest),
    Fields(Flow),
    Address(IpAddr),
    Wide(u128),
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold("hex:".into(), |text, byte| format!("{text}{byte:02x}"))
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap()).collect()
}

impl Asked {
    pub(crate) fn parse(token: &str) -> Asked {
        match token.split_once(':').unwrap() {
            ("hex", text) => Asked::Bytes(unhex(text)),
            ("x", count) => Asked::Bytes(vec![b'x'; count.parse().unwrap()]),
            ("int", text) => Asked::Integer(text.parse().unwrap()),
            ("ip", text) => Asked::Address(text.parse().unwrap()),
            ("u128", text) => Asked::Wide(text.parse().unwrap()),
            ("digest", text) => Asked::Digest(Digest::from_bits(u128::from_str_radix(text, 16).unwrap())),
            ("fields", text) => {
                let (host, port) = text.split_once('+').unwrap();
                let host = String::from_utf8(unhex(host.strip_prefix("hex:").unwrap())).unwrap();
                Asked::Fields(Flow(host, port.strip_prefix("int:").unwrap().parse().unwrap()))
            }
            _ => panic!("{token}"),
        }
    }

    fn text(&self) -> String {
        match self {
            Asked::Bytes(bytes) if bytes.len() > 16 && bytes.iter().all(|&byte| byte == b'x') => {
                format!("x:{}", bytes.len())
            }
            Asked::Bytes(bytes) => hex(bytes),
            Asked::Integer(key) => format!("int:{key}"),
            Asked::Digest(key) => format!("digest:{:032x}", key.to_bits()),
            Asked::Address(key) => format!("ip:{key}"),
            Asked::Wide(key) => format!("u128:{key}"),
            Asked::Fields(Flow(host, port)) => format!("fields:{}+int:{port}", hex(host.as_bytes())),
        }
    }
}

/// Does the same with a key of any type.
macro_rules! with_key {
    ($asked:expr, $key:ident => $do:expr) => {
        match $asked {
            Asked::Bytes($key) => $do,
            Asked::Digest($key) => $do,
            Asked::Fields($key) => $do,
            Asked::Address($key) => $do,
            Asked::Wide($key) => $do,
            Asked::Integer(key) if *key < 0 => {
                let $key = &i64::try_from(*key).unwrap();
                $do
            }
            Asked::Integer(key) => {
                let $key = &u64::try_from(*key).unwrap();
                $do
            }
        }
    };
}

impl Asked {
    pub(crate) fn digest(&self, hasher: &Hasher) -> Digest {
        with_key!(self, key => key.digest(hasher))
    }
}

enum Opened {
    Filter(Filter),
    Map(Map),
    Sequence(Sequence),
    Sets(Sets),
    Learned(Learned),
    Sliced(Sliced),
}

impl Opened {
    fn new(name: &str, secret: Option<[u64; 2]>) -> Opened {
        let file = std::fs::read(tests().join(name)).unwrap();
        macro_rules! opened {
            ($type:ident) => {
                Opened::$type(match secret {
                    Some(secret) => $type::open_with_secret(file, secret).unwrap(),
                    None => $type::open(file).unwrap(),
                })
            };
        }
        match Parts::of(&file).unwrap().head[FORM] {
            0 | 1 | 6 => opened!(Filter),
            2 => opened!(Map),
            3 => opened!(Sequence),
            8 => Opened::Sliced(Sliced::read(tests().join(name).parent().unwrap()).unwrap()),
            10 => opened!(Learned),
            _ => opened!(Sets),
        }
    }

    /// The same behind the next patch.
    fn patched(self, patch: Vec<u8>) -> Opened {
        let Opened::Filter(filter) = self else { panic!("a patch of what is no filter") };
        let today = filter.with_patches([Patch::open(patch).unwrap()]).unwrap();
        Opened::Filter(today.finish().unwrap())
    }

    fn answer(&self, partition: Option<&[u8]>, asked: &Asked) -> String {
        let yes = |yes: bool| if yes { "yes".into() } else { "no".into() };
        let value = |value: Option<Value<'_>>| match value {
            None => "none".into(),
            Some(Value::Number(number)) => format!("int:{number}"),
            Some(Value::Bytes(bytes)) => hex(bytes),
            Some(_) => panic!("a value of another kind"),
        };
        match (self, partition, asked) {
            (Opened::Filter(filter), None, key) => with_key!(key, key => yes(filter.contains(key).unwrap())),
            (Opened::Sliced(filter), None, key) => with_key!(key, key => yes(filter.contains(key).unwrap())),
            (Opened::Filter(filter), Some(partition), key) => {
                with_key!(key, key => yes(filter.contains_in(partition, key).unwrap()))
            }
            (Opened::Learned(filter), None, Asked::Bytes(key)) => yes(filter.contains(key)),
            (Opened::Map(map), None, key) => with_key!(key, key => value(map.get(key).unwrap())),
            (Opened::Sequence(symbols), None, Asked::Integer(at)) => value(symbols.get(u64::try_from(*at).unwrap())),
            (Opened::Sets(sets), None, key) => {
                let found = with_key!(key, key => sets.find(key).unwrap());
                format!("sets:{}", found.iter().map(u32::to_string).collect::<Vec<_>>().join(","))
            }
            _ => panic!("a question that the file cannot have"),
        }
    }

    /// Questions worth writing down: members, excluded keys, unlisted ones, and the ends of ranges.
    fn questions(&self, name: &str) -> Vec<(Option<&'static str>, Asked)> {
        let bytes = |key: &str| Asked::Bytes(key.into());
        let numbered = |word: &str, numbers: &[u64]| -> Vec<Asked> {
            (0..8).chain(numbers.iter().copied()).map(|i| bytes(&format!("{word}-{i}"))).collect()
        };
        let signed: Vec<i128> = vec![-1, -2, -500, -501, u64::MAX.into(), i64::MIN.into(), 1 << 63, 77];
        let some = [0, 1, 2, 3, 4, 5, 6, 7, 499, 500, 999, 1000, 2999, 3000, 5999, 6000];
        let mut whole: Vec<i128> = some.to_vec();
        whole.extend(integers(16, 1).map(i128::from));
        if name.starts_with("golden-patches") && !name.contains("partitioned") {
            whole.extend(integers(200, 19).chain(integers(100, 20)).map(i128::from));
        }
        if name.starts_with("golden-slices") {
            whole.extend(integers(100, 2).chain(integers(100, 3)).map(i128::from));
        }
        let integers = || whole.iter().chain(&signed).map(|&key| Asked::Integer(key)).collect();
        let strings = || {
            let mut keys = numbered("key", &[100, 999, 1000, 2999, 11_999, 12_000, 59_999, 69_999, 70_000]);
            keys.extend(numbered("other", &[49, 50, 3999, 4000]));
            keys.extend(numbered("unlisted", &[8, 9, 10, 11, 12, 13, 14, 15]));
            keys.extend(["", "ann", "bob", "cid"].map(bytes));
            keys.extend([1, 3, 4, 8, 9, 16, 17, 128, 129, 240, 241, 600, 601, 1300].map(|n| bytes(&"x".repeat(n))));
            keys
        };
        let key_type = match self {
            Opened::Filter(filter) => filter.key_type(),
            Opened::Sliced(filter) => filter.key_type(),
            Opened::Map(map) => map.key_type(),
            Opened::Sets(sets) => sets.key_type(),
            Opened::Learned(_) => tamis::KeyType::Bytes,
            Opened::Sequence(_) => return some.into_iter().map(|at| (None, Asked::Integer(at))).collect(),
        };
        let mut keys: Vec<Asked> = match key_type {
            tamis::KeyType::Integer => integers(),
            tamis::KeyType::Digest => {
                let hashed = (0..8).chain(996..1004).map(|i| Asked::Digest(Digest::from_hash(i)));
                let plain = (0..16u64).chain(8996..9004);
                let plain = plain.map(|i| Digest::from_bits((u128::from(super::mix(i)) << 61) | u128::from(i)));
                hashed.chain(plain.map(Asked::Digest)).collect()
            }
            tamis::KeyType::Fields => (0..8)
                .chain(996..1010)
                .flat_map(|i| [i - 500, i - 499].map(|port| Asked::Fields(Flow(format!("host-{i}"), port))))
                .collect(),
            _ => strings(),
        };
        if matches!(self, Opened::Learned(_)) {
            let names = [learned::members(16), learned::excluded(16), learned::excluded_from(1 << 20, 32)].concat();
            keys.extend(names.iter().map(|name| bytes(name)));
        }
        if !name.contains("partitioned") {
            return keys.into_iter().map(|key| (None, key)).collect();
        }
        let partitions = ["few", "many", "key", "other", "one", "two", "none", ""];
        let short = |key: &Asked| !matches!(key, Asked::Bytes(bytes) if bytes.len() > 20);
        let pairs = keys.iter().filter(|key| short(key)).flat_map(|key| partitions.map(|name| (Some(name), key)));
        pairs.map(|(name, key)| (name, Asked::parse(&key.text()))).collect()
    }
}

const FOLDERS: [&str; 6] =
    ["golden", "golden-learned", "golden-maps", "golden-patches", "golden-sets", "golden-slices"];

/// Patches that are no files of their own, in the order of their chain.
const PATCHES: [&str; 2] = ["golden-patches/list.tamis", "golden-patches/steps.tamis"];

/// The folders with their files, in order, without adaptive filters; of slices the manifest, which opens them.
fn files() -> Vec<(&'static str, String)> {
    let mut files = vec![];
    for folder in FOLDERS {
        for entry in std::fs::read_dir(tests().join(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if folder != "golden-slices" || name == MANIFEST {
                files.push((folder, format!("{folder}/{name}")));
            }
        }
    }
    files.sort();
    files
}

/// Writes the texts again, from files that are there.
fn bless() {
    let mut texts = std::collections::BTreeMap::<&str, String>::new();
    for (folder, name) in files().into_iter().filter(|(_, name)| !PATCHES.contains(&&name[..])) {
        let secret = name.ends_with("secret-beside.tamis").then_some(SECRET);
        let mut opened = Opened::new(&name, secret);
        let text = texts.entry(folder).or_default();
        let words = secret.map_or(String::new(), |[a, b]| format!(" {a:x} {b:x}"));
        writeln!(text, "file {name}{words}").unwrap();
        let patches = if name.ends_with("base.tamis") { &PATCHES[..] } else { &[] };
        for patch in std::iter::once(None).chain(patches.iter().map(Some)) {
            if let Some(patch) = patch {
                writeln!(text, "patch {patch}").unwrap();
                opened = opened.patched(std::fs::read(tests().join(patch)).unwrap());
            }
            for (partition, asked) in opened.questions(&name) {
                let answer = opened.answer(partition.map(str::as_bytes), &asked);
                let partition =
                    partition.map_or(String::new(), |name| hex(name.as_bytes()).replace("hex:", "in:") + " ");
                writeln!(text, "{partition}{} {answer}", asked.text()).unwrap();
            }
        }
    }
    for (folder, text) in texts {
        std::fs::create_dir_all(tests().join("questions")).unwrap();
        std::fs::write(tests().join("questions").join(folder).with_extension("txt"), text).unwrap();
    }
}

#[test]
fn golden_files_answer_as_it_is_written() {
    if std::env::var_os("TAMIS_BLESS").is_some() {
        bless();
    }
    let mut left: BTreeSet<String> = files().into_iter().map(|(_, name)| name).collect();
    let (mut opened, mut questions): (Option<Opened>, _) = (None, 0);
    for folder in FOLDERS {
        let text = std::fs::read_to_string(tests().join("questions").join(folder).with_extension("txt")).unwrap();
        for line in text.lines() {
            let tokens: Vec<&str> = line.split(' ').collect();
            match tokens[..] {
                ["file", name, ref words @ ..] => {
                    let word = |at: usize| u64::from_str_radix(words[at], 16).unwrap();
                    let secret = (words.len() == 2).then(|| [word(0), word(1)]);
                    opened = Some(Opened::new(name, secret));
                    assert!(left.remove(name), "{name}: not there, or there twice");
                }
                ["patch", name] => {
                    let patch = std::fs::read(tests().join(name)).unwrap();
                    opened = opened.map(|opened| opened.patched(patch));
                    assert!(left.remove(name), "{name}: not there, or there twice");
                }
                [ref partition @ .., key, answer] => {
                    let partition = partition.first().map(|token| unhex(token.strip_prefix("in:").unwrap()));
                    let found = opened.as_ref().unwrap().answer(partition.as_deref(), &Asked::parse(key));
                    assert_eq!(found, answer, "{line}");
                    questions += 1;
                }
                _ => panic!("{line}"),
            }
        }
    }
    assert!(left.is_empty() && questions > 3000, "{questions} questions; none about {left:?}");
}
