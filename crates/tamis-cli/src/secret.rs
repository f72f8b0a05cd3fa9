//! --secret-file -> the secret of a hash that is kept outside the file: read, or drawn and written for its owner alone.

use std::fs::{self, File, OpenOptions};
use std::hint::black_box;
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

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
    path: PathBuf,
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

    /// Writes the file if there is none, before the `output` that needs it. It is removed again unless it is kept.
    pub(crate) fn create(&self, output: &Path) -> Result<Created<'_>> {
        let name = self.path.display();
        let mut created = Created { path: &self.path, remove: self.is_new };
        if self.is_new {
            let [a, b] = self.secret;
            let mut text = Vec::with_capacity(64);
            let mut options = OpenOptions::new();
            options.write(true).create_new(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            let written = options.open(&self.path).and_then(|mut file| {
                writeln!(text, "{a:016x}{b:016x}")?;
                file.write_all(&text)?;
                file.sync_all()
            });
            wipe(&mut text);
            if let Err(error) = written {
                // A file that another program made meanwhile is not ours to remove.
                created.remove = error.kind() != ErrorKind::AlreadyExists;
                bail!("--secret-file {name}: {error}; expected a file that can be written");
            }
        }
        let identity = Identity::of_path(&self.path);
        if identity.is_some() && identity == Identity::of_path(output) {
            bail!("--secret-file {name}: is the file to build; expected another one");
        }
        Ok(created)
    }
}

/// A file of a secret that was just written.
pub(crate) struct Created<'a> {
    path: &'a Path,
    remove: bool,
}

impl Created<'_> {
    /// The file that needs it is there.
    pub(crate) fn keep(mut self) {
        self.remove = false;
    }
}

impl Drop for Created<'_> {
    fn drop(&mut self) {
        if self.remove {
            let _ = fs::remove_file(self.path);
        }
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
