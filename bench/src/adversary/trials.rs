//! an attack -> claims: the ways in which an adversary tries to match more often than the fpr allows.
//!
//! All of them see only answers, but one (the second half of [`reinsert`]), which is told the key behind a false positive.

use std::collections::{HashMap, VecDeque};

use clap::ValueEnum;
use serde::Serialize;
use tamis::Digest;

use super::attack::Attack;
use super::claim::Claim;
use super::subject::Work;

/// A way to attack. Its number is a part of the seed of its keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Trial {
    /// Strangers that were never queried before.
    Fresh = 0,
    /// Found false positives, a thousand times each.
    Replay = 1,
    /// Fresh, replayed and neighbouring keys, for 10 n/eps queries.
    Mixed = 2,
    /// The pool again and again, while the frontier goes round.
    Crossing = 3,
    /// Keys that were false positives in two epochs.
    Survivors = 4,
    /// Keys that were false positives twice within a few passes over the pool, a thousand times each.
    Concentrate = 5,
    /// Fresh, replayed, neighbouring and removed keys, while keys come and go; half of the new ones were there before.
    Churn = 6,
    /// Keys are removed and inserted again, and the pool is replayed.
    Reinsert = 9,
    /// Removed keys: at once, after the report, a tenth of all keys later, in a window, among fresh keys.
    Removed = 7,
    /// Old false positives and removed keys, each time a sixteenth of all keys has moved to the next hash function.
    Timed = 8,
    /// Bits per item over five epochs.
    Space = 10,
    /// Accesses of the reverse map.
    Reads = 11,
}

impl Trial {
    pub(super) fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    pub(super) fn deletes(self) -> bool {
        matches!(self, Trial::Churn | Trial::Reinsert | Trial::Removed)
    }

    /// Runs the trial. `steps`: the keys that a report moves, as the filter promises.
    pub(super) fn run(self, attack: &mut Attack, steps: f64) -> Vec<Claim> {
        match self {
            Trial::Fresh => fresh(attack),
            Trial::Replay => replay(attack),
            Trial::Mixed => mixed(attack),
            Trial::Crossing => crossing(attack),
            Trial::Survivors => survivors(attack),
            Trial::Concentrate => concentrate(attack),
            Trial::Churn => churn(attack),
            Trial::Reinsert => reinsert(attack),
            Trial::Removed => removed(attack),
            Trial::Timed => timed(attack),
            Trial::Space => space(attack),
            Trial::Reads => reads(attack, steps),
        }
    }
}

/// Queries of the trials that are not measured in epochs.
const QUERIES: u64 = 20_000_000;

fn fresh(attack: &mut Attack) -> Vec<Claim> {
    while attack.goes_on() && attack.meter.asked < QUERIES {
        let key = attack.stranger();
        attack.ask(key);
    }
    attack.meter.claims(attack.subject.fpr())
}

fn replay(attack: &mut Attack) -> Vec<Claim> {
    /// The false positives, at most, and how often each is asked for.
    const POOL: usize = 5000;
    const TIMES: usize = 1000;
    let pool = attack.find(POOL.min(attack.members.len() / 20).max(1));
    let mut wrong = 0;
    for _ in 0..TIMES {
        if !attack.goes_on() {
            break;
        }
        wrong += attack.replay(&pool);
    }
    // Reports of others move keys, and one in 1/eps of them is false again.
    vec![Claim::new(format!("false replays of {}", pool.len()), wrong as f64, (pool.len() as f64 / 100.0).floor())]
}

/// The keys that an attacker remembers at most.
const POOL: usize = 1 << 16;

/// Puts a key into a pool, in place of another where the pool is full.
fn remember(pool: &mut Vec<u64>, most: usize, key: u64, dice: u64) {
    if pool.len() < most {
        pool.push(key);
    } else {
        pool[(dice % most as u64) as usize] = key;
    }
}

fn mixed(attack: &mut Attack) -> Vec<Claim> {
    let rate = attack.subject.fpr();
    let queries = (10.0 * attack.n() as f64 / rate) as u64;
    let mut pool = vec![];
    while attack.goes_on() && attack.meter.asked < queries {
        let dice = attack.dice.draw();
        let old = |pool: &Vec<u64>| pool[(dice as u32 as usize) % pool.len()];
        let key = match (dice >> 60) % 3 {
            1 if !pool.is_empty() => old(&pool),
            2 if !pool.is_empty() => old(&pool).wrapping_add(2 * (dice >> 40 & 1023)),
            _ => dice & !1,
        };
        if attack.ask(key) {
            remember(&mut pool, POOL, key, dice >> 8);
        }
    }
    attack.meter.claims(rate)
}

