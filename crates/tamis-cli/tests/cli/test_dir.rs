//! a directory, a program -> one run of it.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// A directory of its own for every test; `tmp` in it is where temporary files would go.
pub(crate) struct TestDir(tempfile::TempDir);

/// What a run left.
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) out: Vec<u8>,
    pub(crate) err: String,
}

impl Run {
    /// Standard output of a run that ended with this code and had nothing to complain about.
    #[track_caller]
    pub(crate) fn text(self, code: i32) -> String {
        assert_eq!((self.code, self.err.as_str()), (Some(code), ""), "{}", String::from_utf8_lossy(&self.out));
        String::from_utf8(self.out).unwrap()
    }

    /// Standard output as one JSON object.
    #[track_caller]
    pub(crate) fn json(self, code: i32) -> Value {
        let mut objects = self.objects(code);
        assert_eq!(objects.len(), 1, "{objects:?}");
        objects.remove(0)
    }

    /// Standard output as JSON objects, one per line, without the fields that all of them have.
    #[track_caller]
    pub(crate) fn objects(self, code: i32) -> Vec<Value> {
        let object = |line: &str| {
            let mut object: Value = serde_json::from_str(line).unwrap();
            let fields = object.as_object_mut().unwrap();
            let common = ["schema", "command", "form"].map(|name| fields.remove(name).unwrap());
            assert!(common[0] == 1 && common[1].is_string() && common[2].is_string(), "{line}");
            object
        };
        self.text(code).lines().map(object).collect()
    }

    /// The message of a run that failed with exit code 2.
    #[track_caller]
    pub(crate) fn complaint(self) -> String {
        self.failure(2)
    }

    /// The message of a run that failed: one line, and nothing on standard output.
    #[track_caller]
    pub(crate) fn failure(self, code: i32) -> String {
        assert_eq!((self.code, self.out.len()), (Some(code), 0), "{}", self.err);
        let message = self.err.strip_prefix("tamis: ").and_then(|line| line.strip_suffix('\n'));
        let message = message.unwrap_or_else(|| panic!("{:?}", self.err));
        assert!(!message.contains('\n'), "{message}");
        message.to_string()
    }
}

impl From<Output> for Run {
    fn from(output: Output) -> Run {
        Run { code: output.status.code(), out: output.stdout, err: String::from_utf8(output.stderr).unwrap() }
    }
}

impl TestDir {
    pub(crate) fn new() -> TestDir {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("tmp")).unwrap();
        TestDir(dir)
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn put(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.path(name), bytes).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    /// Every file and directory, by name.
    pub(crate) fn names(&self) -> Vec<String> {
        let list = |dir: &str| {
            let entries = fs::read_dir(self.path(dir)).unwrap();
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect::<Vec<_>>()
        };
        let mut names = [list("."), list("tmp")].concat();
        names.sort();
        names
    }

    /// The program with this directory around it; arguments are split at blanks.
    pub(crate) fn command(&self, line: &str) -> Command {
        self.around(env!("CARGO_BIN_EXE_tamis"), line)
    }

    /// Another program in the same place.
    pub(crate) fn around(&self, program: &str, line: &str) -> Command {
        let mut command = Command::new(program);
        command.args(line.split_whitespace()).current_dir(self.0.path()).env("TMPDIR", self.path("tmp"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, line: &str) -> Run {
        self.command(line).output().unwrap().into()
    }

    /// A run with this on standard input.
    pub(crate) fn feed(&self, line: &str, input: impl AsRef<[u8]> + Send) -> Run {
        let mut child = self.command(line).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        std::thread::scope(|scope| {
            // A program that fails early does not read it all.
            scope.spawn(move || drop(stdin.write_all(input.as_ref())));
            child.wait_with_output().unwrap().into()
        })
    }

    /// The message of a run that must fail and leave the disk as it was.
    #[track_caller]
    pub(crate) fn error(&self, line: &str) -> String {
        let before = self.names();
        let message = self.run(line).complaint();
        assert_eq!(self.names(), before, "{line}");
        message
    }
}

/// A file of the repository.
pub(crate) fn quickstart(name: &str) -> String {
    format!("{}/../../data/quickstart/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Decimal numbers, one per line.
pub(crate) fn numbers(range: std::ops::Range<u64>) -> String {
    range.map(|number| format!("{number}\n")).collect()
}
