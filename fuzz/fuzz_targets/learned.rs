//! any file of a learned filter -> an error, or answers alike alone and in batches; any keys -> an error in words, or a filter that has them.
#![no_main]

use std::collections::BTreeSet;

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use tamis::Error;
use tamis::learned::{Built, Grams, Learned};
use tamis_fuzz::{form, mutate, numbers};

fuzz_mutator!(|data: &mut [u8], size: usize, most: usize, seed: u32| { mutate(data, size, most, seed) });

fuzz_target!(|bytes: &[u8]| if form(bytes) == Some(10) { opens(bytes) } else { builds(bytes) });

fn opens(bytes: &[u8]) {
    let Ok(filter) = Learned::<Grams>::open_unverified(bytes.to_vec()) else { return };
    assert!((0.0..=1.0).contains(&filter.fpr()) && filter.model_len() <= bytes.len() as u64);
    assert!(filter.classes().all(|class| class.bytes <= bytes.len() as u64));
    assert!(Learned::<Grams>::open(bytes.to_vec()).is_ok() == filter.verify().is_ok());
    let mut keys: Vec<Vec<u8>> = numbers().map(|number| number.to_le_bytes().to_vec()).collect();
    keys.extend([vec![], vec![0], bytes.to_vec(), vec![255; 1 << 12]]);
    let mut answers = vec![false; keys.len()];
    filter.contains_into(&keys, &mut answers).expect("as many answers as keys");
    assert!(keys.iter().zip(answers).all(|(key, answer)| filter.contains(key) == answer));
}

fn builds(bytes: &[u8]) {
    let Some((&[how, rate, classes], rest)) = bytes.split_first_chunk::<3>() else { return };
    // Keys are what lies between zeros: members are those of odd lengths.
    let (members, excluded): (BTreeSet<&[u8]>, BTreeSet<&[u8]>) =
        rest.split(|&byte| byte == 0).partition(|key| key.len() % 2 == 1);
    let (members, excluded): (Vec<_>, Vec<_>) = (members.into_iter().collect(), excluded.into_iter().collect());
    let rate = f64::from(rate) / 255.0;
    let options = if how & 1 == 0 { tamis::stream().exact() } else { tamis::stream().fpr(rate) };
    let builder = options.threads(1).learn(&members, &excluded).classes(classes.into()).keep_model();
    let builder = if how & 2 == 0 { builder } else { builder.accept(rate) };
    let builder = if how & 4 == 0 { builder } else { builder.sandwich(rate) };
    match builder.finish() {
        Ok((built, report)) => {
            assert!(members.iter().all(|key| built.contains(key) == Ok(true)));
            let matched = excluded.iter().filter(|key| built.contains(key) == Ok(true)).count();
            assert_eq!(report.excluded_matches, matched as u64);
            assert!(how & 2 != 0 || matched == 0);
            let Built::Learned(filter) = built else { panic!("a model was to be kept") };
            let again = Learned::<Grams>::open(filter.as_bytes().to_vec()).expect("what was built opens");
            assert!(again == filter);
        }
        Err(Error::Build(error)) => assert!(!error.to_string().is_empty()),
        Err(error) => panic!("{error}"),
    }
}
