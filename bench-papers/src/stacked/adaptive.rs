//! Figure 6: a stack that is told nothing but the shape of the queries -> what it does while it learns, beside one filter of its size.
//!
//! All queries are negative, as in the paper. A false positive costs a read of the data behind the filter: the time of a read is a
//! model (`--read-us`), times counts that are measured; the processor's time is measured. Building the third layer reads all keys
//! once, 8 bytes each at [`SCAN`] bytes a second.
//!
//! Whether one of the heaviest values passes the first layer is luck, and one of them is 5 % of all queries. So every number is a mean
//! over `--rounds` filters with other secret keys; and beside it stands the number *without luck*: what the first layer answers alone
//! counts with the share of strangers that it lets pass, times the queries.

use std::error::Error;

use serde::Serialize;
use tamis::adaptive::{AdaptiveFilter, AdaptiveStacked};
use tamis::internals::Shape;
use tamis::internals::adaptive::{Phase, StackedOutcome};
use tamis::internals::math::stack::{Limits, Size, fixed, quick};
use tamis_bench::measure::{self, progress};
use tamis_bench::stream::{Stream, scramble};
use tamis_bench::table::{Columns, Table, number};

use super::built::{STACKED, build, rate};
use super::load::{Load, Zipf};
use super::{BITS, Options};

/// The paper's exponent in section 8.4.
const ETA: f64 = 1.0;
/// Bytes per second of a drive that is read from one end to the other.
const SCAN: f64 = 500e6;
/// Queries that are drawn together, and timed without the drawing.
const BATCH: usize = 4096;
/// Strangers that tell the rate of a layer.
const STRANGERS: usize = 2_000_000;

/// What a filter is doing in a part of the run.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Doing {
    /// One layer answers.
    First,
    /// The third layer is built.
    Building,
    /// Three layers answer.
    Stacked,
}

/// A part of a run: how much of everything, summed over the rounds.
#[derive(Clone, Copy, Serialize)]
struct Span {
    /// 1, or 2 after the shift.
    workload: u8,
    doing: Doing,
    queries: f64,
    passed: f64,
    /// The same without luck.
    fair: f64,
    /// Seconds of the processor, and of reading keys.
    cpu: f64,
    scan: f64,
}

#[derive(Default, Serialize)]
pub(super) struct Figure6 {
    rounds: usize,
    queries: usize,
    stack: Vec<Span>,
    plain: Vec<Span>,
    /// Rates of the first layer, of three layers on phase 1, of a static stack and of the plain filter, all without luck, and what
    /// formulas promise for each.
    first: [f64; 2],
    late: [f64; 2],
    fixed: [f64; 2],
    alone: [f64; 2],
    /// Rebuilds after the shift, in all rounds, and the queries that it took to see it.
    dropped: usize,
    noticed: f64,
    bits: [f64; 2],
    lost: usize,
    planned: String,
}

