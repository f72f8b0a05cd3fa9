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

/// Whole files side by side, and where each lies: from a multiple of 64 on.
pub(crate) fn read_all(paths: &[std::path::PathBuf]) -> std::io::Result<(bytes::Bytes, Vec<std::ops::Range<usize>>)> {
    use std::io::Write;
    let mut len = 0u64;
    for path in paths {
        len += std::fs::metadata(path)?.len().next_multiple_of(64);
    }
    let (mut arena, mut places) = (Arena::new(len), vec![]);
    for path in paths {
        let start = arena.len;
        std::io::copy(&mut std::fs::File::open(path)?, &mut arena)?;
        places.push(start..arena.len);
        arena.write_all(&[0; 64][..arena.len.next_multiple_of(64) - arena.len])?;
    }
    Ok((arena.finish(), places))
}

/// The same without reading them, each from a page on; elsewhere than on Linux they are read.
///
/// # Safety
///
/// The files must not be changed or truncated while the bytes live.
#[cfg(feature = "mmap")]
pub(crate) unsafe fn map_all(
    paths: &[std::path::PathBuf],
) -> std::io::Result<(bytes::Bytes, Vec<std::ops::Range<usize>>)> {
    #[cfg(target_os = "linux")]
    {
        linux::map_all(paths)
    }
    #[cfg(not(target_os = "linux"))]
    {
        read_all(paths)
    }
}

/// Maps of several files in one range of addresses.
#[cfg(all(feature = "mmap", target_os = "linux"))]
mod linux {
    use std::fs::File;
    use std::io::{Error, ErrorKind, Result};
    use std::ops::Range;
    use std::os::fd::AsRawFd;
    use std::path::PathBuf;
    use std::ptr::{NonNull, null_mut};

    /// A range of addresses that nothing else uses, with files in it.
    struct Region {
        start: NonNull<u8>,
        len: usize,
    }

    // SAFETY: the pages are read and never written, by any thread, until the last owner unmaps them.
    unsafe impl Send for Region {}
    // SAFETY: as above.
    unsafe impl Sync for Region {}

    impl AsRef<[u8]> for Region {
        fn as_ref(&self) -> &[u8] {
            // SAFETY: all pages of the range are mapped and readable while it lives, and the caller of `map_all` keeps the files as they are.
            unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
        }
    }

    impl Drop for Region {
        fn drop(&mut self) {
            // SAFETY: the range is this value's alone; files in it go with it.
            unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
        }
    }

    pub(super) fn map_all(paths: &[PathBuf]) -> Result<(bytes::Bytes, Vec<Range<usize>>)> {
        // SAFETY: it reads a constant of the system.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(1 << 16).max(64);
        let (mut files, mut places, mut end) = (vec![], vec![], 0usize);
        for path in paths {
            let len = File::open(path)?.metadata()?.len();
            let too_long = || Error::new(ErrorKind::OutOfMemory, "longer than there are addresses");
            let next = usize::try_from(len).ok().and_then(|len| end.checked_add(len)).ok_or_else(too_long)?;
            places.push(end..next);
            files.push(path);
            end = next.checked_next_multiple_of(page).filter(|&end| end <= isize::MAX as usize).ok_or_else(too_long)?;
        }
        let len = end.max(page);
        // Pages of zeros between files, which nobody touches.
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: new pages, at an address that the system chooses.
        let start = unsafe { libc::mmap(null_mut(), len, libc::PROT_READ, flags, -1, 0) };
        let start = NonNull::new(start.cast::<u8>()).filter(|_| start != libc::MAP_FAILED);
        let region = Region { start: start.ok_or_else(Error::last_os_error)?, len };
        for (path, place) in files.into_iter().zip(&places).filter(|(_, place)| !place.is_empty()) {
            let file = File::open(path)?;
            if file.metadata()?.len() != place.len() as u64 {
                return Err(Error::new(ErrorKind::InvalidData, format!("{}: its length changed", path.display())));
            }
            let flags = libc::MAP_SHARED | libc::MAP_FIXED;
            // SAFETY: the place is inside the range, which is this value's alone, and starts at a page; the file is as long.
            let mapped = unsafe {
                let at = region.start.as_ptr().add(place.start);
                libc::mmap(at.cast(), place.len(), libc::PROT_READ, flags, file.as_raw_fd(), 0)
            };
            if mapped == libc::MAP_FAILED {
                return Err(Error::last_os_error());
            }
        }
        Ok((bytes::Bytes::from_owner(region), places))
    }
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
    pub(crate) fn finish(mut self) -> bytes::Bytes {
        #[cfg(feature = "mmap")]
        if let Some(pages) = self.pages {
            return bytes::Bytes::from_owner(pages).slice(..self.len);
        }
        // A filter of a few keys lives long, and more bytes were expected than came.
        self.small.shrink_to_fit();
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
        let len = super::super::rounds(300_000);
        let data: Vec<u8> = (0..len).map(|i| ((i * 31) >> 3) as u8).collect();
        for expected in [0, 10, len / 4, len - 1, len, 1 << 20] {
            for step in [1000, len / 5, len / 2, len] {
                let mut arena = Arena::new(expected);
                data.chunks(step as usize).for_each(|part| arena.write_all(part).unwrap());
                assert!(arena.finish() == data, "{expected} {step}");
            }
        }
        assert!(Arena::new(1 << 20).finish().is_empty());
    }
}
