//! a golden file and a number of rounds -> so many rounds of queries: for `.ci/counts`, which counts their instructions.
//!
//! `counts FILE one|many ROUNDS`, or `counts build KIND ROUNDS`. Rounds cost the same, so that two runs tell what one round costs.

use std::error::Error;
use std::hint::black_box;

use tamis::{Filter, Kind, Map, Sets};

/// Half of these are members of golden files.
const QUERIES: u64 = 2000;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [what, how, rounds] = &arguments[..] else { return Err("expected FILE one|many ROUNDS".into()) };
    let rounds: u32 = rounds.parse()?;
    if what == "build" {
        let kind: Kind = how.parse()?;
        for _ in 0..rounds {
            black_box(tamis::build(0..20_000u64).kind(kind).fpr(0.01).threads(1).finish()?);
        }
        return Ok(());
    }
    let name = |i| if i % 2 == 0 { format!("key-{}", i / 2) } else { format!("unlisted-{i}") };
    let names: Vec<String> = (0..QUERIES).map(name).collect();
    let one = how == "one";
    if what.contains("golden-maps") {
        let map = Map::read(what)?;
        for _ in 0..rounds {
            match one {
                true => names.iter().try_for_each(|key| map.get(key).map(|value| _ = black_box(value)))?,
                false => drop(black_box(map.get_many(&names)?)),
            }
        }
    } else if what.contains("golden-sets") {
        // Their keys are integers.
        let (index, mut ids, keys) = (Sets::read(what)?, vec![], (0..QUERIES).collect::<Vec<_>>());
        for _ in 0..rounds {
            match one {
                true => keys.iter().try_for_each(|&key| index.find_into(key, black_box(&mut ids)))?,
                false => index.find_many(&keys, |_, ids| _ = black_box(ids.len()))?,
            }
        }
    } else {
        let filter = Filter::read(what)?.into_typed::<str>()?;
        for _ in 0..rounds {
            match one {
                true => names.iter().for_each(|key| _ = black_box(filter.contains(key.as_str()))),
                false => drop(black_box(filter.contains_many(&names))),
            }
        }
    }
    Ok(())
}