pub(super) fn figure6(options: &Options) -> Result<Figure6, Box<dyn Error>> {
    let (n, total, rounds) = (options.n, options.negatives(), options.timing.rounds.max(1));
    let load = Load::random(n, total, total / 2, ETA, options.timing.seed);
    let zipf = Zipf::new(ETA);
    let shape = Shape::zipf(ETA, total as u64, total as u64 / 2)?;
    let plan = quick(Size::BLOOM, false, n as u64, &shape, BITS, options.lifetime as u64)
        .ok_or("three layers are no better than one here")?;
    let mut figure = Figure6 {
        rounds,
        queries: options.lifetime,
        first: [0.0, plan.alphas[0]],
        late: [0.0, plan.late],
        alone: [0.0, Size::BLOOM.alpha(BITS)],
        planned: format!(
            "watch {} queries, layers of rates {}, {}, {}",
            plan.queries,
            rate(plan.alphas[0]),
            rate(plan.alphas[1]),
            rate(plan.alphas[2])
        ),
        ..Figure6::default()
    };
    let strangers = load.strangers(STRANGERS);
    for round in 0..rounds {
        progress(format_args!("Figure 6, round {} of {rounds}", round + 1));
        let key = [scramble(options.timing.seed), scramble(round as u64)];
        let mut keys = load.keys.clone();
        // One layer, by the same code and the same hash: nothing can be learned of queries that nobody knows.
        let builder = AdaptiveStacked::with_bits_per_key(BITS).secret(key);
        let plain = builder.clone().shape(Shape::new([], 1.0)?).build(&mut keys)?;
        let mut stack = builder.shape(shape.clone()).lifetime(options.lifetime as u64).build(&mut keys)?;
        let share = |filter: &AdaptiveStacked| {
            strangers.iter().filter(|&&value| filter.contains(value) == Ok(true)).count() as f64 / STRANGERS as f64
        };
        let (plain_rate, first_rate) = (share(&plain), share(&stack));
        figure.alone[0] += plain_rate / rounds as f64;
        figure.first[0] += first_rate / rounds as f64;
        let mut stream = Stream::new(scramble(options.timing.seed ^ round as u64));
        let mut noticed = None;
        for workload in [1, 2u8] {
            let mut asked = 0;
            while asked < options.lifetime {
                let count = BATCH.min(options.lifetime - asked);
                let draw = |_| {
                    let rank = zipf.draw(total, &mut stream);
                    load.value(if workload == 1 { rank } else { total - 1 - rank })
                };
                let queries: Vec<u64> = (0..count).map(draw).collect();
                // One filter.
                let ask = || queries.iter().filter(|&&value| plain.contains(value) == Ok(true)).count();
                let (passed, cpu) = measure::cpu(ask);
                let fair = plain_rate * count as f64;
                let cpu = cpu.as_secs_f64();
                add(&mut figure.plain, workload, Doing::First, [count as f64, passed as f64, fair], cpu, 0.0);
                // The stack. A batch in which layers come or go counts as what it began with.
                let doing = if stack.layers() == 1 { Doing::First } else { Doing::Stacked };
                let (events, cpu) = measure::cpu(|| ask_and_learn(&mut stack, &queries, &mut keys));
                let events = events?;
                let mut cpu = cpu.as_secs_f64();
                let passed = events.len();
                if events.contains(&StackedOutcome::Dropped) {
                    figure.dropped += 1;
                    noticed.get_or_insert(asked);
                }
                if events.contains(&StackedOutcome::Layered) {
                    // What this batch took more than those before it.
                    let usual = figure.stack.iter().find(|span| (span.workload, span.doing) == (workload, doing));
                    let usual = usual.map_or(0.0, |span| span.cpu / span.queries * count as f64).min(cpu);
                    let scan = n as f64 * 8.0 / SCAN;
                    add(&mut figure.stack, workload, Doing::Building, [0.0; 3], cpu - usual, scan);
                    cpu = usual;
                }
                let fair = if doing == Doing::First { first_rate * count as f64 } else { passed as f64 };
                add(&mut figure.stack, workload, doing, [count as f64, passed as f64, fair], cpu, 0.0);
                asked += count;
            }
            if workload == 1 && stack.phase() == Phase::Stacked {
                figure.bits[0] = figure.bits[0].max(stack.memory_bytes() as f64 * 8.0 / n as f64);
            }
            figure.lost += keys.iter().filter(|&&key| stack.contains(key) != Ok(true)).count();
        }
        figure.bits[1] = plain.memory_bytes() as f64 * 8.0 / n as f64;
        figure.noticed += noticed.unwrap_or(0) as f64 / rounds as f64;
    }
    let late = figure.stack.iter().find(|span| span.workload == 1 && span.doing == Doing::Stacked);
    figure.late[0] = late.map_or(f64::NAN, |span| span.fair / span.queries);
    let promised = fixed(Size::BLOOM, n as u64, &shape, &Limits::bits(BITS)).ok_or("no stack")?;
    // It knows so many of the values, and is told of a few more.
    let told = load.with_given((promised.known as usize).saturating_mul(2));
    figure.fixed = [build(&told, STACKED, BITS)?.row.efpr, promised.efpr];
    Ok(figure)
}

/// Asks, and reports what passed: what came of each.
fn ask_and_learn(
    stack: &mut AdaptiveStacked,
    queries: &[u64],
    keys: &mut Vec<u64>,
) -> Result<Vec<StackedOutcome>, String> {
    let mut events = vec![];
    for &value in queries {
        if stack.query(value).map_err(|e| e.to_string())? {
            events.push(stack.traced_adapt(value, keys).map_err(|e| e.to_string())?);
        }
    }
    Ok(events)
}

/// Adds to the span of this kind, the last of its workload.
fn add(spans: &mut Vec<Span>, workload: u8, doing: Doing, [queries, passed, fair]: [f64; 3], cpu: f64, scan: f64) {
    let at = match spans.iter().position(|span| (span.workload, span.doing) == (workload, doing)) {
        Some(at) => at,
        None => {
            spans.push(Span { workload, doing, queries: 0.0, passed: 0.0, fair: 0.0, cpu: 0.0, scan: 0.0 });
            spans.len() - 1
        }
    };
    let span = &mut spans[at];
    span.queries += queries;
    span.passed += passed;
    span.fair += fair;
    span.cpu += cpu;
    span.scan += scan;
}

impl Figure6 {
    pub(super) fn is_clean(&self) -> bool {
        self.lost == 0
    }

    /// Mean seconds of one round where a read takes so many µs, as measured and without luck.
    fn seconds(&self, spans: &[Span], workload: Option<u8>, read: f64) -> [f64; 2] {
        let spans = spans.iter().filter(|span| workload.is_none_or(|workload| span.workload == workload));
        let sum = spans.fold([0.0, 0.0], |sum, span| {
            let rest = span.cpu + span.scan;
            [sum[0] + rest + span.passed * read * 1e-6, sum[1] + rest + span.fair * read * 1e-6]
        });
        sum.map(|seconds| seconds / self.rounds as f64)
    }

