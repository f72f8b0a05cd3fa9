//! broom filters of several sizes and rates under permanent attack -> how full their parts get.
//!
//! The paper's bounds are asymptotic. Here they are looked at: adaptivity bits per block ([Broom] lemma 8), keys that blocks have no room for
//! (lemmas 17 and 18), and reads of the reverse map by insertions and removals (section 4). Samples are taken all along; a peak is the worst of them.

use std::error::Error;

use serde::Serialize;
use tamis::adaptive::{Broom, LargeBroom, Memory, Remove};
use tamis::internals::adaptive::{Block, Statistics};
use tamis::internals::math::large;

use super::Options;
use crate::adversary::RATE;
use crate::adversary::claim::{CHANCE, most};
use crate::args::is_named;
use crate::machine::Machine;
use crate::measure::progress;
use crate::stream::{Stream, scramble};
use crate::table::Table;

const SAMPLES: u64 = 16;
/// Rates of the broom filter of large remainders: the highest it has, and lower ones.
const LARGE: [(&str, u32); 3] = [("large broom 2^-10", 10), ("large broom 2^-14", 14), ("large broom 2^-18", 18)];
/// Queries of a simulation at most: where false positives are so rare that an epoch takes more, a size is left out.
const MOST: f64 = 4e9;

/// A filter whose parts can be counted.
trait Parts: Remove {
    fn parts(&self) -> Statistics;
    /// Keys that move for a false positive.
    fn steps(&self) -> u64;
}

impl Parts for Broom {
    fn parts(&self) -> Statistics {
        self.statistics()
    }

    fn steps(&self) -> u64 {
        4
    }
}

/// Its yard holds graves too, and there are no blocks.
impl Parts for LargeBroom {
    fn parts(&self) -> Statistics {
        let (in_yard, yard_room) = self.yard();
        Statistics { in_yard, yard_room, ..Statistics::default() }
    }

    fn steps(&self) -> u64 {
        large::STEPS.into()
    }
}

#[derive(Default, Serialize)]
pub(super) struct Simulated {
    filter: &'static str,
    rate: f64,
    keys: u64,
    epochs: u64,
    queries: u64,
    false_positives: u64,
    bits_per_item: f64,
    /// Means over all blocks: the highest of all samples; and those at the end of every epoch.
    adaptivity_per_block: f64,
    adaptivity_by_epoch: Vec<f64>,
    widest_block: u64,
    yard_peak: u64,
    yard_room: u64,
    grave_peak: u64,
    grave_room: u64,
    /// Keys that were put in after the attack, and taken out.
    inserted: u64,
    /// Reads of the map beyond those of moved keys.
    reads_per_insert: f64,
    reads_per_delete: f64,
    reads_per_false: f64,
    lost: u64,
    error: Option<String>,
}

impl Simulated {
    pub(super) fn is_clean(&self) -> bool {
        // An insertion reads the map where it meets the fingerprint of another key: as rarely as a stranger does.
        let reads = (self.reads_per_insert * self.inserted as f64).round() as u64;
        let rarely = reads <= most(self.rate * self.inserted as f64, CHANCE);
        let kept = self.false_positives <= most(self.rate * self.queries as f64, CHANCE);
        let room = self.yard_peak <= self.yard_room && self.grave_peak <= self.grave_room;
        self.lost == 0 && self.error.is_none() && room && rarely && kept
    }

    fn look(&mut self, broom: &impl Parts) -> Statistics {
        let found = broom.parts();
        let mean = found.adaptivity_bits as f64 / found.blocks.max(1) as f64;
        self.adaptivity_per_block = self.adaptivity_per_block.max(mean);
        self.widest_block = self.widest_block.max(found.widest_block);
        self.yard_peak = self.yard_peak.max(found.in_yard);
        self.yard_room = found.yard_room;
        self.grave_peak = self.grave_peak.max(found.tombstones);
        self.grave_room = found.tombstone_room;
        self.bits_per_item = self.bits_per_item.max(8.0 * broom.memory_bytes() as f64 / broom.len().max(1) as f64);
        found
    }
}

pub(super) fn run(options: &Options) -> Result<Vec<Simulated>, Box<dyn Error>> {
    let mut all = vec![];
    for &keys in &options.sizes {
        let named = |name: &str| is_named(&options.filters, name);
        let secret = scramble(options.timing.seed ^ keys);
        let key = [secret, scramble(secret)];
        for (name, block) in [("broom", Block::Medium), ("broom compact", Block::Large)] {
            if named(name) {
                let builder = Broom::with_capacity(keys).fpr(RATE).block(block).secret(key);
                all.push(simulate(options, name, builder.build::<u64>()?, keys));
            }
        }
        for (name, bits) in LARGE {
            let rate = 1.0 / f64::from(1 << bits);
            if named(name) && (options.epochs * keys) as f64 / f64::from(large::STEPS) / rate <= MOST {
                let builder = LargeBroom::with_capacity(keys).fpr(rate).secret(key);
                all.push(simulate(options, name, builder.build::<u64>()?, keys));
            }
        }
    }
    progress("");
    Ok(all)
}

