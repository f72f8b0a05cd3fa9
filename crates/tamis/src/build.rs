//! keys + a goal -> bytes: the front door, and the parallel construction behind it.
//!
//! ```text
//!   keys ──push──▶ Intake ──▶ Shards ──▶ plan ──▶ workers, one shard each ──in order──▶ Writer ──▶ memory or a file
//! ```
//!
//! Workers run ahead of the writer by a few shards and no more, so memory stays bounded however large the filter is; a
//! file is written under a temporary name and renamed when it is complete.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use crate::arch::Arena;
use crate::error::{BuildError, Error};
use crate::format::{Encoded, Header, MAX_SHARD_BITS, Writer};
use crate::hash::{Digest, Domain, Hasher, Key, Salt};
use crate::leaves::Values;
use crate::plan::{Effort, Goal, Kind, Plan, plan};
use crate::query::Filter;
use crate::shard::{Intake, Keys, Limits, OnConflict, Shards, Sorted, Stats, Workspace};

/// Starts a filter on these keys: anything that iterates over text, bytes or `u64`.
///
/// ```
/// let denied = ["ads.example", "spam.example"];
/// let filter = tamis::build(denied).fpr(0.001).finish()?;
/// assert!(filter.contains("ads.example")?);
/// # Ok::<(), tamis::Error>(())
/// ```
pub fn build<I>(keys: I) -> Build<I>
where
    I: IntoIterator<Item: Key>,
{
    Build { keys, options: Options::default() }
}

/// Starts a filter on keys that will be pushed one by one, from a source that may fail.
///
/// ```
/// let mut keys = tamis::stream().fpr(0.001).start();
/// for line in "one\ntwo\nthree".lines() {
///     keys.push(line)?;
/// }
/// let filter = keys.finish()?;
/// assert_eq!(filter.len(), 3);
/// # Ok::<(), tamis::Error>(())
/// ```
pub fn stream() -> Build<()> {
    Build { keys: (), options: Options::default() }
}

/// Starts a filter on digests that were made before with `hasher`, as an engine has them that hashes its keys once. Digests
/// in ascending order are neither copied nor sorted.
///
/// ```
/// use tamis::{Domain, Hasher};
/// let hasher = Hasher::seeded(7);
/// let digests: Vec<_> = ["ann", "bob"].iter().map(|name| hasher.bytes(name.as_bytes())).collect();
/// let filter = tamis::build_digests(digests, hasher, Domain::Bytes).finish()?;
/// assert!(filter.contains("bob")?);
/// # Ok::<(), tamis::Error>(())
/// ```
pub fn build_digests(digests: impl Into<Arc<[Digest]>>, hasher: Hasher, domain: Domain) -> Build<Digests> {
    let keys = Digests { digests: digests.into(), domain };
    Build { keys, options: Options { hasher, ..Options::default() } }
}

/// Keys that are hashed already: see [`build_digests`].
#[derive(Debug)]
pub struct Digests {
    digests: Arc<[Digest]>,
    domain: Domain,
}

/// How far a build has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Progress {
    /// Keys taken in so far.
    Read {
        /// How many, duplicates included.
        keys: u64,
    },
    /// Shards built and written so far.
    Built {
        /// How many.
        shards: u64,
        /// Of how many.
        total: u64,
    },
}

/// A filter to be: what is wanted of it, and how it may be made.
#[must_use = "nothing is built before `finish`"]
#[derive(Debug)]
pub struct Build<I> {
    keys: I,
    options: Options,
}

#[derive(Clone)]
struct Options {
    goal: Goal,
    kind: Kind,
    effort: Effort,
    hasher: Hasher,
    limits: Limits,
    threads: usize,
    progress: Option<Arc<dyn Fn(Progress) + Send + Sync>>,
    cancel: Arc<AtomicBool>,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Options { goal, kind, effort, hasher, limits, threads, .. } = self;
        write!(f, "{goal:?}, {kind:?}, {effort:?}, {hasher:?}, {limits:?}, {threads} threads")
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            goal: Goal::Rate(0.01),
            kind: Kind::Auto,
            effort: Effort::Balanced,
            hasher: Hasher::seeded(0),
            limits: Limits::default(),
            threads: std::thread::available_parallelism().map_or(1, |n| n.get()),
            progress: None,
            cancel: Arc::default(),
        }
    }
}

