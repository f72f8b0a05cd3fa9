#![allow(clippy::unwrap_used, clippy::panic)]
use super::*;

fn header() -> Header {
    Header { keys: 7, negatives: 300, ..Header::new(Form::Filter, Hasher::seeded(5), KeyType::Integer) }
}

/// A file of these payloads, which is no filter.
fn file(header: &Header, shards: &[&[&[u8]]]) -> Vec<u8> {
    let mut out = vec![];
    let mut writer = Writer::new(&mut out, header, vec![[0, 1]; 3]).unwrap();
    for parts in shards {
        let encode = |payload: &&[u8]| Encoded { geometry: vec![9], payload: Bytes::copy_from_slice(payload) };
        writer.shard(&parts.iter().map(encode).collect::<Vec<_>>()).unwrap();
    }
    writer.finish().unwrap();
    out
}

#[test]
fn heads_come_back() {
    let hashers = [
        Hasher::seeded(0),
        Hasher::seeded(u64::MAX),
        Hasher::secret([1, u64::MAX]),
        Hasher::seeded(3).mixed(4),
        Hasher::foreign(9),
        Hasher::foreign(9).mixed(1),
    ];
    for hasher in hashers {
        for key_type in [KeyType::Bytes, KeyType::Integer, KeyType::Digest, KeyType::Fields] {
            if hasher.kind() == HashKind::Foreign && key_type != KeyType::Digest {
                continue;
            }
            for form in [Form::Filter, Form::Map, Form::Sequence] {
                let header =
                    Header { shard_bits: 24, keys: u64::MAX, hasher: hasher.clone(), key_type, form, ..header() };
                assert_eq!(Header::decode(&header.encode(), 0, None), Ok(header));
            }
        }
    }
}

#[test]
fn a_secret_beside_is_needed_and_checked() {
    let header = Header { hasher: Hasher::secret([5, 6]).with_secret_beside(true), ..header() };
    let head = header.encode();
    assert_eq!(Header::decode(&head, 0, Some([5, 6])), Ok(header.clone()));
    assert!(Header::decode(&head, 0, Some([5, 6])).unwrap().hasher.is_beside());
    assert_eq!(Header::decode(&head, 0, None), Err(FormatError::Secret { given: false }));
    assert_eq!(Header::decode(&head, 0, Some([6, 5])), Err(FormatError::Secret { given: true }));
    assert!(head.windows(8).all(|word| word != 5u64.to_le_bytes()));
    // A file that has its secret, or needs none, is not opened with one: the caller means another file.
    let inside = Header { hasher: header.hasher.clone().with_secret_beside(false), ..header };
    assert!(Header::decode(&inside.encode(), 0, Some([5, 6])).is_err());
}

/// Where shards and parts start: multiples of 64 for one of several, and for what is long.
#[test]
fn units_lie_where_the_page_says() {
    let long = vec![1; BLOCK as usize + 3];
    let starts = |header: &Header, shards: &[&[&[u8]]]| {
        let bytes = Bytes::from(file(header, shards));
        verify(&bytes).unwrap();
        let budget = Budget::of(&bytes);
        let (_, _, mut places) = parts(&bytes, None, &budget).unwrap();
        let mut starts = vec![];
        for parts in shards {
            let lens = parts.iter().map(|part| part.len() as u64);
            let start = places.unit(header.shard_bits > 0, lens).unwrap();
            let mut place = places_in();
            for part in *parts {
                let range = place(part.len() as u64);
                assert_eq!(&bytes[start + range.start..start + range.end], *part);
                starts.push(start + range.start);
            }
        }
        places.check().unwrap();
        starts
    };
    let (one, two) = (header(), Header { shard_bits: 1, ..header() });
    assert_eq!(starts(&one, &[&[&[1; 5], &[2; 6], &[]]]), [16, 21, 27]);
    assert_eq!(starts(&one, &[&[&[1; 5], &long, &[3]]]), [64, 128, 128 + 65_539]);
    assert_eq!(starts(&two, &[&[&[1; 5], &[2; 6], &[]], &[&[1; 5], &[], &[3; 70]]]), [64, 69, 75, 128, 133, 133]);
    assert_eq!(starts(&two, &[&[&[], &[], &[]], &[&[7], &[], &[]]]), [16, 16, 16, 64, 65, 65]);
    // Long means 64 KB, and not a byte less: for a part of a unit, and for a unit.
    let (block, less) = (vec![1; BLOCK as usize], vec![1; BLOCK as usize - 1]);
    assert_eq!(starts(&one, &[&[&block, &[], &[]]]), [64, 64 + 65_536, 64 + 65_536]);
    assert_eq!(starts(&one, &[&[&less, &[], &[]]]), [16, 16 + 65_535, 16 + 65_535]);
    assert_eq!(starts(&one, &[&[&[1; 5], &block, &[]]]), [64, 128, 128 + 65_536]);
    assert_eq!(starts(&one, &[&[&[1; 5], &less, &[]]]), [64, 69, 69 + 65_535]);
}

/// Every list of a partitioned file says anew whether its shards are some of several.
#[test]
fn a_list_of_one_shard_after_one_of_several_is_not_aligned() {
    let mut out = vec![];
    let header = Header { form: Form::Partitioned, ..header() };
    let mut writer = Writer::new(&mut out, &header, vec![]).unwrap();
    for (shard_bits, shards) in [(0, 1), (1, 2), (0, 1)] {
        writer.start(vec![[0, 1]], shard_bits);
        for _ in 0..shards {
            writer.shard(&[Encoded { geometry: vec![9], payload: Bytes::from_static(&[7; 5]) }]).unwrap();
        }
        assert_eq!(writer.list(), [&[1, 0, 1][..], &[9; 2][..shards]].concat());
    }
    writer.close(vec![]).unwrap();
    verify(&out).unwrap();
    let (mut sums, mut starts) = (tail(&out).unwrap().sums().unwrap(), vec![]);
    while let Some((start, ..)) = sums.next().unwrap() {
        starts.push(start);
    }
    assert_eq!(starts, [16, 64, 128, 133]);
}

