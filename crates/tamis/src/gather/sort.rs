//! records in any order -> sorted, distinct, in place.
//!
//! Digests are random bits, so a radix sort from the top needs few passes, each of which moves every record once:
//!
//! ```text
//!   1,000,000 records ──7 bits──▶ 128 buckets of 8,000 ──13 bits──▶ 1,048,576 buckets of 1 ──▶ insertion sort
//!                       in place                        by a copy in cache
//! ```
//!
//! A pass counts its digit, which fixes the borders of the buckets. In place, it then sends records home: the record at `i`
//! goes to the next free slot of its bucket, and the record from there comes to `i`. `i` moves on at once instead of following
//! the record (American flag sort follows it), so that cache misses overlap; what is left is met in the next round [Ska]. Every
//! step brings one record home: n steps for a pass. A bucket that fits in the cache is copied and read in order: no rounds, no
//! branch to mispredict. Insertion sort runs over the whole bucket at the end, as buckets of one or two cost more to set up than to sort.
//!
//! With several threads the first pass is shared as in [PARADIS]: every bucket is cut into one stripe per thread, and a thread
//! moves records between its own stripes only. A record whose stripe is full stays. Of random records few stay (the square root
//! of the size of a stripe), and one thread brings them home. Stripes are disjoint slices, so all of this is safe code.
//!
//! Input that is not random (chosen keys, one key repeated) ends after [`DEPTH`] passes in the standard library's comparison
//! sort, which is linear for equal keys and n log n for all others.
//!
//! Why not `sort_unstable` on the whole: it cannot use that digests are random bits. Why not LSD radix: it needs a second buffer.
//!
//! * [Ska] M. Skarupke, "I wrote a faster sorting algorithm", 2016: the loop without cycles.
//! * [PARADIS] M. Cho et al., "PARADIS: an efficient parallel algorithm for in-place radix sort", VLDB 2015, section 3.

use std::ops::Range;

use super::record::Record;
use crate::error::BuildError;
use crate::parallel::{Stop, check, run};

/// Bits of one digit at most: the heads of all buckets, short ones, stay in the first-level cache.
const DIGIT: u32 = 13;
/// Passes before the comparison sort takes over.
const DEPTH: u32 = 4;
/// A bucket of this many records is sorted by way of a copy: 256 or 512 KiB.
const MAX_CACHED_RECORDS: usize = 1 << 14;
/// Passes in place aim at buckets of this size, so that few exceed `MAX_CACHED_RECORDS`.
const BUCKET: usize = MAX_CACHED_RECORDS / 2;
/// The last pass aims at buckets of this size, or what the widest digit reaches: the fewer share one, the fewer branches are mispredicted.
const LEAF: usize = 1;
/// So many records are left to the insertion sort.
const MAX_INSERTION_SORT: usize = 32;
/// Fewer records are not worth a second thread.
const MIN_SHARED_RECORDS: usize = 1 << 16;

/// Whether records are sorted and distinct already.
pub(crate) fn ascend<R: Record>(records: &[R]) -> bool {
    records.is_sorted_by(|a, b| a.order() < b.order())
}

/// Sorts by digest and merges records with equal digests.
///
/// After an error (only [`BuildError::Cancelled`] is possible) the vector holds the same records in some order.
pub(crate) fn sort_distinct<R: Record>(records: &mut Vec<R>, threads: usize, stop: Stop<'_>) -> Result<(), BuildError> {
    check(stop)?;
    if ascend(records) {
        return Ok(());
    }
    let threads = if records.len() < MIN_SHARED_RECORDS { 1 } else { threads.max(1) };
    // Records of one shard share their top bits: they cannot tell buckets apart.
    let first = records.first().map_or(0, |r| r.digest().hi);
    let mut differ = 0;
    for part in records.chunks(MIN_SHARED_RECORDS) {
        check(stop)?;
        differ |= part.iter().fold(0, |bits, r| bits | (r.digest().hi ^ first));
    }
    let top = 64 - differ.leading_zeros();
    if records.len() <= MAX_CACHED_RECORDS {
        if sort(records, top, DEPTH, &mut Scratch::new(), stop)? {
            let kept = distinct(records);
            records.truncate(kept);
        }
        return Ok(());
    }
    sort_large(records, top, threads, stop)
}

