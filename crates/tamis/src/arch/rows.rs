//! the first levels of a ribbon's shards -> the bytes that a key reads, with nothing to check: lengths were checked when the file was opened.
//!
//! A processor has some hundred instructions on their way, and a result takes as long as the longest chain of them. So the time of a
//! query is about the product of both, and every check that it does not make is room for the next one. [`Rows`] checks once, for
//! every shard, that each row has its bytes. Then no row that [`View::find`] returns is out of bounds, and one comparison tells
//! whether a kernel's constants are those that bytes were checked with.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;

use bytes::Bytes;

use crate::hash::{Salt, reduce};

/// What a kernel knows of the levels that it reads.
pub(crate) trait Shape: Copy {
    /// Octets of a band.
    const BAND: u8;
    /// Columns of every octet; 0: the level knows.
    const COLUMNS: u8;
    /// log2 of the rows that share a byte of thresholds; 63 where there are none.
    const SHIFT: u8;
    /// Whether some octets have a column more.
    const PART: bool;
}

/// What all shards have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    /// What turns digests into bands, of shards that are not salted.
    pub(crate) salt: Salt,
    /// Top bits of a digest that are the number of its shard, or the same in all digests of the only one.
    pub(crate) skip: u32,
    /// As in [`Shape`].
    pub(crate) band: u8,
    pub(crate) columns: u8,
    pub(crate) shift: u8,
}

/// Where one shard's first level lies in its payload, which it begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// Bands start in this many rows.
    pub(crate) rows: u64,
    /// Where thresholds start.
    pub(crate) bumps: u64,
    /// Octets from here on have a column more.
    pub(crate) cut: u64,
    /// Whether places are hashes of a number of their own, and not the digests.
    pub(crate) salted: bool,
}

impl Place {
    /// Whether all rows and thresholds are in a payload of so many bytes.
    fn fits(&self, form: &Form, len: usize) -> bool {
        let Form { band, columns, shift, .. } = *form;
        let ends = || {
            let octets = (self.rows / 8).checked_add(u64::from(band) - 1)?;
            let end = octets.checked_mul(columns.into())?.checked_add(octets.saturating_sub(self.cut))?;
            let thresholds = self.bumps.checked_add((self.rows - 1) >> shift)?;
            Some(end.max(thresholds.checked_add(1)?))
        };
        self.rows > 0 && self.rows.is_multiple_of(8) && ends().is_some_and(|end| end <= len as u64)
    }
}

/// What starts on a cache line. Blocks for it take an allocator several times as long as others, so it is for what queries find no other way.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Line<T>(pub(crate) T);

/// The first level of one shard.
#[derive(Clone, Copy, Debug)]
struct Level {
    payload: NonNull<u8>,
    len: usize,
    place: Place,
}

// SAFETY: the pointer is to bytes that nobody changes, and that `Rows` keeps alive.
unsafe impl Send for Level {}
// SAFETY: as above.
unsafe impl Sync for Level {}

/// The first levels of all shards. The first 64 bytes are all that a query of one shard reads.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Rows {
    /// That of the first shard.
    first: Level,
    /// [`code`] of all levels; 0 if there are none.
    code: u32,
    /// The same where there is one shard, its digests have no top bits in common and are its places; else 0.
    single: u32,
    /// 2^skip: what moves the bits of the shard out of a digest.
    skip: u64,
    /// One less than there are shards.
    last: usize,
    pub(crate) salt: Salt,
    /// Those of several shards.
    levels: Option<Arc<[Line<Level>]>>,
    /// What the levels point into.
    _payloads: Arc<[Bytes]>,
}

/// Constants as a number that is not 0.
const fn code(band: u8, columns: u8, shift: u8) -> u32 {
    (shift as u32) << 16 | (band as u32) << 8 | columns as u32
}

impl Rows {
    /// No rows: no kernel finds any.
    pub(crate) fn none() -> Rows {
        let place = Place { rows: 8, bumps: 0, cut: 0, salted: true };
        let first = Level { payload: NonNull::dangling(), len: 0, place };
        Rows {
            first,
            code: 0,
            single: 0,
            skip: 1,
            last: 0,
            salt: Salt::new(0),
            levels: None,
            _payloads: Arc::default(),
        }
    }

