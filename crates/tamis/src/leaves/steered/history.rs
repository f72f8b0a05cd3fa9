//! windows every 64 rows -> the rows of the state that is best in the end.
//!
//! Every 64 rows the windows are written down, for they are exactly the bits of these rows, and with each the number of the state
//! that it came from 64 rows before. From the best state at the end one walks these links back. All states of one time
//! have a common ancestor not long before (50 to 100 blocks): its rows and those before are decided, and only what came after is kept.

use super::states::{States, window};
use crate::arch::planes::{LANES, Planes, Shorts};

/// Blocks of 64 rows that are written down between two looks for the common ancestor.
const BETWEEN: usize = 32;

/// What was written down.
pub(super) struct History {
    /// Groups of a block.
    groups: usize,
    planes: Vec<Planes>,
    origins: Vec<Shorts>,
    /// Words that are decided, the last rows first.
    words: Vec<u64>,
    /// Blocks that are kept until the next look.
    most: usize,
}

impl History {
    /// For so many words in all.
    pub(super) fn new(groups: usize, words: usize) -> History {
        History { groups, planes: vec![], origins: vec![], words: Vec::with_capacity(words), most: BETWEEN }
    }

    fn blocks(&self) -> usize {
        self.origins.len() / self.groups
    }

    /// Which state of the block before a state of `block` came from.
    fn origin(&self, block: usize, lane: usize) -> usize {
        self.origins[block * self.groups + lane / LANES][lane % LANES].into()
    }

    /// Writes a block down.
    pub(super) fn write(&mut self, states: &mut States) {
        self.planes.extend_from_slice(&states.planes);
        self.origins.extend_from_slice(&states.origins);
        for (lane, origin) in states.origins.as_flattened_mut().iter_mut().enumerate() {
            *origin = lane as u16;
        }
        if self.blocks() >= self.most {
            self.forget(states.live);
            self.most = self.blocks() + BETWEEN;
        }
    }

    /// Decides what all of the first `live` states of the last block have in common.
    fn forget(&mut self, live: usize) {
        let mut lanes: Vec<usize> = (0..live).collect();
        let mut known = vec![usize::MAX; self.groups * LANES];
        for block in (1..self.blocks()).rev() {
            let mut count = 0;
            for i in 0..lanes.len() {
                let origin = self.origin(block, lanes[i]);
                if known[origin] != block {
                    (known[origin], lanes[count]) = (block, origin);
                    count += 1;
                }
            }
            lanes.truncate(count);
            if let [ancestor] = lanes[..] {
                self.decide(block, ancestor);
                self.planes.drain(..block * self.groups);
                self.origins.drain(..block * self.groups);
                return;
            }
        }
    }

    /// Decides the first `blocks`, of which `lane` is the last state.
    fn decide(&mut self, blocks: usize, mut lane: usize) {
        let start = self.words.len();
        for block in (0..blocks).rev() {
            self.words.push(window(&self.planes[block * self.groups + lane / LANES], lane));
            lane = self.origin(block, lane);
        }
        self.words[start..].reverse();
    }

    /// All words, the first rows first.
    pub(super) fn finish(mut self, best: usize) -> Vec<u64> {
        self.decide(self.blocks(), best);
        self.words.reverse();
        self.words
    }
}