impl Options {
    fn workspace(&self) -> Arc<Workspace> {
        let memory = self.limits.memory / GATHER.1 * GATHER.0;
        Workspace::new(&Limits { memory, ..self.limits.clone() }, self.threads)
    }
}

impl<I> Build<I> {
    /// Lets at most this share of strangers through. The default is 0.01.
    pub fn fpr(mut self, rate: f64) -> Self {
        self.options.goal = Goal::Rate(rate);
        self
    }

    /// Spends at most this many bits per key.
    pub fn bits_per_key(mut self, bits: f64) -> Self {
        self.options.goal = Goal::BitsPerKey(bits);
        self
    }

    /// Names the structure instead of leaving it to the planner.
    pub fn kind(mut self, kind: Kind) -> Self {
        self.options.kind = kind;
        self
    }

    /// How hard to look for a smaller filter.
    pub fn effort(mut self, effort: Effort) -> Self {
        self.options.effort = effort;
        self
    }

    /// The seed of the hash; equal keys, goals and seeds give equal bytes. The default is 0.
    pub fn seed(mut self, seed: u64) -> Self {
        self.options.hasher = Hasher::seeded(seed);
        self
    }

    /// Hashes with this secret key instead, for queries an adversary may choose. The key is stored in the file.
    pub fn keyed(mut self, key: [u64; 2]) -> Self {
        self.options.hasher = Hasher::keyed(key);
        self
    }

    /// Limits of memory and disk, and where temporary files go.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.options.limits = limits;
        self
    }

    /// How many threads to use, at most 1024; all of them by default. The bytes are the same for any number.
    pub fn threads(mut self, threads: usize) -> Self {
        self.options.threads = threads.clamp(1, 1024);
        self
    }

    /// Is told how far the build has come, about every 65,536 keys and after every shard.
    pub fn progress(mut self, tell: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.options.progress = Some(Arc::new(tell));
        self
    }

    /// The build stops with [`BuildError::Cancelled`] soon after this becomes true.
    pub fn cancel(mut self, flag: Arc<AtomicBool>) -> Self {
        self.options.cancel = flag;
        self
    }
}

impl Build<()> {
    /// Opens the door for keys.
    pub fn start(self) -> Collector {
        Collector::new(self.options, None)
    }
}

impl<I: IntoIterator<Item: Key>> Build<I> {
    /// Builds the filter in memory.
    pub fn finish(self) -> Result<Filter, Error> {
        self.collect()?.finish()
    }

    /// Builds the filter into a file, without ever holding it in memory; an existing file is replaced when, and only when,
    /// the new one is complete.
    ///
    /// ```
    /// let path = std::env::temp_dir().join("tamis-finish-to.tamis");
    /// let report = tamis::build(0..5000u64).finish_to(&path)?;
    /// assert_eq!(report.stats.keys, 5000);
    /// assert!(tamis::Filter::map(&path)?.contains(77u64)?);
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn finish_to(self, path: impl AsRef<Path>) -> Result<Report, Error> {
        self.collect()?.finish_to(path)
    }

    fn collect(self) -> Result<Collector, BuildError> {
        let mut collector = Collector::new(self.options, Some(<I::Item as Key>::DOMAIN));
        for key in self.keys {
            collector.push(key)?;
        }
        Ok(collector)
    }
}

impl Build<Digests> {
    /// Builds the filter in memory.
    pub fn finish(self) -> Result<Filter, Error> {
        let (arena, _) = self.write(Arena::new)?;
        Ok(Filter::open(arena.finish())?)
    }

    /// Builds the filter into a file: see [`Build::finish_to`].
    pub fn finish_to(self, path: impl AsRef<Path>) -> Result<Report, Error> {
        to_file(path.as_ref(), |out| self.write(|_| out))
    }

    fn write<W: Write>(self, out: impl FnOnce(u64) -> W) -> Result<(W, Report), Error> {
        let Build { keys: Digests { digests, domain }, options } = self;
        let stop = || options.cancel.load(Ordering::Relaxed);
        let sorted = Sorted::shared(digests, &options.workspace(), &stop)?;
        write(sorted, domain, &options, out)
    }
}