fn crossing(attack: &mut Attack) -> Vec<Claim> {
    /// Epochs, stops in each, and the keys of either pool.
    const EPOCHS: usize = 12;
    const STOPS: u64 = 64;
    const KEYS: usize = 4096;
    let rate = attack.subject.fpr();
    let most = KEYS.min(attack.members.len() / 4).max(1);
    // One pool is asked for all the time, the other once in an epoch: then every key and every stranger has moved.
    let (mut often, mut rarely): (Vec<u64>, Vec<u64>) = (vec![], vec![]);
    let ([mut often_asked, mut often_wrong], [mut rarely_asked, mut rarely_wrong]) = ([0, 0], [0, 0]);
    let stop = (attack.n() / 4 / STOPS).max(1);
    for _ in 0..EPOCHS {
        let mut since = 0;
        let ended = attack.epoch(|attack, key| {
            let pool = if key & 2 == 0 { &mut often } else { &mut rarely };
            if pool.len() < most {
                pool.push(key);
            }
            since += 1;
            if since >= stop {
                since = 0;
                often_asked += often.len() as u64;
                often_wrong += attack.replay(&often);
            }
        });
        rarely_asked += rarely.len() as u64;
        rarely_wrong += attack.replay(&rarely);
        if !ended {
            break;
        }
    }
    let mut claims = attack.meter.claims(rate);
    claims.push(Claim::rate(format!("of {often_asked} replays"), often_wrong, often_asked, rate));
    claims.push(Claim::rate(format!("of {rarely_asked} once an epoch"), rarely_wrong, rarely_asked, rate));
    claims
}

fn survivors(attack: &mut Attack) -> Vec<Claim> {
    /// Epochs that the survivors are asked in, and how often in a row.
    const EPOCHS: usize = 6;
    const TIMES: usize = 16;
    let rate = attack.subject.fpr();
    let mut once = attack.find(attack.members.len() / 2);
    attack.epoch(|_, _| ());
    // The second epoch: those that are false again.
    let mut twice: Vec<u64> = vec![];
    once.retain(|&key| {
        let again = attack.ask(key);
        twice.extend(again.then_some(key));
        !again
    });
    let ([mut once_asked, mut once_wrong], [mut twice_asked, mut twice_wrong]) = ([0, 0], [0, 0]);
    for _ in 0..EPOCHS {
        let ended = attack.epoch(|_, _| ());
        once_asked += once.len() as u64;
        once_wrong += attack.replay(&once);
        for _ in 0..TIMES {
            twice_asked += twice.len() as u64;
            twice_wrong += attack.replay(&twice);
        }
        if !ended {
            break;
        }
    }
    vec![
        Claim::rate(format!("of {once_asked} of once"), once_wrong, once_asked, rate),
        Claim::rate(format!("of {twice_asked} of twice"), twice_wrong, twice_asked, rate),
    ]
}

fn concentrate(attack: &mut Attack) -> Vec<Claim> {
    /// Passes over the pool, and how often the chosen are asked for.
    const PASSES: usize = 8;
    const TIMES: usize = 1000;
    let rate = attack.subject.fpr();
    let pool = attack.find(attack.members.len() / 2);
    let mut times = vec![0u32; pool.len()];
    let (mut asked, mut wrong) = (0, 0);
    for _ in 0..PASSES {
        for (&key, times) in pool.iter().zip(&mut times) {
            *times += u32::from(attack.ask(key));
        }
        asked += pool.len() as u64;
    }
    wrong += times.iter().map(|&times| u64::from(times)).sum::<u64>();
    let chosen: Vec<u64> = pool.iter().zip(&times).filter(|pair| *pair.1 >= 2).map(|pair| *pair.0).collect();
    let mut claims = vec![Claim::rate(format!("of {asked} replays"), wrong, asked, rate)];
    // No key was a false positive twice, so there is none to repeat.
    if chosen.is_empty() {
        return claims;
    }
    (asked, wrong) = (0, 0);
    for _ in 0..TIMES {
        if !attack.goes_on() {
            break;
        }
        asked += chosen.len() as u64;
        wrong += attack.replay(&chosen);
    }
    claims.push(Claim::rate(format!("of {asked} of {} chosen", chosen.len()), wrong, asked, rate));
    claims
}