    /// The parts of a phase, and all of one or both with every latency.
    fn phase(&self, workload: u8, all: Option<u8>, options: &Options, paper: &'static str) -> Columns<Line<'_>> {
        let read = options.read_us.first().copied().unwrap_or(0.0);
        let of_phase = |span: &&Span| span.workload == workload;
        let stack = self.stack.iter().filter(of_phase).map(|span| {
            let what = match span.doing {
                Doing::First => "layer 1 alone",
                Doing::Building => "building layer 3",
                Doing::Stacked => "three layers",
            };
            let stack = Some(self.seconds(&[*span], None, read));
            Line { what, read: None, span: Some(span), stack, plain: None, paper: "no number" }
        });
        let plain = self.plain.iter().filter(of_phase).map(|span| {
            let plain = Some(self.seconds(&[*span], None, read));
            Line { what: "one filter", read: None, span: Some(span), stack: None, plain, paper: "no number" }
        });
        let totals = options.read_us.iter().map(|&read| {
            let [stack, plain] = [&self.stack, &self.plain].map(|spans| Some(self.seconds(spans, all, read)));
            Line { what: "all", read: Some(read), span: None, stack, plain, paper }
        });
        let mean = |value: f64| value / self.rounds as f64;
        Table::of(stack.chain(plain).chain(totals))
            .text("what", |line| match line.read {
                Some(read) => format!("{}, {read} µs a read", line.what),
                None => line.what.into(),
            })
            .number("queries", 0, |line| Some(mean(line.span?.queries)))
            .number("false positives", 0, |line| Some(mean(line.span?.passed)))
            .number("CPU s", 3, |line| Some(mean(line.span?.cpu)))
            .texts(["stack s", "without luck"], |line| line.seconds(line.stack))
            .texts(["one filter s", "without luck"], |line| line.seconds(line.plain))
            .number("× faster", 2, |line| Some(line.plain?[1] / line.stack?[1]))
            .text("the paper", |line| line.paper)
    }

    pub(super) fn tables(&self, options: &Options) -> Vec<Table> {
        let read = options.read_us.first().copied().unwrap_or(0.0);
        let first = self.phase(1, Some(1), options, "faster, no number").table(
            format!(
                "Figure 6a: a static workload; {} keys, {} negatives by Zipf {ETA}, {} queries, {BITS} bits per key, \
                 Bloom layers; means of {} filters.",
                options.n,
                options.negatives(),
                self.queries,
                self.rounds
            ),
            format!(
                "Parts with {read} µs for every false positive. The plan: {}. The stack takes {:.3} bits per key, the \
                 filter {:.3}.",
                self.planned, self.bits[0], self.bits[1]
            ),
        );
        let second = self.phase(2, None, options, "1.6").table(
            "Figure 6b: then the least popular values are the most popular; parts of the second phase, and all of \
             both.",
            format!(
                "The upper layers were dropped {} times in {} rounds, after {:.0} queries of the second phase on \
                 average.{}",
                self.dropped,
                self.rounds,
                self.noticed,
                if self.lost > 0 { format!(" {} KEYS LOST.", self.lost) } else { " No key was lost.".into() }
            ),
        );
        // What was found and promised, and what the paper says.
        let third = Table::of([
            ("one filter", self.alone, "-"),
            ("stack, layer 1 alone", self.first, "nearly as good as one filter"),
            ("stack, three layers", self.late, "nearly 1/4 of layer 1; 3 × below one filter"),
            ("static stack", self.fixed, "the three layers are 1.6 × worse"),
        ])
        .text("filter", |(name, ..)| name)
        .texts(["rate", "formula"], |(_, rates, _)| rates.map(rate))
        .number("× below one filter", 2, |(_, [found, _], _)| self.alone[0] / found)
        .number("× below layer 1", 2, |(_, [found, _], _)| self.first[0] / found)
        .text("the paper", |(.., paper)| paper)
        .table(
            "Figure 6c: rates, without luck.",
            format!(
                "The three layers have {:.2} × the rate of the static stack (the paper: about 1.6).",
                self.late[0] / self.fixed[0]
            ),
        );
        vec![first, second, third]
    }
}

/// A part of a phase, or all of one or both. Seconds as measured and without luck.
#[derive(Clone, Copy)]
struct Line<'a> {
    what: &'static str,
    /// The latency of a total in µs.
    read: Option<f64>,
    span: Option<&'a Span>,
    stack: Option<[f64; 2]>,
    plain: Option<[f64; 2]>,
    paper: &'static str,
}

impl Line<'_> {
    fn seconds(self, seconds: Option<[f64; 2]>) -> [String; 2] {
        let digits = if self.span.is_some() { 3 } else { 2 };
        seconds.map_or(["-", "-"].map(String::from), |both| both.map(|seconds| number(seconds, digits)))
    }
}
