//! any small set, kind, effort and goal -> an error in words, or a filter that holds its keys and opens from its bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tamis::{Effort, Error, Filter, Kind};

fuzz_target!(|bytes: &[u8]| {
    let Some((head, rest)) = bytes.split_first_chunk::<12>() else { return };
    let [kind, effort, flags, repeat, goal @ ..] = *head;
    let kind = Kind::ALL[kind as usize % Kind::ALL.len()].1;
    let effort = [Effort::Fast, Effort::Balanced, Effort::Smallest][effort as usize % 3];
    let goal = f64::from_le_bytes(goal);
    // Keys between zero bytes; repeated with a number behind, for sets larger than the input.
    let mut keys: Vec<Vec<u8>> = vec![];
    for round in 0..=u32::from(repeat) {
        keys.extend(rest.split(|&byte| byte == 0).map(|key| [key, &round.to_le_bytes()].concat()));
        if keys.len() > 20_000 {
            break;
        }
    }
    let build = tamis::build(&keys).kind(kind).effort(effort).threads(1).seed(u64::from(flags));
    let build = match flags & 3 {
        // Rates of every size, so that most goals can be reached.
        0 => build.fpr((goal.abs() % 30.0 - 30.0).exp2()),
        1 => build.fpr(goal),
        2 => build.bits_per_key(goal.abs() % 64.0),
        _ => build.bits_per_key(goal).secret([1, 2]),
    };
    let filter = match build.finish() {
        Ok(filter) => filter,
        Err(Error::Build(e)) => return assert!(!e.to_string().is_empty()),
        Err(e) => panic!("{e}"),
    };
    assert!(keys.iter().all(|key| filter.contains(key) == Ok(true)));
    let again = Filter::open(filter.as_bytes().to_vec()).expect("what was built opens");
    assert!(again.verify().is_ok());
    let mut answers = vec![false; keys.len()];
    assert!(again.contains_into(&keys, &mut answers).is_ok() && !answers.contains(&false));
});
