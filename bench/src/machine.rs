//! the machine -> one paragraph: what a table was measured on.

use std::fmt;
use std::fs;
use std::process::Command;

use serde::Serialize;

/// Everything about the machine and the build that influences the numbers.
#[derive(Serialize)]
pub struct Machine {
    cpu: String,
    cores: usize,
    platform: String,
    /// `always`, `madvise` or `never`.
    huge_pages: String,
    /// Instruction sets the whole program was compiled for, beyond the platform's own.
    target_features: Vec<&'static str>,
    optimised: bool,
    commit: Option<String>,
}

macro_rules! enabled {
    ($($feature:literal),*) => {
        [$(($feature, cfg!(target_feature = $feature))),*].into_iter().filter(|f| f.1).map(|f| f.0).collect()
    };
}

impl Machine {
    /// Reads it off the running system; what cannot be read is called unknown.
    pub fn read() -> Machine {
        let unknown = || "unknown".to_string();
        let pages = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
        Machine {
            cpu: fs::read_to_string("/proc/cpuinfo").ok().and_then(|t| processor(&t)).unwrap_or_else(unknown),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            platform: format!("{} {}", std::env::consts::ARCH, std::env::consts::OS),
            huge_pages: chosen(&pages).unwrap_or_else(unknown),
            target_features: enabled!("popcnt", "aes", "bmi2", "avx2", "avx512f", "avx512vpopcntdq", "neon", "sve"),
            optimised: !cfg!(debug_assertions),
            commit: commit(),
        }
    }
}

/// The first processor of `/proc/cpuinfo`. Virtual machines hide the model's name but not its numbers.
fn processor(cpuinfo: &str) -> Option<String> {
    let field = |name: &str| {
        let mut lines = cpuinfo.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim())
    };
    let name = field("model name")?;
    Some(match (field("cpu family"), field("model")) {
        (Some(family), Some(model)) => format!("{name} (family {family}, model {model})"),
        _ => name.to_string(),
    })
}

/// The word in brackets: the kernel marks the active choice so.
fn chosen(choices: &str) -> Option<String> {
    Some(choices.split_once('[')?.1.split_once(']')?.0.to_string())
}

/// The commit this program was built from, if its sources are still in a repository.
fn commit() -> Option<String> {
    let git = |arguments: &[&str]| {
        let run = Command::new("git").arg("-C").arg(env!("CARGO_MANIFEST_DIR")).args(arguments).output().ok()?;
        run.status.success().then(|| String::from_utf8_lossy(&run.stdout).trim().to_string())
    };
    let hash = git(&["rev-parse", "--short=10", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|list| !list.is_empty());
    Some(if changed { format!("{hash} with changes") } else { hash })
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}, {} cores, {}; transparent huge pages: {}; ",
            self.cpu, self.cores, self.platform, self.huge_pages
        )?;
        match self.target_features.as_slice() {
            [] => f.write_str("compiled for the default target")?,
            features => write!(f, "compiled with {}", features.join(", "))?,
        }
        if !self.optimised {
            f.write_str("; DEBUG BUILD, the times mean nothing")?;
        }
        match &self.commit {
            Some(commit) => write!(f, "; commit {commit}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_linux_writes() {
        assert_eq!(chosen("always [madvise] never\n").as_deref(), Some("madvise"));
        assert_eq!(chosen(""), None);
        let x86 = "processor\t: 0\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\nprocessor\t: 1\n";
        assert_eq!(processor(x86).as_deref(), Some("AMD EPYC (family 25, model 17)"));
        assert_eq!(processor("processor\t: 0\nBogoMIPS\t: 50.00\n"), None);
    }

    #[test]
    fn says_no_paths() {
        assert!(!Machine::read().to_string().contains('/'));
    }
}
