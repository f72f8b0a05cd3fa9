//! what the many-sets index must reach, and what it does.

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use tamis::internals::tune::{Body, Shape};
use tamis::sets::{self, Kind};

use super::Options;
use super::grid::show;
use super::methods::{Method, PRESET, RAMBO};
use super::tuned::errors;
use crate::many::measured::{self, How};
use crate::many::{Index, Load, generated, real};
use crate::ours;

/// Which side of a number is good.
#[derive(Clone, Copy, Serialize)]
enum Wanted {
    AtLeast(f64),
    AtMost(f64),
    /// No target: a number to read beside others.
    Any,
}

#[derive(Serialize)]
pub(super) struct Target {
    what: String,
    wanted: Wanted,
    measured: f64,
    how: String,
}

impl Target {
    fn met(&self) -> Option<bool> {
        match self.wanted {
            Wanted::AtLeast(least) => Some(self.measured >= least),
            Wanted::AtMost(most) => Some(self.measured <= most),
            Wanted::Any => None,
        }
    }
}

#[derive(Default, Serialize)]
pub(super) struct Targets(Vec<Target>);

use Wanted::{Any, AtLeast, AtMost};
use tamis_bench::measure;
use tamis_bench::stream::Stream;
use tamis_bench::table::Table;

impl Targets {
    fn add(&mut self, what: impl Into<String>, wanted: Wanted, measured: f64, how: impl Into<String>) {
        self.0.push(Target { what: what.into(), wanted, measured, how: how.into() });
    }

    /// Whether nothing was lost; a target that was missed is in the table.
    pub(super) fn is_clean(&self) -> bool {
        self.0.iter().all(|target| !target.what.starts_with(LOST) || target.measured == 0.0)
    }

    pub(super) fn table(&self, scale: f64) -> Table {
        Table::of(&self.0)
            .text("what", |target| &target.what)
            .text("wanted", |target| match target.wanted {
                AtLeast(least) => format!("at least {}", show(least)),
                AtMost(most) => format!("at most {}", show(most)),
                Any => "-".into(),
            })
            .text("measured", |target| show(target.measured))
            .text("met", |target| target.met().map_or("", |met| if met { "yes" } else { "NO" }))
            .text("how", |target| &target.how)
            .table(
                format!("Targets, at scale {scale}."),
                "ns are medians over rounds in which all compared indexes take turns; processor time, the same keys \
                 for all. FilterBuilder: wall time of all threads.",
            )
    }
}

/// How a line that must be zero begins.
const LOST: &str = "lost";

/// Measures all; what needs files is left out where there are none.
pub(super) fn run(options: &Options, folder: Option<&Path>) -> Result<Targets, Box<dyn Error>> {
    let mut targets = Targets::default();
    rivals(&mut targets, options)?;
    large(&mut targets, options)?;
    if let Some(dir) = folder {
        countries(&mut targets, &super::countries(dir)?, options)?;
        genomes(&mut targets, &real::genomes(&dir.join("genomes"))?, options)?;
    }
    Ok(targets)
}

fn shape(shape: &Shape) -> String {
    let rows = |repetitions: u32, partitions: u32| match repetitions {
        0 | 1 => String::new(),
        r => format!(", r = {r}, b = {partitions}"),
    };
    let mut words = match shape.body {
        Body::Bloom { hashes, repetitions, partitions, .. } => format!("k = {hashes}{}", rows(repetitions, partitions)),
        Body::Cuckoo { bits, repetitions, partitions, .. } => format!("{bits} bits{}", rows(repetitions, partitions)),
    };
    if let Some(rate) = shape.existence {
        words += &format!(", filter {}", show(rate));
    }
    if let Some(sets) = shape.heavy.filter(|&sets| sets < u32::MAX) {
        words += &format!(", listed from {} sets on", u64::from(sets) + 1);
    }
    words
}

/// Builds an index, or says whose it is that cannot be built.
fn made(method: Method, load: &Load, bits: u64) -> Result<Box<dyn Index>, Box<dyn Error>> {
    method.build(load, bits).map_err(|e| format!("{}: {e}", method.name()).into())
}