fn simulate(options: &Options, name: &'static str, mut broom: impl Parts, keys: u64) -> Simulated {
    progress(format_args!("simulating {name}, {keys} keys"));
    let mut map = Memory::new();
    let mut dice = Stream::new(options.timing.seed ^ keys);
    let mut members: Vec<u64> = (0..keys).map(|_| dice.draw() | 1).collect();
    let mut found = Simulated { filter: name, rate: broom.fpr(), keys, ..Simulated::default() };
    if let Err(e) = attack(options, &mut broom, &mut map, &mut members, &mut dice, &mut found) {
        found.error = Some(e.to_string());
    }
    found.lost = members.iter().filter(|&&key| broom.contains(key) != Ok(true)).count() as u64;
    found
}

fn attack(
    options: &Options,
    broom: &mut impl Parts,
    map: &mut Memory,
    members: &mut [u64],
    dice: &mut Stream,
    found: &mut Simulated,
) -> Result<(), Box<dyn Error>> {
    for &key in &*members {
        broom.insert(key, map)?;
    }
    let mut reads = 0;
    // A repair moves a few keys: this many false positives are a sixteenth of an epoch.
    let sample = (broom.len() / broom.steps() / SAMPLES).max(1);
    for epoch in 0..options.epochs {
        while broom.epoch() <= epoch {
            let key = dice.draw() & !1;
            found.queries += 1;
            if broom.contains(key)? {
                found.false_positives += 1;
                reads += u64::from(broom.adapt(key, map)?.reads);
                if found.false_positives.is_multiple_of(sample) {
                    found.look(broom);
                }
            }
        }
        found.epochs += 1;
        let now = found.look(broom);
        found.adaptivity_by_epoch.push(now.adaptivity_bits as f64 / now.blocks.max(1) as f64);
    }
    found.reads_per_false = reads as f64 / found.false_positives.max(1) as f64;
    churn(broom, map, members, dice, found)
}

/// Replaces a tenth of the keys, one by one; every other new key was there before.
fn churn(
    broom: &mut impl Parts,
    map: &mut Memory,
    members: &mut [u64],
    dice: &mut Stream,
    found: &mut Simulated,
) -> Result<(), Box<dyn Error>> {
    let count = (members.len() / 10).max(1);
    let (mut inserts, mut deletes) = (0, 0);
    for i in 0..count {
        let at = dice.below(members.len());
        let stats = broom.remove(members[at], map)?;
        deletes += u64::from(stats.reads - stats.moved().min(stats.reads));
        if i % 2 == 0 {
            members[at] = dice.draw() | 1;
        }
        let stats = broom.insert(members[at], map)?;
        inserts += u64::from(stats.reads - stats.moved().min(stats.reads));
        if i % (count / 16).max(1) == 0 {
            found.look(broom);
        }
    }
    found.inserted = count as u64;
    found.reads_per_insert = inserts as f64 / count as f64;
    found.reads_per_delete = deletes as f64 / count as f64;
    Ok(())
}

pub(super) fn table(options: &Options, machine: &Machine, all: &[Simulated]) -> Table {
    let errors: String =
        all.iter().filter_map(|s| Some(format!(" {} {}: ERROR {}.", s.filter, s.keys, s.error.as_ref()?))).collect();
    Table::of(all)
        .text("filter", |s| s.filter)
        .text("keys", |s| s.keys)
        .text("epochs", |s| s.epochs)
        .number("/ eps", 3, |s| s.false_positives as f64 / s.queries.max(1) as f64 / s.rate)
        .number("bits/item", 2, |s| s.bits_per_item)
        .number("bits/block", 1, |s| s.adaptivity_per_block)
        .text("per epoch", |s| {
            s.adaptivity_by_epoch.iter().map(|bits| format!("{bits:.1}")).collect::<Vec<_>>().join(" ")
        })
        .text("widest", |s| s.widest_block)
        .text("yard peak", |s| s.yard_peak)
        .text("room", |s| s.yard_room)
        .text("graves peak", |s| s.grave_peak)
        .text("room", |s| s.grave_room)
        .number("reads/false", 4, |s| s.reads_per_false)
        .number("reads/insert", 5, |s| s.reads_per_insert)
        .number("reads/delete", 4, |s| s.reads_per_delete)
        .text("lost", |s| s.lost)
        .table(
            format!(
                "Broom filters, full, under permanent attack: {} epochs, then a tenth of the keys replaced; eps = 2^-8 \
                 unless named, seed {}. {machine}.",
                options.epochs, options.timing.seed
            ),
            format!(
                "bits/block: adaptivity bits, mean over all blocks, the highest of {SAMPLES} samples an epoch; per \
                 epoch: at the end of each; widest: the most in one block. yard: keys that blocks had no room for; \
                 graves: deleted keys that are remembered. bits/item: the highest. reads/insert, reads/delete: of the \
                 reverse map, without those of the keys moved meanwhile. A large broom has no blocks, and graves lie \
                 in its yard; sizes at which its epochs take more than {MOST:.0e} queries are left out.{errors}"
            ),
        )
}