/// Every byte of the payloads and of the gaps between them is covered.
#[test]
fn every_changed_byte_is_found() {
    let long: Vec<u8> = (0..2 * BLOCK as usize + 100).map(|i| (i * 31) as u8).collect();
    let header = Header { shard_bits: 1, ..header() };
    let sound = file(&header, &[&[&[1; 5], &long, &[]], &[&[7], &[], &[8; 40]]]);
    verify(&sound).unwrap();
    let end = sound.len() - tail(&sound).unwrap().len();
    for at in (FRONT..300).chain((300..end).step_by(997)).chain(end - 200..end) {
        let mut changed = sound.clone();
        changed[at] ^= 1;
        assert_eq!(verify(&changed), Err(FormatError::Checksum { part: "payload" }), "byte {at}");
    }
    for at in end..sound.len() {
        let mut changed = sound.clone();
        changed[at] ^= 1;
        assert!(tail(&changed).is_err(), "byte {at}");
    }
}

#[test]
fn a_tail_is_enough_to_open() {
    let sound = file(&header(), &[&[&[1; 500], &[2; 6], &[]]]);
    let len = tail(&sound).unwrap().len();
    let from_tail = Tail::of(&sound[sound.len() - len..]).unwrap();
    assert_eq!((from_tail.header(None), from_tail.identity), (Ok(header()), identity(&sound)));
    // One that is too short says what it needs.
    for cut in [0, 1, FOOTER - 1, FOOTER, len - 1] {
        match Tail::of(&sound[sound.len() - cut..]).err() {
            Some(FormatError::Truncated { needed, .. }) => {
                assert_eq!(needed, if cut < FOOTER { 32 } else { len as u64 })
            }
            other => panic!("{other:?}"),
        }
    }
}

/// A file that does not end as files do is cut short: more is needed than there is. Of a tail alone it is only known that it ends wrongly.
#[test]
fn an_end_that_is_missing_is_needed() {
    let mut cut = file(&header(), &[&[&[1; 500], &[2; 6], &[]]]);
    cut.pop();
    let found = cut.len() as u64;
    assert_eq!(tail(&cut).err(), Some(FormatError::Truncated { what: "the footer", needed: found + 1, found }));
    assert_eq!(Tail::of(&cut).err(), Some(FormatError::Closing));
}

/// Numbers come back, and have one form each: the shortest.
#[test]
fn numbers_have_one_form() {
    let number = |bytes: &[u8]| Reader::new(bytes, "number").varint();
    for value in (0..64).flat_map(|bits| [1u64 << bits, (1 << bits) - 1]).chain([u64::MAX, u64::MAX - 1]) {
        let mut bytes = vec![];
        put_varint(&mut bytes, value);
        assert_eq!(bytes.len() as u32, (64 - value.leading_zeros()).div_ceil(7).max(1), "{value}");
        assert_eq!(number(&bytes), Ok(value));
        assert!(matches!(number(&bytes[..bytes.len() - 1]), Err(FormatError::Truncated { .. })), "{value}");
        if bytes.len() < 10 {
            *bytes.last_mut().unwrap() |= 0x80;
            bytes.push(0);
            assert!(matches!(number(&bytes), Err(FormatError::Invalid { .. })), "{value} with a zero behind it");
        }
    }
    // More than 64 bits: in the tenth byte, and in an eleventh.
    for end in [&[2][..], &[0x7f], &[0x81, 0], &[0x80, 1]] {
        assert!(matches!(number(&[&[0xff; 9], end].concat()), Err(FormatError::Invalid { .. })), "{end:?}");
    }
}

/// On 32 bits a unit of 4 GB would wrap around to the start of the file.
#[test]
fn sums_beyond_the_file_are_damage() {
    let sound = file(&header(), &[&[&[1; 500], &[2; 6], &[]]]);
    for len in [507u64, 1 << 32, (1 << 32) + 506] {
        let (mut sums, mut sections) = (vec![], vec![]);
        put_varint(&mut sums, 2 * len);
        sums.resize(sums.len() + 8 * len.div_ceil(BLOCK) as usize, 0);
        for (number, bytes) in [(1, &header().encode()), (2, &sums), (3, &vec![])] {
            put_varint(&mut sections, number);
            put_varint(&mut sections, bytes.len() as u64);
            sections.extend_from_slice(bytes);
        }
        let mut bytes = sound[..FRONT + 506].to_vec();
        sections.extend_from_slice(&(sections.len() as u32).to_le_bytes());
        sections.extend_from_slice(&sound[8..FRONT]);
        bytes.extend_from_slice(&sections);
        bytes.extend_from_slice(&xxh3_128(&sections).to_le_bytes());
        bytes.extend_from_slice(&CLOSING);
        assert_eq!(verify(&bytes), Err(FormatError::Checksum { part: "payload" }), "{len}");
    }
}

/// Sums that claim more than there is are an error, and nothing is read beyond the end.
#[test]
fn impossible_sums_are_refused() {
    for (code, rest) in [(u64::MAX, 0), (2, 0), (0, 0), (1, 8), (2 << 40, 8), (u64::MAX >> 1, 80), (1 << 62, 8)] {
        let mut section = vec![];
        put_varint(&mut section, code);
        section.extend(vec![0; rest]);
        let mut sums = Sums { from: Reader::new(&section, "sums"), end: FRONT as u64 };
        assert!(sums.next().is_err(), "{code}");
    }
}