/// What was built.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// What was read.
    pub stats: Stats,
    /// The length of the file.
    pub bytes: u64,
}

/// Takes keys in; sorts and spills them on the way.
pub struct Collector {
    options: Options,
    domain: Option<Domain>,
    intake: Intake<Digest>,
    count: u64,
}

impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Collector of {} keys: {:?}", self.count, self.options)
    }
}

/// How often the progress callback is called while keys come in.
const TELL: u64 = 1 << 16;
/// The part of the memory limit that is the workspace of intake and census. The rest is room for what comes on top: shards
/// under construction, about 60 MB per thread.
const GATHER: (u64, u64) = (5, 8);

impl Collector {
    fn new(options: Options, domain: Option<Domain>) -> Collector {
        let workspace = options.workspace();
        let intake = Intake::new(&workspace, workspace.memory);
        Collector { options, domain, intake, count: 0 }
    }

    /// Adds a key. Equal keys count once.
    pub fn push<K: Key>(&mut self, key: K) -> Result<(), BuildError> {
        if *self.domain.get_or_insert(K::DOMAIN) != K::DOMAIN {
            return Err(BuildError::MixedDomains);
        }
        let cancel = &self.options.cancel;
        self.intake.push(key.digest(&self.options.hasher), &|| cancel.load(Ordering::Relaxed))?;
        self.count += 1;
        if self.count.is_multiple_of(TELL) {
            if cancel.load(Ordering::Relaxed) {
                return Err(BuildError::Cancelled);
            }
            self.tell(Progress::Read { keys: self.count });
        }
        Ok(())
    }

    fn tell(&self, progress: Progress) {
        if let Some(tell) = &self.options.progress {
            tell(progress);
        }
    }

    /// Builds the filter in memory.
    pub fn finish(self) -> Result<Filter, Error> {
        let (arena, _) = self.write(Arena::new)?;
        Ok(Filter::open(arena.finish())?)
    }

    /// Builds the filter into a file: see [`Build::finish_to`].
    pub fn finish_to(self, path: impl AsRef<Path>) -> Result<Report, Error> {
        to_file(path.as_ref(), |out| self.write(|_| out))
    }

    fn write<W: Write>(self, out: impl FnOnce(u64) -> W) -> Result<(W, Report), Error> {
        self.tell(Progress::Read { keys: self.count });
        let Collector { options, domain, intake, .. } = self;
        let sorted = intake.finish(&|| options.cancel.load(Ordering::Relaxed))?;
        write(sorted, domain.unwrap_or(Domain::Bytes), &options, out)
    }
}

/// Writes through a temporary file that takes its place when it is complete.
fn to_file(
    path: &Path,
    write: impl FnOnce(BufWriter<Target>) -> Result<(BufWriter<Target>, Report), Error>,
) -> Result<Report, Error> {
    let (target, report) = write(BufWriter::with_capacity(1 << 20, Target::new(path)?))?;
    target.into_inner().map_err(io::IntoInnerError::into_error)?.commit()?;
    Ok(report)
}

/// Plans, builds and writes a filter to `out`, which is told how many bytes to expect.
fn write<W: Write>(
    sorted: Sorted<Digest>,
    domain: Domain,
    options: &Options,
    out: impl FnOnce(u64) -> W,
) -> Result<(W, Report), Error> {
    let stop = || options.cancel.load(Ordering::Relaxed);
    let shards = Shards::new(Keys::Plain(sorted), None, OnConflict::Error, &stop)?;
    if shards.bits > MAX_SHARD_BITS {
        let reason = format!("{} keys are more than a file holds", shards.stats.keys);
        return Err(BuildError::Unreachable { reason }.into());
    }
    let plan = plan(&shards.stats, options.goal, options.kind, options.effort)?;
    let header = Header { hasher: options.hasher, domain, shard_bits: shards.bits, keys: shards.stats.keys };
    let kinds = plan.steps.iter().map(|(role, structure)| (*role, structure.tag())).collect();
    let mut writer = Writer::new(out(plan.bytes(shards.stats.keys)), &header, kinds)?;
    build_shards(&shards, &plan, options, &mut writer)?;
    let (out, bytes) = writer.finish()?;
    Ok((out, Report { stats: shards.stats, bytes }))
}

