//! raw bytes -> text bytes: decompression, chosen by the first bytes and never by the name.
//!
//! Concatenated gzip members, zstd frames and xz streams are one text, as their tools have it. What else packs bytes is refused by
//! [`super::sniff`].

use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::rc::Rc;

use flate2::bufread::MultiGzDecoder;
use zstd::stream::read::Decoder as ZstdDecoder;

use super::source::{Meter, Raw};

/// Compressed bytes are read in pieces of this size.
const BUFFER: usize = 1 << 16;

/// What an xz decoder may allocate: xz -9 needs 65 MiB, the largest dictionary for 4 GiB.
#[cfg(feature = "xz")]
const XZ_MEMORY: u64 = 2 << 30;

/// The largest zstd window: `zstd --long=31` writes 2 GiB, which a 32-bit machine cannot map.
const ZSTD_WINDOW_LOG: u32 = if usize::BITS >= 64 { 31 } else { 27 };

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Packing {
    Gzip,
    Zstd,
    Xz,
}

impl Packing {
    /// What packed a file that begins so.
    pub(super) fn of(head: &[u8]) -> Option<Packing> {
        if skippable(head) == Some(4) {
            return Some(Packing::Zstd);
        }
        SIGNATURES.iter().find(|(signature, _)| head.starts_with(signature)).map(|&(_, packing)| packing)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Packing::Gzip => "gzip",
            Packing::Zstd => "zstd",
            Packing::Xz => "xz",
        }
    }
}

/// First bytes. A zstd file may begin with a skippable frame (pzstd's do), whose first byte is 0x50 to 0x5f.
const SIGNATURES: [(&[u8], Packing); 3] =
    [(b"\x1f\x8b\x08", Packing::Gzip), (b"\x28\xb5\x2f\xfd", Packing::Zstd), (b"\xfd7zXZ\x00", Packing::Xz)];

const SKIPPABLE: &[u8] = b"\x50\x2a\x4d\x18";

/// The unpacked bytes of an input, and what packed them.
pub(super) fn decode(mut raw: Raw<'_>) -> io::Result<(Option<Packing>, Box<dyn Read + '_>)> {
    let mut start = Vec::new();
    // No further than needed, so that a line typed at a terminal is not held back.
    while skippable(&start).is_some_and(|n| n < 4) || SIGNATURES.iter().any(|(signature, _)| begins(signature, &start))
    {
        if raw.by_ref().take(1).read_to_end(&mut start)? == 0 {
            break;
        }
    }
    let packing = Packing::of(&start);
    let (meter, begin) = raw.meter();
    let whole = Cursor::new(start).chain(raw);
    let Some(packing) = packing else { return Ok((None, Box::new(whole))) };
    let packed = BufReader::with_capacity(BUFFER, whole);
    let reader: Box<dyn Read + '_> = match packing {
        Packing::Gzip => Box::new(MultiGzDecoder::new(packed)),
        Packing::Zstd => {
            let mut decoder = ZstdDecoder::with_buffer(packed)?;
            decoder.window_log_max(ZSTD_WINDOW_LOG)?;
            Box::new(decoder)
        }
        Packing::Xz => xz(packed)?,
    };
    Ok((Some(packing), Box::new(Decoded { reader, name: packing.name(), meter, begin })))
}

/// An xz stream or several.
#[cfg(feature = "xz")]
fn xz<'a>(packed: impl BufRead + 'a) -> io::Result<Box<dyn Read + 'a>> {
    use liblzma::bufread::XzDecoder;
    use liblzma::stream::{CONCATENATED, Stream};
    let stream = Stream::new_stream_decoder(XZ_MEMORY, CONCATENATED)?;
    Ok(Box::new(XzDecoder::new_stream(packed, stream)))
}

#[cfg(not(feature = "xz"))]
fn xz<'a>(_: impl BufRead + 'a) -> io::Result<Box<dyn Read + 'a>> {
    let message = "xz data, and this tamis was built without xz; expected plain, gzip or zstd data; unpack it first";
    Err(io::Error::new(io::ErrorKind::Unsupported, message))
}

/// Whether `head` is a beginning of `signature`, and not all of it.
pub(super) fn begins(signature: &[u8], head: &[u8]) -> bool {
    head.len() < signature.len() && signature.starts_with(head)
}

/// How many of a skippable frame's four first bytes `head` has; `None` if it begins otherwise.
fn skippable(head: &[u8]) -> Option<usize> {
    let n = head.len().min(SKIPPABLE.len());
    let matches = (0..n).all(|i| if i == 0 { head[i] & 0xf0 == SKIPPABLE[0] } else { head[i] == SKIPPABLE[i] });
    matches.then_some(n)
}

/// A decoder whose errors say where they are.
struct Decoded<'a> {
    reader: Box<dyn Read + 'a>,
    name: &'static str,
    meter: Rc<Meter>,
    begin: u64,
}