fn rivals(targets: &mut Targets, options: &Options) -> Result<(), Box<dyn Error>> {
    let load = generated::rcv1(options.scale, options.timing.seed);
    let bits = options.rcv1_bits();
    let absent = load.absent(options.timing.queries);
    let methods = [Method::Bigsi, Method::Csc, RAMBO, PRESET];
    let mut built = Vec::new();
    for method in methods {
        built.push(made(method, &load, bits)?);
    }
    let indexes: Vec<&dyn Index> = built.iter().map(AsRef::as_ref).collect();
    let false_sets: Vec<f64> = indexes.iter().map(|index| measured::absent(*index, &absent)).collect();
    let ns: Vec<f64> = measured::times(&indexes, &[&absent], How::Alone, options.timing.rounds)
        .into_iter()
        .map(|times| times[0])
        .collect();
    let both = |of: &[f64], a: usize, b: usize| format!("{} / {}", show(of[a]), show(of[b]));
    let at = format!("RCV1-X-like, {:.1e} bits:", bits as f64);
    targets.add(
        format!("{at} false sets, BIGSI / CSC-BF r = 1"),
        AtLeast(4.5),
        false_sets[0] / false_sets[1],
        both(&false_sets, 0, 1),
    );
    targets.add(format!("{at} ns, BIGSI per set / CSC-BF r = 1"), AtLeast(40.0), ns[0] / ns[1], both(&ns, 0, 1));
    targets.add(format!("{at} ns, RAMBO / CSC-BF r = 3"), AtLeast(8.0), ns[2] / ns[3], both(&ns, 2, 3));
    let how = both(&false_sets, 2, 3);
    targets.add(format!("{at} false sets, RAMBO / CSC-BF r = 3"), Any, false_sets[2] / false_sets[3], how);
    let batch = measured::times(&indexes, &[&absent], How::Batch, options.timing.rounds);
    for (i, method) in [(1, Method::Csc), (3, PRESET)] {
        targets.add(format!("{at} ns in batches, {}", method.name()), Any, batch[i][0], "");
    }
    drop(built);
    cuckoo(targets, &load, options)?;
    preset(targets, &load, bits, options)
}

fn cuckoo(targets: &mut Targets, load: &Load, options: &Options) -> Result<(), Box<dyn Error>> {
    let bits = 17 * load.pairs() as u64;
    let absent = load.absent(options.timing.queries);
    let cf = made(Method::CscCuckoo, load, bits)?;
    // The rows get no fewer bits than the fingerprints came to.
    let bits = cf.bits();
    let (bf, tuned) = (made(Method::Csc, load, bits)?, made(Method::Tuned, load, bits)?);
    let indexes = [cf.as_ref(), bf.as_ref(), tuned.as_ref()];
    let false_sets = indexes.map(|index| measured::absent(index, &absent));
    let ns = measured::times(&indexes, &[&absent], How::Alone, options.timing.rounds);
    let at = format!("RCV1-X-like, {:.1} bits a pair:", bits as f64 / load.pairs() as f64);
    for (i, name, wanted) in [(1, "CSC-BF r = 1, k = 3", [AtLeast(20.0), AtMost(6.0)]), (2, "tuned CSC-BF", [Any, Any])]
    {
        let how = format!("{} / {}", show(false_sets[i]), show(false_sets[0]));
        targets.add(format!("{at} false sets, {name} / CSC-CF"), wanted[0], false_sets[i] / false_sets[0], how);
        let how = format!("{} / {}", show(ns[0][0]), show(ns[i][0]));
        targets.add(format!("{at} ns, CSC-CF / {name}"), wanted[1], ns[0][0] / ns[i][0], how);
    }
    Ok(())
}

fn preset(targets: &mut Targets, load: &Load, bits: u64, options: &Options) -> Result<(), Box<dyn Error>> {
    let preset = made(PRESET, load, bits)?;
    let tuned = made(Method::Tuned, load, preset.bits())?;
    let [before, after] = [preset, tuned].map(|index| errors(index.as_ref(), load, options));
    let at = format!("RCV1-X-like, {:.2} bits a pair (tuned {:.2}):", before.bits, after.bits);
    let pairs = [("absent", before.absent, after.absent), ("present", before.all.false_each(), after.all.false_each())];
    for (what, before, after) in pairs {
        let how = format!("{} / {}", show(before), show(after));
        targets.add(format!("{at} false sets, preset / tuned, {what} keys"), AtLeast(1.0), before / after, how);
    }
    targets.add(format!("{LOST} pairs, the two of them"), AtMost(0.0), (before.all.lost + after.all.lost) as f64, "");
    Ok(())
}

