//! sequences written by hand and at random -> the same k-mers as an oracle of strings finds.
#![allow(clippy::unwrap_used, clippy::panic)]

use super::*;

/// What a visit hears: names, and the keys of each record.
type Records = Vec<(String, Vec<u64>)>;

fn try_read(text: &[u8], k: u32, size: usize) -> Result<(Records, Sequences)> {
    let mut records: Records = vec![];
    let mut open = false;
    let counts = read_all(&[Source::Stdin], k, size, &mut &text[..], &mut |_| {}, &mut |file, event| {
        assert_eq!(file, 0);
        match event {
            Event::Record(name) => {
                assert!(!std::mem::replace(&mut open, true), "a record in a record");
                records.push((String::from_utf8(name.to_vec()).unwrap(), vec![]));
            }
            Event::Kmers(keys) => records.last_mut().unwrap().1.extend_from_slice(keys),
            Event::End => assert!(std::mem::replace(&mut open, false)),
        }
        Ok(())
    })?;
    assert!(!open, "{:?}", text.escape_ascii().to_string());
    Ok((records, counts))
}

/// Whole and in pieces.
#[track_caller]
fn read(text: impl AsRef<[u8]>, k: u32) -> (Records, Sequences) {
    let text = text.as_ref();
    let whole = try_read(text, k, BUFFER).unwrap();
    for size in [1, 2, 7] {
        assert_eq!(try_read(text, k, size).unwrap(), whole, "{size}");
    }
    whole
}

#[track_caller]
fn error(text: &str) -> String {
    assert!(try_read(text.as_bytes(), 3, 1).is_err());
    try_read(text.as_bytes(), 3, BUFFER).unwrap_err().to_string()
}

/// The key of one k-mer, by strings: the smaller of the two strands, as a number of base four.
fn oracle(kmer: &str) -> Option<u64> {
    let digit = |c: char| "ACGT".find(c.to_ascii_uppercase()).map(|at| at as u64);
    let number = |letters: Vec<u64>| letters.into_iter().fold(0, |sum, digit| 4 * sum + digit);
    let forward: Vec<u64> = kmer.chars().map(digit).collect::<Option<_>>()?;
    let reverse = forward.iter().rev().map(|digit| 3 - digit).collect();
    Some(number(forward).min(number(reverse)))
}

fn oracle_all(sequence: &str, k: usize) -> (Vec<u64>, u64) {
    let windows: Vec<Option<u64>> =
        (0..(sequence.len() + 1).saturating_sub(k)).map(|i| oracle(&sequence[i..i + k])).collect();
    let skipped = windows.iter().filter(|key| key.is_none()).count() as u64;
    (windows.into_iter().flatten().collect(), skipped)
}

#[test]
fn agrees_with_strings() {
    let mut state = 1u64;
    let mut random = |n: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % n
    };
    for round in 0..300 {
        let k = [1, 2, 3, 4, 15, 16, 30, 31][round % 8];
        let (mut fasta, mut fastq) = (String::new(), String::new());
        let (mut expected, mut short, mut skipped) = (vec![], 0, 0);
        for record in 0..random(4) {
            let letters = if round % 3 == 0 { "ACGTacgt" } else { "ACGTacgtACGTacgtN" };
            let length = random(120);
            let sequence: String = (0..length).map(|_| char::from(letters.as_bytes()[random(letters.len())])).collect();
            let end = ["\n", "\r\n"][random(2)];
            let width = random(40) + 1;
            let lines: Vec<&str> = (0..length).step_by(width).map(|i| &sequence[i..length.min(i + width)]).collect();
            let lines = lines.join(end);
            fasta += &format!(">r{record} some words{end}{lines}{end}");
            // Signs of quality may be what records begin with.
            let quality = lines.replace(|c: char| c.is_ascii_alphabetic(), ["@", "+", ">", "I"][random(4)]);
            fastq += &format!("@r{record}\t2{end}{lines}{end}+{end}{quality}{end}");
            let (keys, broken) = oracle_all(&sequence, k);
            expected.push((format!("r{record}"), keys));
            short += u64::from(length < k);
            skipped += broken;
        }
        let kmers = expected.iter().map(|(_, keys)| keys.len() as u64).sum();
        let counts = Sequences { records: expected.len() as u64, short, kmers, skipped };
        let expected = (expected, counts);
        assert_eq!(read(&fasta, k as u32), expected, "{fasta}");
        assert_eq!(read(&fastq, k as u32), expected, "{fastq}");
        // The last line may lack its end.
        assert_eq!(read(fasta.trim_end(), k as u32), expected, "{fasta}");
    }
}

#[test]
fn both_strands_have_the_same_keys() {
    let sequence = "GATTACAGATTACATTTGGGCCCAAACGTACGTTAGC";
    let other: String = sequence.chars().rev().map(|c| "TGCA".as_bytes()["ACGT".find(c).unwrap()] as char).collect();
    for k in 1..=31 {
        let [mut one, mut two] = [sequence, &other].map(|s| read(format!(">x\n{s}\n"), k).0[0].1.clone());
        one.sort_unstable();
        two.sort_unstable();
        assert_eq!(one, two);
        assert!(one.iter().all(|&key| key < 1 << (2 * k)));
    }
    assert_eq!(read(">x\nACGT\n", 1).0, [("x".to_string(), vec![0, 1, 1, 0])]);
    let key = read(format!(">x\n{}", "T".repeat(31)), 31).0[0].1[0];
    assert_eq!((key, spell(key, 31)), (0, "A".repeat(31)));
    assert_eq!(spell(oracle("GATTACA").unwrap(), 7), "GATTACA");
}