impl Read for Decoded<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reader.read(buffer).map_err(|e| {
            if self.meter.failed.get() || e.kind() == io::ErrorKind::Interrupted {
                return e;
            }
            // The decoder may be up to one buffer behind the meter.
            let (name, near) = (self.name, self.meter.bytes.get() - self.begin);
            let message = match e.kind() {
                io::ErrorKind::UnexpectedEof => format!("the {name} data ends too early, after {near} bytes"),
                _ => format!("the {name} data is damaged near byte {near} of the file ({e})"),
            };
            io::Error::new(e.kind(), message)
        })
    }
}

#[cfg(all(test, feature = "xz"))]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::Write;

    use super::super::source::Source;
    use super::*;

    /// Reads one byte at a time, as a slow pipe does.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let n = 1.min(buffer.len());
            self.0.read(&mut buffer[..n])
        }
    }

    fn unpack(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut slow = Slow(bytes);
        let raw = Raw::open(&Source::Stdin, &mut slow, Rc::default()).unwrap();
        let mut out = Vec::new();
        decode(raw)?.1.read_to_end(&mut out)?;
        Ok(out)
    }

    fn gzip(data: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        flate2::bufread::GzEncoder::new(data, flate2::Compression::default()).read_to_end(&mut out).unwrap();
        out
    }

    fn xz(data: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        liblzma::bufread::XzEncoder::new(data, 6).read_to_end(&mut out).unwrap();
        out
    }

    /// With a checksum, as the command writes it; without one most damage would not be noticed.
    fn zst(data: &[u8]) -> Vec<u8> {
        let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
        encoder.include_checksum(true).unwrap();
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    /// Text that does not shrink to nothing, so that cuts fall inside blocks.
    fn text() -> Vec<u8> {
        (0..3000u32).flat_map(|i| format!("{:x}\n", i.wrapping_mul(0x9e37_79b9)).into_bytes()).collect()
    }

    type Packer = fn(&[u8]) -> Vec<u8>;

    fn packers() -> [(&'static str, Packer); 3] {
        [("gzip", gzip), ("zstd", zst), ("xz", xz)]
    }

    #[test]
    fn concatenated_parts_are_one_text() {
        for (name, pack) in packers() {
            let text = text();
            let packed = [pack(&text), pack(b""), pack(b"tail")].concat();
            assert_eq!(unpack(&packed).unwrap(), [&text[..], b"tail"].concat(), "{name}");
            assert_eq!(unpack(&pack(b"")).unwrap(), b"", "{name}");
        }
    }

    #[test]
    fn zstd_may_begin_with_a_skippable_frame() {
        let frame = |first: u8| {
            [&[first][..], b"\x2a\x4d\x18\x03\0\0\0abc", &zstd::encode_all(&b"x\n"[..], 3).unwrap()].concat()
        };
        assert_eq!(unpack(&frame(0x50)).unwrap(), b"x\n");
        assert_eq!(unpack(&frame(0x5f)).unwrap(), b"x\n");
        assert_eq!(unpack(&frame(0x60)).unwrap(), frame(0x60));
    }

    #[test]
    fn every_cut_is_an_error() {
        for (name, pack) in packers() {
            let packed = pack(&text());
            let signature = SIGNATURES.iter().find(|(s, _)| packed.starts_with(s)).unwrap().0.len();
            for cut in 0..packed.len() {
                // Cuts near the ends, and a sample of those between.
                if cut > 64 && cut + 64 < packed.len() && cut % 97 != 0 {
                    continue;
                }
                let got = unpack(&packed[..cut]);
                if cut < signature {
                    assert_eq!(got.unwrap(), &packed[..cut], "{name}: too short to be known");
                } else {
                    let message = got.expect_err(&format!("{name} cut at {cut}")).to_string();
                    assert_eq!(message, format!("the {name} data ends too early, after {cut} bytes"));
                }
            }
        }
    }

    #[test]
    fn damage_is_an_error_that_says_where() {
        for (name, pack) in packers() {
            let mut packed = pack(&text());
            let middle = packed.len() / 2;
            for byte in &mut packed[middle..middle + 16] {
                *byte = !*byte;
            }
            let message = unpack(&packed).expect_err(name).to_string();
            assert!(message.starts_with(&format!("the {name} data is damaged near byte ")), "{message}");
        }
    }

    #[test]
    fn plain_text_is_untouched_and_read_no_further_than_needed() {
        for text in [&b""[..], b"\x1f", b"\x1f\x8b", b"\xfd7zX", b"a", b"(\xb5", b"P", b"PK"] {
            assert_eq!(unpack(text).unwrap(), text);
        }
        let mut input = Cursor::new(b"ab\n".to_vec());
        decode(Raw::open(&Source::Stdin, &mut input, Rc::default()).unwrap()).unwrap();
        assert_eq!(input.position(), 1);
    }
}
