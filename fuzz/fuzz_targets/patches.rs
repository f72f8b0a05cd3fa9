//! any file -> an error, or a patch: behind its base or not, alone and in a chain, it answers alone and in batches alike, also as one file.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use tamis::{Filter, Patch, Patched};
use tamis_fuzz::{mutate, with_keys};

fuzz_mutator!(|data: &mut [u8], size: usize, most: usize, seed: u32| { mutate(data, size, most, seed) });

/// The golden filter with two patches: its base, and the first patch.
fn chain() -> &'static Filter {
    static CHAIN: OnceLock<Filter> = OnceLock::new();
    let golden = &include_bytes!("../../crates/tamis/tests/golden-patches/chain.tamis")[..];
    CHAIN.get_or_init(|| Filter::open(golden).expect("a golden file"))
}

/// The base of the golden filter.
fn base() -> &'static Filter {
    static BASE: OnceLock<Filter> = OnceLock::new();
    BASE.get_or_init(|| {
        let file = chain().as_bytes();
        let sizes = (0..file.len()).flat_map(|start| (start..=file.len()).map(move |end| (start, end)));
        let whole =
            |(start, end): (usize, usize)| Filter::open(&file[start..end]).ok().filter(|it| it.patches().is_empty());
        sizes.filter(|&(start, _)| start > 0 && file[start..].starts_with(&file[..4])).find_map(whole).expect("a base")
    })
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(patch) = Patch::open_unverified(bytes.to_vec()) else { return };
    assert!((0.0..=1.0).contains(&patch.fpr()) && patch.lower_bound() >= 0.0);
    let first = chain().patches()[0].clone();
    let base = base();
    for patches in [vec![patch.clone()], vec![first, patch.clone()], vec![patch.clone(), patch]] {
        let Ok(today) = base.with_patches(patches) else { continue };
        with_keys!(today.key_type(), query(&today));
    }
});

fn query<K: tamis::Key>(today: &Patched, keys: &[K]) {
    // A base of integers has no other keys.
    let Ok(answers) = today.contains_many(keys) else { return };
    let one = today.finish().expect("memory");
    for (key, answer) in keys.iter().zip(answers) {
        assert_eq!((today.contains(key), one.contains(key)), (Ok(answer), Ok(answer)));
    }
}
