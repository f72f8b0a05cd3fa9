//! any slice, manifest, plan, survey or sketch -> an error, or a filter that answers alone and in batches alike.
#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use tamis::slices::{KeyRange, MANIFEST, Plan, Sketch, SliceInfo, Sliced, Survey, file_name, join};
use tamis::{Digest, Hasher, KeyType, Options};
use tamis_fuzz::{form, mutate, numbers};
use xxhash_rust::xxh3::xxh3_64;

fuzz_mutator!(|data: &mut [u8], size: usize, most: usize, seed: u32| { mutate(data, size, most, seed) });

const GOLDEN: [&[u8]; 2] = [
    include_bytes!("../../crates/tamis/tests/golden-slices/slice-00000.tamis"),
    include_bytes!("../../crates/tamis/tests/golden-slices/slice-00001.tamis"),
];

/// A folder of the golden slices.
fn folder() -> &'static PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = std::env::temp_dir().join(format!("tamis-fuzz-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        for (number, slice) in (0..).zip(GOLDEN) {
            fs::write(folder.join(file_name(number)), slice).expect("a file");
        }
        folder
    })
}

/// What surveys and plans of this target have in common.
struct Start {
    options: Options<'static>,
    survey: Vec<u8>,
    plan: Plan,
    sketch: Vec<u8>,
}

fn start() -> &'static Start {
    static START: OnceLock<Start> = OnceLock::new();
    START.get_or_init(|| {
        let options = Options::default().fpr(0.01).shard_bytes(4096).threads(1);
        let digest = |number: u64| Hasher::seeded(0).integer(number);
        // So many excluded keys that a sketch is needed.
        let survey =
            Survey::new(&options, KeyRange::ALL, (0..3000).map(digest), (3000..23_000).map(digest)).expect("a survey");
        let plan = Plan::new(&options, KeyType::Integer, survey.clone(), 4).expect("a plan");
        let sketch = plan.sketch(KeyRange::ALL, (3000..23_000).map(digest)).expect("a sketch");
        Start { options, survey: survey.to_bytes(), plan, sketch: sketch.to_bytes() }
    })
}

/// Bytes that begin as sound ones, before their ranges, with a sum that holds.
fn after(sound: &[u8], rest: &[u8]) -> Vec<u8> {
    let mut bytes = [&sound[..16], rest].concat();
    bytes.extend_from_slice(&xxh3_64(&bytes).to_le_bytes());
    bytes
}

fn build(plan: &Plan) {
    assert_eq!(plan.to_string().parse::<Plan>().expect("its own text").to_string(), plan.to_string());
    // Plans may speak of any number of shards.
    if plan.shards() / u64::from(plan.slices()) <= 64 {
        let digests = numbers().map(Digest::from_hash).filter(|&digest| plan.slice_of(digest) == 0);
        drop(plan.slice(0, digests, []));
    }
}

fuzz_target!(|bytes: &[u8]| {
    match (form(bytes), bytes) {
        (Some(7), _) => {
            let Ok(info) = SliceInfo::open_unverified(bytes) else { return };
            let mut slices = GOLDEN.map(<[u8]>::to_vec);
            slices[info.slice as usize % 2] = bytes.to_vec();
            let Ok(filter) = join(slices) else { return };
            filter.verify().expect("joined slices were verified");
            query(|digests| filter.contains_many_digests(digests).ok(), |digest| filter.contains_digest(digest).ok());
        }
        (Some(8), _) => {
            fs::write(folder().join(MANIFEST), bytes).expect("a file");
            let Ok(sliced) = Sliced::read(folder()) else { return };
            query(|digests| sliced.contains_many_digests(digests).ok(), |digest| sliced.contains_digest(digest).ok());
        }
        (_, [b'v', rest @ ..]) => {
            let Ok(survey) = Survey::from_bytes(&after(&start().survey, rest)) else { return };
            assert_eq!(Survey::from_bytes(&survey.to_bytes()).as_ref(), Ok(&survey));
            if let Ok(plan) = Plan::new(&start().options, KeyType::Integer, survey, 4) {
                build(&plan);
            }
        }
        (_, [b'k', rest @ ..]) => {
            let Ok(sketch) = Sketch::from_bytes(&after(&start().sketch, rest)) else { return };
            assert_eq!(Sketch::from_bytes(&sketch.to_bytes()).as_ref(), Ok(&sketch));
            if let Ok(plan) = start().plan.clone().with_sketch(sketch) {
                build(&plan);
            }
        }
        _ => {
            let text = String::from_utf8_lossy(bytes);
            if let Ok(plan) = text.parse::<Plan>() {
                build(&plan);
            }
        }
    }
});

fn query(many: impl Fn(&[Digest]) -> Option<Vec<bool>>, one: impl Fn(Digest) -> Option<bool>) {
    let digests: Vec<Digest> = numbers().map(Digest::from_hash).collect();
    let Some(answers) = many(&digests) else { return };
    assert!(digests.iter().zip(answers).all(|(&digest, answer)| one(digest) == Some(answer)));
}