/// The same for records above whose bit `top` all agree, and which are too many for a copy in cache.
fn sort_large<R: Record>(records: &mut Vec<R>, top: u32, threads: usize, stop: Stop<'_>) -> Result<(), BuildError> {
    let digit = Digit::below(top, records.len(), BUCKET);
    let bounds = match threads {
        1 => split(records, digit, stop)?,
        _ => split_shared(records, digit, threads, stop)?,
    };
    let mut buckets = Vec::with_capacity(digit.count());
    let mut rest = records.as_mut_slice();
    for (i, &end) in bounds[1..].iter().enumerate() {
        let (bucket, tail) = rest.split_at_mut(end - bounds[i]);
        buckets.push(bucket);
        rest = tail;
    }
    // Several buckets are a job: they share the space for copies.
    let mut jobs = vec![];
    while !buckets.is_empty() {
        let rest = buckets.split_off(buckets.len().min(digit.count().div_ceil(16 * threads)));
        jobs.push(std::mem::replace(&mut buckets, rest));
    }
    let kept = run(jobs, threads, |job| {
        let mut scratch = Scratch::new();
        let sorted = job.into_iter().map(|bucket| {
            let equal = sort(bucket, digit.shift, DEPTH - 1, &mut scratch, stop)?;
            Ok(if equal { distinct(bucket) } else { bucket.len() })
        });
        sorted.collect::<Result<Vec<usize>, BuildError>>()
    })?;
    let mut end = 0;
    for (&start, kept) in bounds.iter().zip(kept.into_iter().flatten()) {
        if end < start {
            records.copy_within(start..start + kept, end);
        }
        end += kept;
    }
    records.truncate(end);
    Ok(())
}

/// Some consecutive bits of the high half.
#[derive(Clone, Copy)]
struct Digit {
    shift: u32,
    bits: u32,
}

impl Digit {
    /// The digit right below bit `top` that leads from `n` records to buckets of half to all of `size`, in several passes of
    /// the same width if one is too narrow.
    fn below(top: u32, n: usize, size: usize) -> Digit {
        let wanted = (n / size).max(1).ilog2() + 1;
        let bits = wanted.div_ceil(wanted.div_ceil(DIGIT)).min(top);
        Digit { shift: top - bits, bits }
    }

    fn count(self) -> usize {
        1 << self.bits
    }

    #[inline(always)]
    fn of<R: Record>(self, record: &R) -> usize {
        (record.digest().hi >> self.shift) as usize & ((1 << self.bits) - 1)
    }
}

/// Buckets of the widest digit. Tables of them are on the heap: small machines have threads with a stack of 128 KiB.
const BUCKETS: usize = 1 << DIGIT;

fn count<R: Record>(records: &[R], digit: Digit, stop: Stop<'_>) -> Result<Vec<usize>, BuildError> {
    let mut counts = vec![0; digit.count()];
    for part in records.chunks(MIN_SHARED_RECORDS) {
        check(stop)?;
        part.iter().for_each(|record| counts[digit.of(record)] += 1);
    }
    Ok(counts)
}

/// Where buckets begin, and after the last one where it ends.
fn bounds(counts: &[usize]) -> Vec<usize> {
    let mut end = 0;
    let ends = counts.iter().map(|count| {
        end += count;
        end
    });
    std::iter::once(0).chain(ends).collect()
}