    /// The rows of some shards, a power of two; none if not all of them are in the payloads, if forms differ, or if a shard has none.
    pub(crate) fn new<'a>(shards: impl ExactSizeIterator<Item = Option<(&'a Bytes, Form, Place)>> + Clone) -> Rows {
        let count = shards.len();
        let Some(Some((_, form, _))) = shards.clone().next() else { return Rows::none() };
        let Form { salt, skip, band, columns, shift } = form;
        let valid = band > 0 && (1..=32).contains(&columns) && shift < 64 && skip < 64;
        // Several shards are told apart by all bits that are skipped.
        let told = count == 1 || 1u64.checked_shl(skip) == Some(count as u64);
        let fits = |(payload, of, place): (&Bytes, Form, Place)| of == form && place.fits(&of, payload.len());
        if !valid || !told || !shards.clone().all(|shard| shard.is_some_and(fits)) {
            return Rows::none();
        }
        let shards = shards.flatten();
        let payloads: Arc<[Bytes]> = shards.clone().map(|(payload, ..)| payload.clone()).collect();
        let level = |(payload, (_, _, place)): (&Bytes, (&Bytes, Form, Place))| Level {
            // Of the whole payload: a pointer to its first byte would be good for that byte only.
            payload: NonNull::from(&payload[..]).cast(),
            len: payload.len(),
            place,
        };
        let all = payloads.iter().zip(shards).map(level);
        let Some(first) = all.clone().next() else { return Rows::none() };
        let levels = if count == 1 { None } else { Some(all.map(Line).collect()) };
        let code = code(band, columns, shift);
        let single = if skip == 0 && !first.place.salted { code } else { 0 };
        Rows { first, code, single, skip: 1 << skip, last: count - 1, salt, levels, _payloads: payloads }
    }

    /// Bytes that the rows of so many shards take.
    pub(crate) fn memory(shards: u64) -> u64 {
        256 + size_of::<Rows>() as u64 + shards * (size_of::<Line<Level>>() + size_of::<Bytes>()) as u64
    }

    /// The rows as a kernel reads them; nothing if its constants are others. `SINGLE`: only if there is one shard, whose digests have no
    /// top bits in common.
    #[inline(always)]
    pub(crate) fn view<S: Shape, const SINGLE: bool>(&self) -> Option<View<'_, S, SINGLE>> {
        let found = if SINGLE { self.single } else { self.code };
        let levels = match &self.levels {
            // Of the whole list: a pointer to its first level would be good for that one only.
            Some(levels) => NonNull::from(&levels[..]).cast(),
            None => NonNull::from(&self.first),
        };
        // Not by a closure: it would be compiled for any processor.
        match columns_of::<S>(found) {
            Some(columns) => Some(View { rows: self, levels, columns, shape: PhantomData }),
            None => None,
        }
    }
}

/// The only shards of several ribbons, of one form: what is checked of the first holds for all.
#[derive(Clone, Debug)]
pub(crate) struct Alike {
    /// [`Rows::single`] of all.
    code: u32,
    pub(crate) salt: Salt,
    levels: Vec<Level>,
    /// What the levels point into.
    _payloads: Vec<Arc<[Bytes]>>,
}

impl Alike {
    /// Bytes that each ribbon takes.
    pub(crate) const MEMORY: u64 = (size_of::<Level>() + size_of::<Arc<[Bytes]>>()) as u64;

    /// The first ribbon; nothing if it has several shards, or a digest does not tell its place.
    pub(crate) fn new(rows: &Rows) -> Option<Alike> {
        let Rows { single: code, salt, first, ref _payloads, .. } = *rows;
        (code != 0).then(|| Alike { code, salt, levels: vec![first], _payloads: vec![_payloads.clone()] })
    }

    /// Appends a ribbon; no if its form is another.
    pub(crate) fn push(&mut self, rows: &Rows) -> bool {
        let fits = rows.single == self.code && rows.salt == self.salt;
        if fits {
            self.levels.push(rows.first);
            self._payloads.push(rows._payloads.clone());
        }
        fits
    }

    pub(crate) fn len(&self) -> usize {
        self.levels.len()
    }

