//! adaptive filters + queries of keys that were removed -> the promised rate, whatever the pattern of the queries.
//!
//! A removed key is a key that the filter has seen, which an attacker knows: a filter that forgets it only in part matches it. Each attack removes a
//! random key, queries, reports what matched, and inserts another key. `-- adversary` of the benchmark does the same on larger filters.

use tamis::adaptive::{Memory, Remove};

use super::adaptive::{broom, cuckoos, extended, growing, large, low, quotients, small};
use super::mix;

/// When removed keys are queried.
#[derive(Clone, Copy, Debug)]
enum Attack {
    /// At once, and again after the repair.
    AtOnce,
    /// After a tenth of all keys was removed.
    Later,
    /// The last few, again and again.
    Window,
    /// Among unlisted keys, so that keys move meanwhile.
    Among,
    /// When a sixteenth of all keys has moved to the next hash function: the progress shows in the number of reports.
    Timed,
    /// All of the above, beside old false positives, and half of the keys that come were there before.
    Mixed,
}

const ATTACKS: [Attack; 6] =
    [Attack::AtOnce, Attack::Later, Attack::Window, Attack::Among, Attack::Timed, Attack::Mixed];

/// A filter under attack.
struct Victim<F> {
    filter: F,
    map: Memory,
    asked: u64,
    wrong: u64,
    /// Keys that moved to the next hash function.
    moved: u64,
}

impl<F: Remove> Victim<F> {
    /// Queries a key that is not in the set, and reports it where it matches; whether it did.
    fn ask(&mut self, key: u64) -> bool {
        self.asked += 1;
        let yes = self.filter.contains(key).unwrap();
        if yes {
            self.wrong += 1;
            self.moved += u64::from(self.filter.adapt(key, &mut self.map).unwrap().moved());
        }
        yes
    }

    fn ask_all(&mut self, keys: impl IntoIterator<Item = u64>) {
        for key in keys {
            self.ask(key);
        }
    }
}

/// Attacks a filter of `keys` keys with `rounds` removals; returns queries, matches and how often all keys moved.
fn attack<F: Remove>(filter: F, keys: u64, rounds: u64, how: Attack) -> (u64, u64, u64) {
    let mut victim = Victim { filter, map: Memory::new(), asked: 0, wrong: 0, moved: 0 };
    let mut live: Vec<u64> = (0..keys).map(mix).collect();
    live.iter().for_each(|&key| assert!(victim.filter.insert(key, &mut victim.map).unwrap().changed));
    let (mut gone, mut pool): (Vec<u64>, Vec<u64>) = (vec![], vec![]);
    let mut sixteenths = 0;
    for round in 0..rounds {
        let dice = mix(1 << 50 | round);
        let at = (dice % live.len() as u64) as usize;
        let key = live[at];
        victim.moved += u64::from(victim.filter.remove(key, &mut victim.map).unwrap().moved());
        gone.push(key);
        let old = |gone: &[u64], i: u64| gone[(mix(dice ^ i) % gone.len() as u64) as usize];
        let unlisted = |i: u64| mix(1 << 60 | round << 8 | i);
        match how {
            Attack::AtOnce => victim.ask_all([key, key]),
            Attack::Later if gone.len() as u64 > keys / 10 => {
                let at = dice as usize % gone.len();
                victim.ask(gone.swap_remove(at));
            }
            Attack::Later => {}
            Attack::Window => {
                let from = gone.len().saturating_sub(64);
                victim.ask_all((0..8).map(|i| old(&gone[from..], i)));
            }
            Attack::Among => {
                victim.ask_all((0..4).map(unlisted));
                victim.ask(gone[gone.len().saturating_sub(64)]);
            }
            Attack::Timed => {
                victim.ask_all((0..4).map(unlisted));
                if victim.moved * 16 / keys != sixteenths {
                    victim.ask_all(gone.drain(..));
                    sixteenths = victim.moved * 16 / keys;
                }
            }
            Attack::Mixed => {
                victim.ask(key);
                victim.ask(old(&gone, 0));
                if victim.ask(unlisted(0)) {
                    pool.push(unlisted(0));
                }
                if !pool.is_empty() {
                    victim.ask(old(&pool, 1));
                    victim.ask(old(&pool, 2) ^ 1);
                }
            }
        }
        let back = matches!(how, Attack::Mixed) && dice & 1 << 40 != 0;
        let new = if back { gone.swap_remove((dice >> 41) as usize % gone.len()) } else { mix(keys + round) };
        assert!(victim.filter.insert(new, &mut victim.map).unwrap().changed);
        live[at] = new;
    }
    assert!(live.iter().all(|&key| victim.filter.contains(key).unwrap()), "{how:?}: a key is lost");
    (victim.asked, victim.wrong, victim.filter.epoch())
}

/// All attacks; the rate that was promised must hold in each, within five standard deviations.
fn holds<F: Remove>(rate: f64, make: impl Fn(u64) -> F) {
    let (keys, rounds) = if std::env::var_os("TAMIS_SLOW").is_some() { (20_000, 200_000) } else { (1000, 8000) };
    let mut epochs = 0;
    for how in ATTACKS {
        let (asked, wrong, turned) = attack(make(keys), keys, rounds, how);
        let mean = rate * asked as f64;
        assert!(asked >= rounds / 2, "{how:?}: {asked} queries in {rounds} rounds");
        assert!(wrong as f64 <= mean + 5.0 * mean.sqrt(), "{how:?}: {wrong} of {asked}, at most {mean:.0} promised");
        epochs += turned;
    }
    assert!(epochs > 0, "no key ever moved: nothing was attacked");
}

const RATE: f64 = 1.0 / 32.0;

#[test]
fn brooms_hold_when_keys_are_removed() {
    holds(RATE, |keys| broom(keys, RATE));
    holds(RATE, |keys| small(keys, RATE));
    holds(RATE, |keys| large(keys, RATE));
    holds(RATE, |keys| growing(keys, RATE));
}

/// At the highest of its own rates, 2^-10.
#[test]
fn a_large_broom_holds_when_keys_are_removed() {
    holds(1.0 / 1024.0, |keys| low(keys, 1.0 / 1024.0));
}

#[test]
fn cascades_hold_when_keys_are_removed() {
    holds(RATE, |keys| quotients(keys, RATE));
    holds(RATE, |keys| cuckoos(keys, RATE));
}

#[test]
fn adaptive_quotients_hold_when_keys_are_removed() {
    holds(RATE, |keys| extended(keys, RATE));
}
