//! changed bytes -> the same with checksums that hold: lets tests reach the decoder behind them.
//!
//! ```text
//!   header, 48 bytes | payload | directory | payload sum u64, directory length u32, sum u64, "sieV"
//! ```

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

pub(crate) const HEADER: usize = 48;
pub(crate) const FOOTER: usize = 24;

/// A file in its three parts; the footer follows from them.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    pub(crate) header: Vec<u8>,
    pub(crate) payload: Vec<u8>,
    pub(crate) directory: Vec<u8>,
}

impl Parts {
    /// Takes a sound file apart; nothing when the lengths are impossible.
    pub(crate) fn of(file: &[u8]) -> Option<Parts> {
        let front = file.len().checked_sub(FOOTER)?;
        let len = u32::from_le_bytes(file.get(front + 8..front + 12)?.try_into().ok()?);
        let start = front.checked_sub(len as usize).filter(|&start| start >= HEADER)?;
        Some(Parts {
            header: file[..HEADER].to_vec(),
            payload: file[HEADER..start].to_vec(),
            directory: file[start..front].to_vec(),
        })
    }

    /// The file, sums and all.
    pub(crate) fn file(&self) -> Vec<u8> {
        let mut tail = self.directory.clone();
        tail.extend_from_slice(&xxh3_64(&self.payload).to_le_bytes());
        tail.extend_from_slice(&(self.directory.len() as u32).to_le_bytes());
        let mut sum = Xxh3::new();
        sum.update(&self.header);
        sum.update(&tail);
        tail.extend_from_slice(&sum.digest().to_le_bytes());
        tail.extend_from_slice(b"sieV");
        [&self.header[..], &self.payload, &tail].concat()
    }

    /// Gives the payload the length that the directory asks for, as far as the decoder's refusals tell: then the file opens
    /// and queries run on a geometry that no builder made.
    pub(crate) fn fit<T>(&mut self, longest: usize, open: impl Fn(Vec<u8>) -> Result<T, tamis::FormatError>) {
        for _ in 0..8 {
            match open(self.file()) {
                Err(tamis::FormatError::Truncated { what: "the payload", needed, found }) => {
                    let more = needed.saturating_sub(found).max(1) as usize;
                    if more > longest || self.payload.len() + more > longest {
                        return;
                    }
                    // Bytes with a pattern: thresholds and rows are then not all alike.
                    let from = self.payload.len();
                    self.payload.extend((from..from + more).map(|i| (i * 167) as u8));
                }
                Err(tamis::FormatError::Invalid { reason }) if reason.contains("between payload and directory") => {
                    let more = reason.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0);
                    self.payload.truncate(self.payload.len().saturating_sub(more));
                }
                _ => return,
            }
        }
    }
}