    /// The ribbons as a kernel reads them; nothing if its constants are others.
    #[inline(always)]
    pub(crate) fn view<S: Shape>(&self) -> Option<ViewAlike<'_, S>> {
        match columns_of::<S>(self.code) {
            Some(columns) => Some(ViewAlike { levels: &self.levels, columns, shape: PhantomData }),
            None => None,
        }
    }
}

/// Ribbons of a shape.
#[derive(Clone, Copy)]
pub(crate) struct ViewAlike<'a, S> {
    levels: &'a [Level],
    columns: u8,
    shape: PhantomData<S>,
}

impl<'a, S: Shape> ViewAlike<'a, S> {
    /// The row of a key whose digest starts with `hi` in ribbon `i`; nothing if there are fewer.
    #[inline(always)]
    pub(crate) fn find(&self, i: usize, hi: u64) -> Option<Found<'a, S>> {
        match self.levels.get(i) {
            Some(level) => {
                Some(Found { level, columns: self.columns, row: reduce(hi, level.place.rows), shape: PhantomData })
            }
            None => None,
        }
    }
}

/// The columns of levels with this code; nothing if a kernel's constants are others.
#[inline(always)]
fn columns_of<S: Shape>(found: u32) -> Option<u8> {
    let constants = if S::COLUMNS > 0 { found } else { found & !255 };
    if constants != code(S::BAND, S::COLUMNS, S::SHIFT) {
        return None;
    }
    Some(if S::COLUMNS > 0 { S::COLUMNS } else { found as u8 })
}

/// Rows of a shape.
#[derive(Clone, Copy)]
pub(crate) struct View<'a, S, const SINGLE: bool> {
    rows: &'a Rows,
    /// The levels of all shards, each [`Line`] after the one before.
    levels: NonNull<Level>,
    columns: u8,
    shape: PhantomData<S>,
}

impl<'a, S: Shape, const SINGLE: bool> View<'a, S, SINGLE> {
    /// The row of a key whose digest starts with `hi`; nothing if the digest does not tell.
    #[inline(always)]
    pub(crate) fn find(&self, hi: u64) -> Option<Found<'a, S>> {
        let rows = self.rows;
        let (level, place) = if SINGLE {
            (&rows.first, hi)
        } else {
            let product = u128::from(hi) * u128::from(rows.skip);
            // One shard may have digests with common bits.
            let shard = (product >> 64) as usize & rows.last;
            // SAFETY: there are rows, and so a power of two of levels; `last` is the last. `rows` keeps them alive and as they are.
            (unsafe { self.levels.byte_add(shard * size_of::<Line<Level>>()).as_ref() }, product as u64)
        };
        let found = Found { level, columns: self.columns, row: reduce(place, level.place.rows), shape: PhantomData };
        (SINGLE || !level.place.salted).then_some(found)
    }
}

/// A row of a shard.
#[derive(Clone, Copy)]
pub(crate) struct Found<'a, S> {
    level: &'a Level,
    columns: u8,
    pub(crate) row: u64,
    shape: PhantomData<S>,
}

impl<'a, S: Shape> Found<'a, S> {
    /// The byte of thresholds for this row.
    #[inline(always)]
    pub(crate) fn threshold(&self) -> u8 {
        let at = self.level.place.bumps + (self.row >> S::SHIFT);
        // SAFETY: the byte of the last row is in the payload, by these constants, and this is a row of the level.
        unsafe { *self.level.payload.as_ptr().add(at as usize) }
    }

    /// Where the first octet starts, and how many columns it has.
    #[inline(always)]
    fn start(&self) -> (usize, usize) {
        let (octet, cut) = (self.row / 8, self.level.place.cut);
        let (more, beyond) = if S::PART { (octet.saturating_sub(cut), octet >= cut) } else { (0, false) };
        ((octet * u64::from(self.columns) + more) as usize, usize::from(self.columns) + beyond as usize)
    }

    /// The payload from the first octet on, a whole band at least, and the bytes of an octet; nothing if octets of the band differ.
    #[inline(always)]
    pub(crate) fn octets(&self) -> Option<(&'a [u8], usize)> {
        let (start, stride) = self.start();
        let (octet, cut) = (self.row / 8, self.level.place.cut);
        if S::PART && octet < cut && octet + u64::from(S::BAND) > cut {
            return None;
        }
        // SAFETY: the band of the last row ends in the payload, by these constants, with the columns that octets have more.
        unsafe {
            let left = self.level.len - start;
            std::hint::assert_unchecked(left >= usize::from(S::BAND) * stride);
            Some((std::slice::from_raw_parts(self.level.payload.as_ptr().add(start), left), stride))
        }
    }

