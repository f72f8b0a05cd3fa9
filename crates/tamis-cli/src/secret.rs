//! --secret-file -> the secret of a hash that is kept outside the file: read, or drawn and written for its owner alone.

use std::fs::{self, File, OpenOptions};
use std::hint::black_box;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Result, anyhow, bail};
use tamis::Hasher;

use crate::input::Identity;
use crate::mapped::How;

/// Where the secret of a file is, if it is not in the file.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct SecretArgs {
    /// File with the secret of the hash, if it was built with --secret-file
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
}

impl SecretArgs {
    /// The file.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.secret_file.as_deref()
    }

    /// How to open a file with this secret.
    pub(crate) fn how(&self, no_verify: bool) -> Result<How> {
        let read = |path: &Path| read(path)?.ok_or_else(|| missing(path));
        Ok(How { no_verify, secret: self.secret_file.as_deref().map(read).transpose()? })
    }
}

/// What a file of secrets holds.
const EXPECTED: &str = "expected 32 hexadecimal digits";

fn missing(path: &Path) -> anyhow::Error {
    anyhow!("--secret-file {}: no such file; expected the one that the build wrote or read", path.display())
}

/// The secret in a file; nothing if there is no such file.
fn read(path: &Path) -> Result<Option<[u64; 2]>> {
    let name = path.display();
    let file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        file => file.map_err(|error| anyhow!("--secret-file {name}: {error}; {EXPECTED}"))?,
    };
    // Room for all of it, so that no copy is left where a vector was before it grew.
    let mut text = Vec::with_capacity(128);
    let done = file.take(65).read_to_end(&mut text);
    let secret = parse(&text);
    wipe(&mut text);
    done.map_err(|error| anyhow!("--secret-file {name}: {error}; {EXPECTED}"))?;
    secret.map(Some).ok_or_else(|| anyhow!("--secret-file {name}: not a secret; {EXPECTED}"))
}

/// Two words of 16 hexadecimal digits, and blanks around them.
fn parse(text: &[u8]) -> Option<[u64; 2]> {
    let digits = text.trim_ascii();
    if digits.len() != 32 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let word = |digits| u64::from_str_radix(str::from_utf8(digits).ok()?, 16).ok();
    Some([word(&digits[..16])?, word(&digits[16..])?])
}

/// Zeros over what was a secret. The compiler must believe that they are read.
fn wipe(text: &mut [u8]) {
    text.fill(0);
    black_box(text);
}

/// The secret of a build, and the file that has it or will have it.
pub(crate) struct SecretFile {
    pub(crate) path: PathBuf,
    pub(crate) secret: [u64; 2],
    /// Whether there is no such file yet.
    is_new: bool,
}

impl SecretFile {
    /// Reads the file; where there is none, draws a secret.
    pub(crate) fn new(path: &Path) -> Result<SecretFile> {
        let (secret, is_new) = match read(path)? {
            Some(secret) => (secret, false),
            None => (random("--secret-file")?.words(), true),
        };
        Ok(SecretFile { path: path.to_path_buf(), secret, is_new })
    }

    /// Writes the file if there is none, before a key is hashed for the `output` that needs it. Of several processes that do so at once
    /// one writes it, and the others read what it wrote. So it stays, also if the build fails: another one may have it by then.
    pub(crate) fn write(mut self, output: &Path) -> Result<SecretFile> {
        let name = self.path.display();
        if is_same_place(&self.path, output) {
            bail!("--secret-file {name}: is the file to build; expected another one");
        }
        if self.is_new {
            match create(&self.path, self.secret) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    self.secret = read(&self.path)?.ok_or_else(|| missing(&self.path))?;
                }
                created => {
                    created.map_err(|error| {
                        anyhow!("--secret-file {name}: {error}; expected a file that can be written")
                    })?;
                }
            }
        }
        Ok(self)
    }
}

/// Whether both are one file, or would be.
fn is_same_place(one: &Path, other: &Path) -> bool {
    let place = |path: &Path| {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Some((fs::canonicalize(folder).ok()?, path.file_name()?.to_os_string()))
    };
    let identity = Identity::of_path(one);
    (identity.is_some() && identity == Identity::of_path(other)) || (place(one).is_some() && place(one) == place(other))
}

/// A file with a secret for its owner alone. It gets its name when it is complete, if the name is still free.
fn create(path: &Path, secret: [u64; 2]) -> io::Result<()> {
    let write = |path: &Path| {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path)?;
        let mut text = Vec::with_capacity(64);
        let [a, b] = secret;
        let written = writeln!(text, "{a:016x}{b:016x}").and_then(|()| file.write_all(&text));
        wipe(&mut text);
        written.and_then(|()| file.sync_all())
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    let part = path.with_file_name(format!(".tamis-{}-{now}.part", std::process::id()));
    write(&part)?;
    let linked = fs::hard_link(&part, path);
    let _ = fs::remove_file(&part);
    match linked {
        // Some file systems have no links.
        Err(error) if error.kind() != ErrorKind::AlreadyExists => write(path),
        linked => linked,
    }
}

/// A hash with a secret that the system draws, for this option.
pub(crate) fn random(option: &str) -> Result<Hasher> {
    Hasher::random_secret().map_err(|error| anyhow!("{option}: the system has no random numbers: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_32_digits() {
        let secret = Some([0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210]);
        for text in [
            "0123456789abcdeffedcba9876543210",
            "0123456789ABCDEFFEDCBA9876543210\r\n",
            "  0123456789abcdeffedcba9876543210",
        ] {
            assert_eq!(parse(text.as_bytes()), secret, "{text:?}");
        }
        for text in [
            "",
            "0",
            "+123456789abcdeffedcba9876543210",
            "0123456789abcdef fedcba9876543210",
            "0123456789abcdeffedcba98765432100",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text:?}");
        }
    }
}