fn large(targets: &mut Targets, options: &Options) -> Result<(), Box<dyn Error>> {
    let load = generated::large(options.scale, options.timing.seed);
    let at = format!("{}, {:.1e} pairs:", load.name, load.pairs() as f64);
    let by_hand = ours::sets::bloom_shape((16.3 * load.pairs() as f64) as u64, 8, 1, 0);
    let kinds = [
        ("tuned CSC-BF", sets::stream().kind(Kind::Bloom).bits_per_pair(16.3)),
        ("CSC-BF behind a filter", sets::stream().kind(Kind::Bloom).bits_per_pair(16.3).existence(1.0 / 16.0)),
        ("CSC-BF by hand", sets::stream().kind(Kind::Bloom).shape(by_hand)),
        ("frozen", sets::stream().kind(Kind::Frozen)),
    ];
    let mut built = Vec::new();
    for (name, how) in kinds {
        let mut time = Duration::ZERO;
        let (result, memory) = measure::memory(|| {
            let (result, wall) =
                measure::wall(|| ours::sets::build(&load, how.options(tamis::Options::default().threads(2))));
            time = wall;
            result
        });
        let (index, report) = result?;
        let how = report.shape().map_or(String::new(), shape);
        targets.add(format!("{at} {name}, build in s on two threads"), AtMost(10.0), time.as_secs_f64(), how);
        let peak = memory.peak_with(index.file_bits() as usize / 8) as f64 / (1u64 << 30) as f64;
        targets.add(format!("{at} {name}, memory of the build in GiB"), AtMost(2.0), peak, "");
        let bits = index.file_bits() as f64 / load.pairs() as f64;
        let most = if name == "frozen" { Any } else { AtMost(16.4) };
        targets.add(format!("{at} {name}, bits of the file a pair"), most, bits, index.parts(load.pairs()));
        built.push((name, index));
    }
    let absent = load.absent(options.timing.queries.max(100_000));
    let present = load.present(options.timing.queries.max(100_000), options.timing.seed);
    let indexes: Vec<&dyn Index> = built.iter().map(|(_, index)| index as &dyn Index).collect();
    let batch = measured::times(&indexes, &[&absent, &present], How::Batch, options.timing.rounds);
    for ((name, index), ns) in built.iter().zip(&batch) {
        let sets = measured::absent(index, &absent);
        targets.add(format!("{at} {name}, false sets of an absent key"), AtMost(0.14), sets, "");
        targets.add(format!("{at} {name}, ns an absent key in batches"), AtMost(250.0), ns[0], "");
        targets.add(format!("{at} {name}, ns a present key in batches"), AtMost(250.0), ns[1], "");
        let all = measured::check(index, &load);
        targets.add(format!("{at} {name}, false sets of a present key"), Any, all.false_each(), "");
        targets.add(format!("{LOST} pairs, {at} {name}"), AtMost(0.0), all.lost as f64, format!("of {}", all.pairs));
    }
    Ok(())
}

fn countries(targets: &mut Targets, load: &Load, options: &Options) -> Result<(), Box<dyn Error>> {
    let at = "Countries:";
    let (frozen, report) = ours::sets::build(load, sets::stream().kind(Kind::Frozen).false_sets(0.01))?;
    let per_pair = |index: &ours::sets::Ours| index.file_bits() as f64 / load.pairs() as f64;
    let how = format!("{} different lists; {}", report.set_lists.unwrap_or(0), frozen.parts(load.pairs()));
    targets.add(format!("{at} frozen, bits a pair"), Any, per_pair(&frozen), how);
    let mut sketches = Vec::new();
    for present in [0.01, 0.1] {
        for kind in [Kind::Bloom, Kind::Cuckoo] {
            let how = sets::stream().kind(kind).false_sets(0.01).member_false_sets(present);
            let (sketch, report) = ours::sets::build(load, how)?;
            let what = format!("{at} bits, frozen / {kind:?} of .01 absent and {present} present");
            let ratio = per_pair(&frozen) / per_pair(&sketch);
            let wanted = if kind == Kind::Bloom { AtMost(0.5) } else { Any };
            let made = report.shape().map_or(String::new(), shape);
            targets.add(what, wanted, ratio, format!("{} bits a pair; {made}", show(per_pair(&sketch))));
            sketches.push((format!("{kind:?}, {present}"), present, sketch));
        }
    }
    let absent = load.absent(options.timing.queries.max(100_000));
    let present = load.present(options.timing.queries.max(100_000), options.timing.seed);
    let sets = measured::absent(&frozen, &absent);
    targets.add(format!("{at} frozen, false sets of an absent key"), AtMost(0.012), sets, "a sample, .01 expected");
    let all = measured::check(&frozen, load);
    targets.add(format!("{at} frozen, false sets of all present keys"), AtMost(0.0), all.false_sets as f64, "");
    targets.add(format!("{LOST} pairs, {at} frozen"), AtMost(0.0), all.lost as f64, format!("of {}", all.pairs));
    let indexes: Vec<&dyn Index> =
        std::iter::once(&frozen as &dyn Index).chain(sketches.iter().map(|(_, _, sketch)| sketch as _)).collect();
    let ns = measured::times(&indexes, &[&absent, &present], How::Batch, options.timing.rounds);
    for (i, keys) in ["absent", "present"].iter().enumerate() {
        targets.add(format!("{at} frozen, ns {keys} in batches"), AtMost(100.0), ns[0][i], "");
    }
    for ((name, wanted, sketch), ns) in sketches.iter().zip(&ns[1..]) {
        let all = measured::check(sketch, load);
        let sets = measured::absent(sketch, &absent);
        let how = format!("{} / {} ns in batches", show(ns[0]), show(ns[1]));
        targets.add(format!("{at} {name}, false sets of an absent key"), AtMost(0.012), sets, how);
        targets.add(format!("{at} {name}, false sets of a present key"), AtMost(wanted * 1.1), all.false_each(), "");
        targets.add(format!("{LOST} pairs, {at} {name}"), AtMost(0.0), all.lost as f64, format!("of {}", all.pairs));
    }
    Ok(())
}