    /// Asks for the cache lines of the band.
    #[inline(always)]
    pub(crate) fn prefetch(&self) {
        let (start, stride) = self.start();
        let at = |byte: usize| self.level.payload.as_ptr().wrapping_add(start + byte);
        let span = usize::from(S::BAND) * stride;
        super::prefetch_at(at(0));
        super::prefetch_at(at(span - 1));
        // More than 64 bytes may have a line between these.
        if S::COLUMNS != 8 || S::BAND != 8 {
            (64..span - 1).step_by(64).for_each(|byte| super::prefetch_at(at(byte)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy)]
    struct Test<const COLUMNS: u8>;
    impl<const COLUMNS: u8> Shape for Test<COLUMNS> {
        const BAND: u8 = 8;
        const COLUMNS: u8 = COLUMNS;
        const SHIFT: u8 = 8;
        const PART: bool = true;
    }

    const FORM: Form = Form { salt: Salt::new(0), skip: 0, band: 8, columns: 2, shift: 8 };
    const PLACE: Place = Place { rows: 24, bumps: 20, cut: u64::MAX, salted: false };

    fn has_rows(len: usize, form: Form, place: Place) -> bool {
        let rows = Rows::new([Some((&vec![1; len].into(), form, place))].into_iter());
        rows.view::<Test<2>, true>().and_then(|rows| rows.find(5)).is_some()
    }

    #[test]
    fn rows_that_are_not_there_are_not_found() {
        // Ten octets of two bytes, and a byte of thresholds.
        (0..40).for_each(|len| assert_eq!(has_rows(len, FORM, PLACE), len > 20, "{len}"));
        for place in [
            Place { rows: 0, ..PLACE },
            Place { rows: 23, ..PLACE },
            Place { rows: !7, ..PLACE },
            Place { bumps: 64, ..PLACE },
            Place { bumps: u64::MAX, ..PLACE },
            Place { rows: 8 * 40, ..PLACE },
            Place { rows: 8 * 24, cut: 1, ..PLACE },
            Place { salted: true, ..PLACE },
        ] {
            assert!(!has_rows(64, FORM, place), "{place:?}");
        }
        for form in [
            Form { band: 9, ..FORM },
            Form { columns: 3, ..FORM },
            Form { columns: 33, ..FORM },
            Form { shift: 9, ..FORM },
            Form { skip: 1, ..FORM },
            Form { skip: 64, ..FORM },
        ] {
            assert!(!has_rows(640, form, PLACE), "{form:?}");
        }
        assert!(Rows::none().view::<Test<0>, true>().is_none() && Rows::none().view::<Test<0>, false>().is_none());
        let payload = vec![1; 64].into();
        let two = [Some((&payload, FORM, PLACE)); 2];
        assert!(Rows::new(two.into_iter()).view::<Test<2>, false>().is_none());
    }

    #[test]
    fn every_digest_finds_a_row_of_its_shard() {
        let form = Form { columns: 1, skip: 2, ..FORM };
        let payload = |shard: u8| Bytes::from((0..100).map(|i| i + 100 * (shard == 3) as u8).collect::<Vec<u8>>());
        let place = Place { rows: 80, bumps: 99, cut: 5, salted: false };
        let payloads = [0, 1, 2, 3].map(payload);
        let rows = Rows::new(payloads.iter().map(|payload| Some((payload, form, place))));
        let rows = rows.view::<Test<0>, false>().expect("there are rows");
        for i in 0..=1000u64 {
            let hi = (u64::MAX / 1000).saturating_mul(i);
            let found = rows.find(hi).expect("the digest tells");
            assert!(found.row < 80 && found.threshold() == if hi >> 62 == 3 { 199 } else { 99 });
            found.prefetch();
            let octet = found.row / 8;
            match found.octets() {
                Some((bytes, stride)) => assert_eq!((u64::from(bytes[0] % 100), stride), (2 * octet - 5, 2)),
                None => assert!(octet < 5),
            }
        }
    }
}
