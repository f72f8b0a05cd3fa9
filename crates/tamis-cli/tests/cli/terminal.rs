//! keys and names that hold escape sequences -> harmless on a terminal, unchanged in a pipe.

use std::fs::File;
use std::io::Read;
use std::process::Stdio;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::test_dir::TestDir;

const EVIL: &str = "evil\x1b[2J\u{9b}1m\u{202e}key";
const SHOWN: &str = "evil\\u001b[2J\\u009b1m\\u202ekey";

/// What a terminal gets to see, standard error too; it is standard input as well, if someone would type there.
fn on_terminal(dir: &TestDir, args: &[&str], types: bool) -> String {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, vec![]).unwrap().into_string().unwrap();
    let terminal = File::options().read(true).write(true).open(name).unwrap();
    let mut command = dir.command("");
    if types {
        command.stdin(terminal.try_clone().unwrap());
    }
    let (out, err): (Stdio, Stdio) = (terminal.try_clone().unwrap().into(), terminal.into());
    let mut child = command.args(args).stdout(out).stderr(err).spawn().unwrap();
    // Our ends of the terminal, so that it ends when the program does.
    drop(command);
    let mut seen = vec![];
    // At its end Linux has an error.
    let _ = File::from(master).read_to_end(&mut seen);
    child.wait().unwrap();
    String::from_utf8(seen).unwrap().replace("\r\n", "\n")
}

#[test]
fn escape_sequences_are_shown_and_not_obeyed() {
    let dir = TestDir::new();
    let name = format!("{EVIL}.tamis");
    dir.put("keys.txt", format!("{EVIL}\n"));
    dir.put("pairs.tsv", format!("{EVIL}\t{EVIL}\n"));
    dir.run("build keys.txt -o f.tamis").text(0);
    dir.run("map build pairs.tsv -o m.tamis").text(0);
    dir.run("sets build --pairs pairs.tsv -o s.tamis").text(0);
    std::fs::copy(dir.path("f.tamis"), dir.path(&name)).unwrap();
    let cases: &[(&[&str], String)] = &[
        (&["query", "f.tamis", "keys.txt"], format!("{EVIL}\n")),
        (&["query", "--tsv", "f.tamis", "keys.txt"], format!("{EVIL}\t1\n")),
        (&["map", "get", "m.tamis", "keys.txt"], format!("{EVIL}\t{EVIL}\n")),
        (&["sets", "query", "s.tamis", "keys.txt"], format!("{EVIL}\t{EVIL}\n")),
        (&["sets", "query", "--tally", "s.tamis", "keys.txt"], format!("{EVIL}\t1\n")),
        (&["inspect", &name], format!("file        {name}: filter, format version")),
        (&["build", "keys.txt", "-o", &name], format!("file        {name}\n")),
        (&["verify", "f.tamis", "--exclude", "keys.txt"], format!(": {EVIL}\n")),
        (&["query", EVIL, "keys.txt"], format!("tamis: {EVIL}: no such file; expected a filter file\n")),
    ];
    for (args, raw) in cases {
        let piped = dir.command("").args(*args).output().unwrap();
        let piped = String::from_utf8([piped.stdout, piped.stderr].concat()).unwrap();
        assert!(piped.contains(raw.as_str()), "{args:?}: {piped:?}");
        let seen = on_terminal(&dir, args, false);
        assert!(seen.contains(&raw.replace(EVIL, SHOWN)), "{args:?}: {seen:?}");
        // A bar on standard error has sequences of its own.
        for part in ["\x1b[2J", "\u{9b}", "\u{202e}"] {
            assert!(!seen.contains(part), "{args:?}: {seen:?}");
        }
    }
    let seen = on_terminal(&dir, &["build", "keys.txt", "-o", "-"], false);
    assert_eq!(seen, "tamis: -o -: standard output is a terminal; expected a file or a pipe for the filter\n");
}

/// Nobody types the members of a filter: the word behind the option was meant for them.
#[test]
fn a_terminal_is_no_list_of_members() {
    let dir = TestDir::new();
    dir.put("keys.txt", "a\n");
    let seen = on_terminal(&dir, &["build", "-x", "keys.txt", "-o", "o"], true);
    assert!(seen.starts_with("tamis: members: none; --exclude keys.txt; expected members before"), "{seen:?}");
}