#[test]
fn records_without_letters_and_odd_letters() {
    let none = (vec![], Sequences::default());
    for empty in ["", "\n", "\r\n \n"] {
        assert_eq!(read(empty, 3), none);
    }
    let (records, counts) = read(">a\n>\n\n>b desc\n\n>c\n", 3);
    assert_eq!(records.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["a", "", "b", "c"]);
    assert_eq!(counts, Sequences { records: 4, short: 4, kmers: 0, skipped: 0 });
    assert_eq!(read(">", 3).1.records, 1);
    assert_eq!(read("@a\n\n+\n\n@b\n+\n@c\nACGT\n+b\nIIII", 3).1.records, 3);
    assert_eq!(
        read("\u{feff}\n\n>a\nACGT\n\nAC GT\r\n", 3).1,
        Sequences { records: 1, short: 0, kmers: 6, skipped: 0 }
    );
    // Every k-mer over an odd letter is skipped, and the rest is found.
    for odd in ["N", "u", "-", "*", ".", "R"] {
        let (records, counts) = read(format!(">a\nACGTA{odd}CCGTA\n"), 3);
        assert_eq!(counts, Sequences { records: 1, short: 0, kmers: 6, skipped: 3 });
        assert_eq!(records[0].1, oracle_all(&format!("ACGTA{odd}CCGTA"), 3).0);
    }
    assert_eq!(read(">a\nNNNN\n>b\nAN\n", 3).1, Sequences { records: 2, short: 1, kmers: 0, skipped: 2 });
}

#[test]
fn long_records_come_in_batches_and_long_names_are_cut() {
    let text = format!(">{}\n{}\n", "n".repeat(3 * NAME), "ACGTTGCA".repeat(20_000));
    let (records, counts) = read(&text, 31);
    assert_eq!((records[0].0.len(), counts.kmers), (NAME, 160_000 - 30));
    assert_eq!(records[0].1, oracle_all(&"ACGTTGCA".repeat(20_000), 31).0);
}

#[test]
fn wrong_files_are_errors_with_a_line() {
    let name = "standard input";
    for (text, expected) in [
        ("key1\nkey2\n", "line 1: expected '>' or '@', as sequences begin, found \"key1\""),
        ("\n\nACGT\n", "line 3: expected '>' or '@', as sequences begin, found \"ACGT\""),
        (">a\nACGT\nAC1\n", "line 3: expected letters of a sequence, found \"1\""),
        (">a\nAC>b\n", "line 2: expected letters of a sequence, found \">b\""),
        ("@a\nACGT\n+\nIIII\nACGT\n", "line 5: expected '@', as the next record begins, found \"ACGT\""),
        ("@a\nACGT\n+\nIIII\n>b\nA\n", "line 5: expected '@', as the next record begins, found \">b\""),
        ("\n@a\nACGT\n+\nIIIII\n", "line 5: more signs of quality than the record of line 2 has letters, 4"),
    ] {
        assert_eq!(error(text), format!("{name}: {expected}"), "{text}");
    }
    for (text, expected) in [
        ("@a\nAC\n+\nII\n@b\nACGT\n+\nIII\n", "its quality"),
        ("@a\nAC\n+\nII\n@b\nACGT\n", "+ and its quality"),
        ("@a\nAC\n+\nII\n@b", "+ and its quality"),
        ("@a\nAC\n+\nII\n@b\nAC\n+", "its quality"),
    ] {
        assert_eq!(error(text), format!("{name}: ends inside the record of line 5; expected {expected}"), "{text}");
    }
}

#[test]
fn files_are_looked_at_before_the_first_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        Source::from(path)
    };
    let inputs = [put("a.fa", ">a\nACGT\n"), put("b.fq.gz", "@b\nACGT\n+\nIIII\n"), put("none", "")];
    let mut heard = vec![];
    let mut listen = |file: usize, event: Event<'_>| {
        if let Event::Kmers(keys) = event {
            heard.push((file, keys.len()));
        }
        Ok(())
    };
    let mut last = 0;
    read_all(&inputs, 3, BUFFER, &mut io::empty(), &mut |bytes| last = bytes, &mut listen).unwrap();
    assert_eq!((heard, Some(last)), (vec![(0, 2), (1, 2)], super::super::total_bytes(&inputs)));
    let inputs = [put("a.fa", ">a\nACGT\n"), put("list", "\n\nkey\n")];
    let message =
        read_all(&inputs, 3, BUFFER, &mut io::empty(), &mut |_| {}, &mut |_, _| panic!("was read")).unwrap_err();
    assert!(message.to_string().ends_with("list: line 3: expected '>' or '@', as sequences begin, found \"key\""));
}
