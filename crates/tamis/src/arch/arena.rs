//! a file, or bytes to come -> memory: maps, and huge pages where the system has them.

/// A file as bytes, without reading it.
///
/// # Safety
///
/// The file must not be changed or truncated while the bytes live.
#[cfg(feature = "mmap")]
pub(crate) unsafe fn map(path: &std::path::Path) -> std::io::Result<bytes::Bytes> {
    let file = std::fs::File::open(path)?;
    if file.metadata()?.len() == 0 {
        return Ok(bytes::Bytes::new()); // an empty map is an error on some systems
    }
    // SAFETY: the caller promises it.
    let map = unsafe { memmap2::Mmap::map(&file)? };
    Ok(bytes::Bytes::from_owner(map))
}

/// A whole file, in huge pages where the system has them.
pub(crate) fn read(path: &std::path::Path) -> std::io::Result<bytes::Bytes> {
    let mut file = std::fs::File::open(path)?;
    let mut arena = Arena::new(file.metadata()?.len());
    std::io::copy(&mut file, &mut arena)?;
    Ok(arena.finish())
}

/// Asks for huge pages for memory that is not in use yet: fewer faults while it is filled, and fewer misses of the address cache.
#[cfg(feature = "build")]
pub(crate) fn huge_pages<T>(memory: &mut [std::mem::MaybeUninit<T>]) {
    #[cfg(all(feature = "mmap", target_os = "linux"))]
    {
        /// What huge pages are made of where they are 2 MiB; other sizes are the system's to refuse.
        const HUGE: usize = 2 << 20;
        let (start, len) = (memory.as_mut_ptr() as usize, size_of_val(memory));
        let (first, end) = (start.next_multiple_of(HUGE), (start + len) / HUGE * HUGE);
        if first < end {
            // SAFETY: advice changes no byte of these whole pages, which are all of the slice; a refusal is as good.
            unsafe { libc::madvise(first as *mut libc::c_void, end - first, libc::MADV_HUGEPAGE) };
        }
    }
    #[cfg(not(all(feature = "mmap", target_os = "linux")))]
    let _ = memory;
}

/// Where a file goes, memory or disk.
pub(crate) trait Output: std::io::Write {
    /// Announces about how many bytes will come.
    fn expect(&mut self, _bytes: u64) {}
}

/// Memory for a whole filter: a vector while it is small; then pages, so that the lines of a structure are cache lines, and
/// huge ones where the system has them: fewer misses of the address cache.
#[derive(Debug, Default)]
pub(crate) struct Arena {
    small: Vec<u8>,
    #[cfg(feature = "mmap")]
    pages: Option<memmap2::MmapMut>,
    len: usize,
}

/// Less stays in the vector.
#[cfg(feature = "mmap")]
const MIN_PAGED_BYTES: usize = 1 << 16;

impl Arena {
    /// An arena for about this many bytes.
    pub(crate) fn new(expected: u64) -> Arena {
        let mut arena = Arena::default();
        arena.expect(expected);
        arena
    }

    /// Makes room for `len` bytes in all; fails only where a vector would.
    fn reserve(&mut self, len: usize) {
        #[cfg(feature = "mmap")]
        if len >= MIN_PAGED_BYTES
            && let Ok(mut pages) = memmap2::MmapMut::map_anon(len)
        {
            #[cfg(target_os = "linux")]
            let _ = pages.advise(memmap2::Advice::HugePage); // only a wish
            pages[..self.len].copy_from_slice(self.bytes());
            self.small = Vec::new();
            self.pages = Some(pages);
            return;
        }
        self.small.reserve(len.saturating_sub(self.small.len()));
    }

    fn bytes(&self) -> &[u8] {
        #[cfg(feature = "mmap")]
        if let Some(pages) = &self.pages {
            return &pages[..self.len];
        }
        &self.small
    }

    /// What was written.
    pub(crate) fn finish(self) -> bytes::Bytes {
        #[cfg(feature = "mmap")]
        if let Some(pages) = self.pages {
            return bytes::Bytes::from_owner(pages).slice(..self.len);
        }
        self.small.into()
    }
}

impl Output for Arena {
    fn expect(&mut self, bytes: u64) {
        self.reserve(usize::try_from(bytes.min(1 << 32)).unwrap_or(0));
    }
}

impl std::io::Write for Arena {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let end = self.len + bytes.len();
        #[cfg(feature = "mmap")]
        {
            let room = self.pages.as_ref().map_or(MIN_PAGED_BYTES, |pages| pages.len());
            if end > room {
                self.reserve(end + end / 2);
            }
            if let Some(pages) = self.pages.as_mut().filter(|pages| pages.len() >= end) {
                pages[self.len..end].copy_from_slice(bytes);
                self.len = end;
                return Ok(bytes.len());
            }
            if let Some(pages) = self.pages.take() {
                self.small = pages[..self.len].to_vec(); // no more pages to be had
            }
        }
        self.small.extend_from_slice(bytes);
        self.len = end;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::Write;

    /// An arena is a vector, whatever it expects.
    #[test]
    fn an_arena_holds_what_was_written() {
        let data: Vec<u8> = (0..300_000u32).map(|i| ((i * 31) >> 3) as u8).collect();
        for expected in [0, 10, 70_000, 299_999, 300_000, 1 << 20] {
            for step in [1000, 65_536, 150_000, 300_000] {
                let mut arena = Arena::new(expected);
                data.chunks(step).for_each(|part| arena.write_all(part).unwrap());
                assert!(arena.finish() == data, "{expected} {step}");
            }
        }
        assert!(Arena::new(1 << 20).finish().is_empty());
    }
}