/// Sorts all bits below `top`, above which the records agree. Returns whether some may be equal.
fn sort<R: Record>(
    records: &mut [R],
    top: u32,
    depth: u32,
    scratch: &mut Scratch<R>,
    stop: Stop<'_>,
) -> Result<bool, BuildError> {
    if records.len() <= MAX_INSERTION_SORT {
        return Ok(insertion_sort(records));
    }
    check(stop)?;
    if depth == 0 || top == 0 {
        records.sort_unstable_by_key(R::order);
        return Ok(true);
    }
    if records.len() <= MAX_CACHED_RECORDS {
        let digit = Digit::below(top, records.len().min(BUCKETS / 2 * LEAF), LEAF);
        let crowded = scatter(records, digit, scratch);
        for bucket in crowded {
            sort(&mut records[bucket], digit.shift, depth - 1, scratch, stop)?;
        }
        return Ok(insertion_sort(records));
    }
    let digit = Digit::below(top, records.len(), BUCKET);
    let bounds = split(records, digit, stop)?;
    let mut equal = false;
    for pair in bounds.windows(2) {
        equal |= sort(&mut records[pair[0]..pair[1]], digit.shift, depth - 1, scratch, stop)?;
    }
    Ok(equal)
}

/// What a sort by way of a copy needs: used again for the next bucket.
struct Scratch<R> {
    copy: Vec<R>,
    /// Counts become starts, and each start moves on to be the end.
    heads: Vec<u16>,
}

impl<R> Scratch<R> {
    const fn new() -> Scratch<R> {
        Scratch { copy: Vec::new(), heads: Vec::new() }
    }
}

/// [`split`] by way of a copy, for [`MAX_CACHED_RECORDS`] records at most; returns the buckets that are too large for an insertion sort.
fn scatter<R: Record>(records: &mut [R], digit: Digit, scratch: &mut Scratch<R>) -> Vec<Range<usize>> {
    let Scratch { copy, heads } = scratch;
    heads.clear();
    heads.resize(digit.count(), 0);
    // The mask shows the compiler that no index is out of bounds.
    let (heads, mask) = (&mut heads[..], digit.count() - 1);
    records.iter().for_each(|record| heads[digit.of(record) & mask] += 1);
    let mut start = 0;
    for head in heads.iter_mut() {
        start += std::mem::replace(head, start);
    }
    copy.clear();
    copy.extend_from_slice(records);
    for record in copy {
        let head = &mut heads[digit.of(record) & mask];
        records[*head as usize] = *record;
        *head += 1;
    }
    let mut start = 0;
    let buckets = heads.iter().map(|&end| std::mem::replace(&mut start, end as usize)..end as usize);
    buckets.filter(|bucket| bucket.len() > MAX_INSERTION_SORT).collect()
}

/// Returns whether some are equal.
#[inline(always)]
fn insertion_sort<R: Record>(records: &mut [R]) -> bool {
    let mut equal = false;
    for i in 1..records.len() {
        let record = records[i];
        let mut hole = i;
        while hole > 0 && records[hole - 1].order() > record.order() {
            records[hole] = records[hole - 1];
            hole -= 1;
        }
        equal |= hole > 0 && records[hole - 1].order() == record.order();
        records[hole] = record;
    }
    equal
}

/// Merges equal neighbours towards the front and returns how many records are left.
fn distinct<R: Record>(records: &mut [R]) -> usize {
    let Some(first) = records.windows(2).position(|w| w[0].order() == w[1].order()) else { return records.len() };
    let mut last = first;
    for i in first + 1..records.len() {
        let record = records[i];
        if records[last].order() == record.order() {
            records[last].merge(&record);
        } else {
            last += 1;
            records[last] = record;
        }
    }
    last + 1
}

/// Brings every record into its bucket.
fn split<R: Record>(records: &mut [R], digit: Digit, stop: Stop<'_>) -> Result<Vec<usize>, BuildError> {
    let bounds = bounds(&count(records, digit, stop)?);
    place_records(records, digit, &mut bounds[..digit.count()].to_vec(), &bounds, stop)?;
    Ok(bounds)
}