/// Builds one shard: one part per step.
fn build_shard(
    shards: &Shards,
    plan: &Plan,
    shard: usize,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Vec<Encoded>, BuildError> {
    if stop() {
        return Err(BuildError::Cancelled);
    }
    let shard = shards.load(shard, stop)?;
    let steps = plan.steps.iter().enumerate();
    steps.map(|(i, (_, structure))| structure.build(&shard.keys, Values::Fingerprints, Salt::new(i as u64))).collect()
}

/// Who is to build which shard next, and what is ready to be written.
#[derive(Default)]
struct Queue {
    next: usize,
    written: usize,
    ready: BTreeMap<usize, Result<Vec<Encoded>, BuildError>>,
    over: bool,
}

/// Builds all shards on several threads and writes them in order.
fn build_shards<W: Write>(
    shards: &Shards,
    plan: &Plan,
    options: &Options,
    writer: &mut Writer<W>,
) -> Result<(), Error> {
    let count = shards.count();
    let cancelled = || options.cancel.load(Ordering::Relaxed);
    let tell = |done: usize| {
        if let Some(tell) = &options.progress {
            tell(Progress::Built { shards: done as u64, total: count as u64 });
        }
    };
    let threads = options.threads.min(count);
    if threads <= 1 {
        for shard in 0..count {
            writer.shard(&build_shard(shards, plan, shard, &cancelled)?)?;
            tell(shard + 1);
        }
        return Ok(());
    }
    // Workers may be this many shards ahead of the writer: enough not to wait for each other, few enough for memory.
    let ahead = threads + 1;
    let queue = Mutex::new(Queue::default());
    let changed = Condvar::new();
    // Nothing panics while it holds the lock, so a poisoned one is still sound.
    let lock = || queue.lock().unwrap_or_else(PoisonError::into_inner);
    let work = || {
        loop {
            let mut state = lock();
            while !state.over && state.next < count && state.next >= state.written + ahead {
                state = changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if state.over || state.next >= count {
                return;
            }
            let shard = state.next;
            state.next += 1;
            drop(state);
            // Should a worker panic all the same, the writer must not wait for ever: it hears of an error.
            let parts = catch_unwind(AssertUnwindSafe(|| build_shard(shards, plan, shard, &cancelled)));
            let lost = || BuildError::Io(io::Error::other("a worker panicked"));
            lock().ready.insert(shard, parts.unwrap_or_else(|_| Err(lost())));
            changed.notify_all();
        }
    };
    /// Sends the workers home however the writer ends: a callback that panics must not leave the scope waiting for them.
    struct Over<F: Fn()>(F);
    impl<F: Fn()> Drop for Over<F> {
        fn drop(&mut self) {
            (self.0)();
        }
    }
    std::thread::scope(|scope| {
        let _over = Over(|| {
            lock().over = true;
            changed.notify_all();
        });
        // A thread that the system refuses to start is done without; the first must start, or nobody would work.
        std::thread::Builder::new().spawn_scoped(scope, work)?;
        for _ in 1..threads {
            if std::thread::Builder::new().spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        let mut write = || -> Result<(), Error> {
            for shard in 0..count {
                let mut state = lock();
                let parts = loop {
                    match state.ready.remove(&shard) {
                        Some(parts) => break parts,
                        None => state = changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                    }
                };
                drop(state);
                writer.shard(&parts?)?;
                lock().written += 1;
                changed.notify_all();
                tell(shard + 1);
            }
            Ok(())
        };
        write()
    })
}

/// Where a filter goes: a temporary file beside its place, renamed at the end; or a device or pipe, written as it is.
enum Target {
    Direct(File),
    Temporary(tempfile::NamedTempFile, PathBuf),
}

impl Target {
    fn new(path: &Path) -> io::Result<Target> {
        // What a link points to is replaced, not the link.
        let path = &std::fs::canonicalize(path).unwrap_or_else(|_| behind_links(path));
        let found = std::fs::metadata(path);
        match &found {
            Ok(data) if data.is_dir() => {
                return Err(io::Error::new(io::ErrorKind::IsADirectory, "is a directory, expected a file to write"));
            }
            Ok(data) if !data.is_file() => return Ok(Target::Direct(File::options().write(true).open(path)?)),
            _ => {}
        }
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut builder = tempfile::Builder::new();
        builder.prefix(".tamis-").suffix(".part");
        #[cfg(unix)]
        if found.is_err() {
            // As a program that creates a file would; the umask takes away what the user does not want.
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(std::fs::Permissions::from_mode(0o666));
        }
        let file = builder.tempfile_in(dir)?;
        // Who could not read the old file, which may hold a secret key, cannot read the new one.
        #[cfg(unix)]
        if let Ok(old) = found {
            file.as_file().set_permissions(old.permissions())?;
        }
        Ok(Target::Temporary(file, path.to_path_buf()))
    }

    /// Makes the file durable and gives it its name.
    fn commit(self) -> io::Result<()> {
        match self {
            Target::Direct(mut file) => file.flush(),
            Target::Temporary(file, path) => {
                file.as_file().sync_all()?;
                file.persist(&path).map_err(|e| e.error)?;
                // The name is the directory's; where a directory cannot be synchronised, the system does it in its own time.
                if let Some(dir) = path.parent().and_then(|dir| File::open(dir).ok()) {
                    let _ = dir.sync_all();
                }
                Ok(())
            }
        }
    }
}

/// Where a file will be that a chain of links names and that does not exist yet.
fn behind_links(path: &Path) -> PathBuf {
    let mut place = path.to_path_buf();
    // As many links as systems follow. What exists is found by its name: not every link in /proc is a path.
    for _ in 0..40 {
        match std::fs::read_link(&place) {
            Ok(link) if std::fs::metadata(&place).is_err() => {
                place = place.parent().unwrap_or(Path::new("")).join(link)
            }
            _ => return place,
        }
    }
    path.to_path_buf()
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Target::Direct(file) => file.write(bytes),
            Target::Temporary(file, _) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Target::Direct(file) => file.flush(),
            Target::Temporary(file, _) => file.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A callback may panic while workers wait for the writer: the panic goes on, and nobody waits for ever.
    #[test]
    fn a_callback_that_panics_ends_the_build() {
        let (send, heard) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let told = Arc::new(|_| std::panic::resume_unwind(Box::new("told")));
            let options = Options { threads: 2, progress: Some(told), ..Options::default() };
            let digests: Vec<Digest> = (0..2000).map(|i| options.hasher.integer(i)).collect();
            let sorted = Sorted::shared(digests.into(), &options.workspace(), &|| false).unwrap();
            let mut shards = Shards::new(Keys::Plain(sorted), None, OnConflict::Error, &|| false).unwrap();
            shards.bits = 6;
            let plan = plan(&shards.stats, options.goal, options.kind, options.effort).unwrap();
            let header = Header { hasher: options.hasher, domain: Domain::U64, shard_bits: 6, keys: 2000 };
            let mut writer = Writer::new(Vec::new(), &header, vec![]).unwrap();
            let built = catch_unwind(AssertUnwindSafe(|| build_shards(&shards, &plan, &options, &mut writer)));
            send.send(built.is_err()).unwrap();
        });
        assert_eq!(heard.recv_timeout(std::time::Duration::from_secs(60)), Ok(true));
    }

    #[cfg(unix)]
    #[test]
    fn links_and_permissions_stay() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let dir = tempfile::tempdir().unwrap();
        let (real, near, far) = (dir.path().join("real"), dir.path().join("near"), dir.path().join("far"));
        symlink("real", &near).unwrap();
        symlink(&near, &far).unwrap();
        let mode = || std::fs::metadata(&real).unwrap().permissions().mode() & 0o777;
        // First the links point to nothing.
        for wanted in [None, Some(0o600), Some(0o640), Some(0o444)] {
            if let Some(wanted) = wanted {
                std::fs::set_permissions(&real, std::fs::Permissions::from_mode(wanted)).unwrap();
            }
            crate::build(0..10u64).finish_to(&far).unwrap();
            assert!(near.is_symlink() && far.is_symlink() && !real.is_symlink());
            assert!(wanted.is_none_or(|wanted| wanted == mode()));
            assert!(Filter::read(&far).unwrap().contains(3u64).unwrap());
        }
    }
}