fn churn(attack: &mut Attack) -> Vec<Claim> {
    /// One key goes and one comes every so many queries.
    const EVERY: u64 = 20;
    let rate = attack.subject.fpr();
    let (mut pool, mut gone): (Vec<u64>, Vec<u64>) = (vec![], vec![]);
    while attack.goes_on() && attack.meter.asked < QUERIES {
        let dice = attack.dice.draw();
        if attack.meter.asked.is_multiple_of(EVERY) {
            let at = attack.below(attack.members.len());
            let key = attack.delete(at);
            remember(&mut gone, 4096, key, dice >> 8);
            let key = if dice & 1 == 0 {
                let at = attack.below(gone.len());
                gone.swap_remove(at)
            } else {
                attack.dice.draw() | 1
            };
            attack.insert(key);
        }
        let old = |pool: &[u64]| pool[(dice as u32 as usize) % pool.len()];
        let key = match dice >> 61 {
            0..2 if !pool.is_empty() => old(&pool),
            2 if !pool.is_empty() => (old(&pool) & !1).wrapping_add(2 * (dice >> 40 & 1023)),
            3..5 if !gone.is_empty() => old(&gone),
            _ => dice & !1,
        };
        // A removed key may come back, and then it is no false positive.
        if attack.ask(key) && key & 1 == 0 {
            remember(&mut pool, 4096, key, dice >> 8);
        }
    }
    attack.meter.claims(rate)
}

fn removed(attack: &mut Attack) -> Vec<Claim> {
    /// Removals for every key and pattern; the removed keys of a window, and those of them that matched.
    const TIMES: u64 = 5;
    const WINDOW: usize = 1000;
    const SUSPECTS: usize = 64;
    let (rate, rounds) = (attack.subject.fpr(), TIMES * attack.n());
    let tenth = attack.members.len() / 10;
    let mut claims = vec![];
    for pattern in ["at once", "after the report", "a tenth later", "in a window", "among fresh"] {
        let (mut gone, mut suspects) = (VecDeque::new(), vec![]);
        let (mut asked, mut wrong) = (0, 0);
        for _ in 0..rounds {
            if !attack.goes_on() {
                break;
            }
            let at = attack.below(attack.members.len());
            let key = attack.delete(at);
            gone.push_back(key);
            let mut now = vec![];
            match pattern {
                "at once" => now.push(key),
                "after the report" => {
                    attack.ask(key);
                    now.push(key);
                }
                "a tenth later" if gone.len() > tenth => now.extend(gone.swap_remove_back(attack.below(tenth))),
                "a tenth later" => {}
                "in a window" => {
                    gone.drain(..gone.len().saturating_sub(WINDOW));
                    now.extend((0..4).map(|_| gone[attack.below(gone.len())]));
                    now.extend((0..4).filter_map(|_| suspects.get(attack.below(SUSPECTS))));
                }
                _ => {
                    for _ in 0..4 {
                        let fresh = attack.stranger();
                        attack.ask(fresh);
                    }
                    now.extend((gone.len() > 64).then(|| gone.pop_front()).flatten());
                }
            }
            for key in now {
                asked += 1;
                if attack.ask(key) {
                    wrong += 1;
                    remember(&mut suspects, SUSPECTS, key, key >> 8);
                }
            }
            let new = attack.dice.draw() | 1;
            attack.insert(new);
        }
        claims.push(Claim::rate(format!("of {asked} {pattern}"), wrong, asked, rate));
    }
    claims.extend(attack.meter.claims(rate));
    claims
}

fn timed(attack: &mut Attack) -> Vec<Claim> {
    /// The keys of either pool, and the queries between two removals.
    const KEYS: usize = 512;
    const EVERY: u64 = 4;
    let (rate, n) = (attack.subject.fpr(), attack.n());
    let (mut found, mut gone): (Vec<u64>, Vec<u64>) = (vec![], vec![]);
    let (mut asked, mut wrong, mut last) = (0, 0, 0);
    while attack.goes_on() && attack.meter.asked < QUERIES {
        let key = attack.stranger();
        if attack.ask(key) {
            remember(&mut found, KEYS, key, key >> 8);
        }
        if attack.subject.deletes() && gone.len() < KEYS && attack.meter.asked.is_multiple_of(EVERY) {
            let at = attack.below(attack.members.len());
            gone.push(attack.delete(at));
            let new = attack.dice.draw() | 1;
            attack.insert(new);
        }
        // A filter without epochs is taken for one that moves four keys for a report.
        let moved = if attack.subject.epoch().is_some() { attack.progress } else { 4 * attack.meter.wrong };
        let sixteenth = 16 * moved / n;
        if sixteenth != last {
            last = sixteenth;
            asked += (found.len() + gone.len()) as u64;
            wrong += attack.replay(&found) + attack.replay(&gone);
            gone.clear();
        }
    }
    let mut claims = attack.meter.claims(rate);
    claims.push(Claim::rate(format!("of {asked} timed"), wrong, asked, rate));
    claims
}