/// Brings the records home that lie between the head and the end of a bucket; those below the head are home.
fn place_records<R: Record>(
    records: &mut [R],
    digit: Digit,
    heads: &mut [usize],
    bounds: &[usize],
    stop: Stop<'_>,
) -> Result<(), BuildError> {
    let mut open = true;
    while open {
        open = false;
        for bucket in 0..digit.count() {
            let (start, end) = (heads[bucket], bounds[bucket + 1]);
            if end - start > MIN_SHARED_RECORDS / BUCKETS {
                check(stop)?;
            }
            // The head moves by at most one per step, so it never passes `i`.
            for i in start..end {
                let record = records[i];
                let home = &mut heads[digit.of(&record)];
                records[i] = records[*home];
                records[*home] = record;
                *home += 1;
            }
            open |= heads[bucket] < end;
        }
    }
    Ok(())
}

/// [`split`] by several threads.
fn split_shared<R: Record>(
    records: &mut [R],
    digit: Digit,
    threads: usize,
    stop: Stop<'_>,
) -> Result<Vec<usize>, BuildError> {
    let parts = records.chunks(records.len().div_ceil(threads)).collect();
    let mut counts = vec![0; digit.count()];
    for part in run(parts, threads, |part| count(part, digit, stop))? {
        counts.iter_mut().zip(part).for_each(|(sum, count)| *sum += count);
    }
    let bounds = bounds(&counts);

    // One stripe of every bucket for every thread.
    let stripe = |bucket: usize, t: usize| (counts[bucket] as u128 * t as u128 / threads as u128) as usize;
    let mut stripes: Vec<Vec<&mut [R]>> = Vec::new();
    stripes.resize_with(threads, || Vec::with_capacity(digit.count()));
    let mut rest = &mut *records;
    for bucket in 0..digit.count() {
        for (t, stripes) in stripes.iter_mut().enumerate() {
            let (head, tail) = rest.split_at_mut(stripe(bucket, t + 1) - stripe(bucket, t));
            stripes.push(head);
            rest = tail;
        }
    }
    let home = run(stripes, threads, |mut stripes| place_stripes(&mut stripes, digit, stop))?;

    // In every bucket, records that are not home change places with later ones that are: one open end per bucket again.
    let mut heads = vec![0; digit.count()];
    for bucket in 0..digit.count() {
        let start = |t: usize| bounds[bucket] + stripe(bucket, t);
        let head = bounds[bucket] + home.iter().map(|home| home[bucket]).sum::<usize>();
        let stray = (0..threads).flat_map(|t| start(t) + home[t][bucket]..start(t + 1).min(head));
        let late = (0..threads).flat_map(|t| start(t).max(head)..start(t) + home[t][bucket]);
        for (a, b) in stray.zip(late) {
            records.swap(a, b);
        }
        heads[bucket] = head;
    }
    place_records(records, digit, &mut heads, &bounds, stop)?;
    Ok(bounds)
}

/// [`place_records`] within one thread's stripes; returns how many records of each stripe are home.
fn place_stripes<R: Record>(stripes: &mut [&mut [R]], digit: Digit, stop: Stop<'_>) -> Result<Vec<usize>, BuildError> {
    let mut heads = vec![0; digit.count()];
    loop {
        let (mut moved, mut left) = (0, 0);
        for bucket in 0..stripes.len() {
            check(stop)?;
            for i in heads[bucket]..stripes[bucket].len() {
                let record = stripes[bucket][i];
                let home = digit.of(&record);
                let head = heads[home];
                if let Some(slot) = stripes[home].get_mut(head) {
                    let other = std::mem::replace(slot, record);
                    // Where `slot` is the record's own place, `other` is the record.
                    stripes[bucket][i] = other;
                    heads[home] = head + 1;
                    moved += 1;
                }
            }
            left += stripes[bucket].len() - heads[bucket];
        }
        // What is left after few moves waits for full stripes.
        if moved <= left {
            return Ok(heads);
        }
    }
}