const BASES: usize = 1000;

fn genomes(targets: &mut Targets, load: &Load, options: &Options) -> Result<(), Box<dyn Error>> {
    let at = format!("{}:", load.name);
    let how = sets::stream().kind(Kind::Frozen).existence(1.0 / 256.0).kmer(real::KMER as u32);
    let (built, time) = measure::wall(|| ours::sets::build(load, how));
    let (frozen, report) = built?;
    let bits = frozen.file_bits() as f64 / load.keys.len() as f64;
    let (lists, parts) = (report.set_lists.unwrap_or(0), frozen.parts(load.keys.len()));
    let how = format!("{} words, {} pairs, {lists} lists; {parts}", load.keys.len(), load.pairs());
    targets.add(format!("{at} frozen, strangers 2^-8, bits a distinct word"), AtMost(12.0), bits, how);
    targets.add(format!("{at} frozen, build in s"), Any, time.as_secs_f64(), "");
    let strangers = load.absent(options.timing.queries.max(100_000)).into_iter().map(|x| x >> 2).collect::<Vec<_>>();
    let mut passing = 0u64;
    frozen.find_many(&strangers, &mut |ids| passing += u64::from(!ids.is_empty()));
    let share = passing as f64 / strangers.len() as f64;
    targets.add(format!("{at} frozen, share of strangers that pass"), AtMost(1.1 / 256.0), share, "1/256 = .0039");
    let all = measured::check(&frozen, load);
    targets.add(format!("{at} frozen, false sets of all words"), AtMost(0.0), all.false_sets as f64, "");
    targets.add(format!("{LOST} pairs, {at} frozen"), AtMost(0.0), all.lost as f64, format!("of {}", all.pairs));
    // A sequence that is there is one of the words' neighbours on a walk; random bases stand for one that is not.
    for (name, sequences) in
        [("random", random_sequences(200, options.timing.seed)), ("known", known_sequences(load, 200)?)]
    {
        let mut found = 0;
        let mut samples = Vec::new();
        for _ in 0..options.timing.rounds.max(1) {
            let ((), time) = measure::cpu(|| {
                for sequence in &sequences {
                    let mut words = Vec::with_capacity(BASES);
                    real::kmers(sequence, |word| words.push(word));
                    if let Ok(tally) = frozen.sets.tally(&words) {
                        found += tally.found;
                    }
                }
            });
            samples.push(measure::nanos_each(time, sequences.len()) / 1000.0);
        }
        let words = (sequences.len() * (BASES - real::KMER + 1) * options.timing.rounds.max(1)) as f64;
        let how = format!("{:.1} % of words found", 100.0 * found as f64 / words);
        let us = measure::median(samples).unwrap_or(f64::NAN);
        targets.add(format!("{at} frozen, µs for {BASES} {name} bases"), AtMost(150.0), us, how);
    }
    Ok(())
}

fn random_sequences(n: usize, seed: u64) -> Vec<Vec<u8>> {
    let mut dice = Stream::new(seed ^ 0x646e_6173);
    let mut base = || b"ACGT"[(dice.draw() >> 62) as usize];
    (0..n).map(|_| (0..BASES).map(|_| base()).collect()).collect()
}

/// Sequences whose words are all there: from a word on, always to a neighbour that is there too.
fn known_sequences(load: &Load, n: usize) -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
    let canonical = |text: &[u8]| {
        let mut word = 0;
        real::kmers(text, |found| word = found);
        word
    };
    // The words of a load of genomes are sorted.
    let held = |text: &[u8]| load.keys.binary_search(&canonical(text)).is_ok();
    let mut sequences = Vec::new();
    for start in load.present(20 * n, 7) {
        let letter = |i: usize| b"ACGT"[(start >> (2 * (real::KMER - 1 - i)) & 3) as usize];
        let mut text: Vec<u8> = (0..real::KMER).map(letter).collect();
        while text.len() < BASES {
            let last = text.len() + 1 - real::KMER;
            let next = b"ACGT".iter().find(|&&base| {
                text.push(base);
                let held = held(&text[last..]);
                text.pop();
                held
            });
            match next {
                Some(&base) => text.push(base),
                None => break,
            }
        }
        if text.len() == BASES {
            sequences.push(text);
        }
        if sequences.len() == n {
            return Ok(sequences);
        }
    }
    Err("the genomes have too few long walks".into())
}