fn reinsert(attack: &mut Attack) -> Vec<Claim> {
    /// Rounds through all keys, stops in each, and the keys of the pool.
    const ROUNDS: usize = 2;
    const STOPS: usize = 20;
    const KEYS: usize = 2000;
    let rate = attack.subject.fpr();
    let pool = attack.find(KEYS.min(attack.members.len() / 4).max(1));
    let (mut asked, mut wrong) = (0, 0);
    for _ in 0..ROUNDS {
        for part in attack.members.clone().chunks(attack.members.len().div_ceil(STOPS)) {
            part.iter().for_each(|&key| attack.shake(key));
            asked += pool.len() as u64;
            wrong += attack.replay(&pool);
        }
    }
    let mut claims = vec![Claim::rate(format!("of {asked} replays"), wrong, asked, rate)];
    claims.extend(accused(attack, rate));
    claims
}

/// An adversary who knows the member behind a false positive has it removed and inserted again.
fn accused(attack: &mut Attack, rate: f64) -> Option<Claim> {
    /// False positives, and how often each is tried.
    const PAIRS: usize = 1000;
    const TIMES: usize = 20;
    let names: HashMap<Digest, u64> = attack.members.iter().map(|&key| (attack.subject.digest(key), key)).collect();
    let (mut asked, mut wrong) = (0, 0);
    for _ in 0..PAIRS {
        let key = loop {
            let key = attack.stranger();
            if attack.look(key) {
                break key;
            }
            if !attack.goes_on() {
                return None;
            }
        };
        let behind: Vec<u64> = attack.accuse(key).iter().filter_map(|digest| names.get(digest)).copied().collect();
        // Bits of keys that have gone have nobody behind them.
        if behind.is_empty() {
            continue;
        }
        for _ in 0..TIMES {
            behind.iter().for_each(|&key| attack.shake(key));
            asked += 1;
            wrong += u64::from(attack.ask(key));
        }
    }
    (asked > 0).then(|| Claim::rate(format!("of {asked} of accused"), wrong, asked, rate))
}

fn space(attack: &mut Attack) -> Vec<Claim> {
    const EPOCHS: usize = 5;
    /// Reports between two looks at the size.
    const EVERY: u64 = 256;
    let mut peaks: Vec<f64> = vec![];
    let mut pool = vec![];
    for _ in 0..EPOCHS {
        let mut peak: f64 = attack.bits_per_item();
        let mut since = 0;
        let ended = attack.epoch(|attack, key| {
            // Old ones are asked for as well, one for each new one.
            remember(&mut pool, POOL, key, key >> 8);
            let at = attack.below(pool.len());
            attack.ask(pool[at]);
            since += 1;
            if u64::is_multiple_of(since, EVERY) {
                peak = peak.max(attack.bits_per_item());
            }
        });
        peaks.push(peak.max(attack.bits_per_item()));
        if !ended {
            break;
        }
    }
    let least = peaks.iter().copied().fold(f64::INFINITY, f64::min);
    let most = peaks.iter().copied().fold(0.0, f64::max);
    vec![Claim::new(format!("largest peak of {} epochs over the smallest", peaks.len()), most / least, 1.02)]
}

fn reads(attack: &mut Attack, steps: f64) -> Vec<Claim> {
    const REFUSED: usize = 10_000;
    attack.epoch(|_, _| ());
    let per_false = attack.reads as f64 / attack.meter.wrong.max(1) as f64;
    // .02 is for the collisions of four keys that move, one of 256 of which meets another.
    let limit = 1.0 + steps + 0.005 * steps.max(4.0);
    let mut claims = vec![Claim::new("accesses per false positive", per_false, limit)];
    // A report of a key that the filter refuses must not ask the map.
    let mut needless = 0;
    for _ in 0..REFUSED {
        let key = attack.stranger();
        if !attack.look(key) {
            let receipt = attack.subject.work(Work::Report, key).unwrap_or_default();
            needless += u64::from(receipt.changed) + u64::from(receipt.reads - receipt.moved.min(receipt.reads));
        }
    }
    claims.push(Claim::new("accesses on negatives", needless as f64, 0.0));
    claims
}
