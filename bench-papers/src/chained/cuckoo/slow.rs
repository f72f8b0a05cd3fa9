//! buckets -> reads that take a stated time: what a store is here, and what a get behind it takes.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tamis::table::{Bucket, Memory, Store};

pub(super) type Name = [u8; 36];
pub(super) type Record = [u8; 64];

/// Waits without giving the processor away.
pub(super) fn wait(latency: Duration) {
    if latency > Duration::ZERO {
        let start = Instant::now();
        while start.elapsed() < latency {
            std::hint::spin_loop();
        }
    }
}

/// Buckets in memory that take a while to read; the table has a copy of both cells.
#[derive(Default)]
pub(super) struct Slow {
    memory: Memory<Name, Record>,
    pub(super) latency: Rc<Cell<Duration>>,
    pub(super) reads: Rc<Cell<u64>>,
}

impl Store<Name, Record> for Slow {
    fn fresh(&self, buckets: u64, slots: usize) -> io::Result<Slow> {
        Ok(Slow {
            memory: self.memory.fresh(buckets, slots)?,
            latency: self.latency.clone(),
            reads: self.reads.clone(),
        })
    }

    fn read(&self, bucket: u64) -> io::Result<Bucket<'_, Name, Record>> {
        wait(self.latency.get());
        self.reads.set(self.reads.get() + 1);
        self.memory.read(bucket)
    }

    fn write(&mut self, bucket: u64, slot: usize, entry: Option<(Name, Record)>) -> io::Result<()> {
        self.memory.write(bucket, slot, entry)
    }
}

/// Rows of buckets as the rivals have them: a place for every slot.
pub(super) struct Flat {
    slots: usize,
    entries: Vec<Option<(Name, Record)>>,
}

impl Flat {
    pub(super) fn new(buckets: usize, slots: usize) -> Flat {
        Flat { slots, entries: vec![None; buckets * slots] }
    }

    pub(super) fn put(&mut self, bucket: usize, name: Name, record: Record) {
        let slots = &mut self.entries[bucket * self.slots..][..self.slots];
        if let Some(free) = slots.iter_mut().find(|slot| slot.is_none()) {
            *free = Some((name, record));
        }
    }

    pub(super) fn read(&self, bucket: usize, name: &Name, latency: Duration) -> Option<Record> {
        wait(latency);
        let slots = &self.entries[bucket * self.slots..][..self.slots];
        slots.iter().flatten().find(|(known, _)| known == name).map(|(_, record)| *record)
    }
}

pub(super) fn name(number: u64) -> Name {
    let mut name = [b'-'; 36];
    name[..20].copy_from_slice(format!("{number:020}").as_bytes());
    name
}
