//! an object store -> the same, its reads of tables counted, delayed, or failing.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use slatedb::object_store::path::Path;
use slatedb::object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result,
};

/// What goes wrong with tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// Nothing.
    None,
    /// Every read fails.
    Reads,
    /// Every read returns half of what it was to return.
    Short,
    /// Every byte that is read is the complement of what was written.
    Flipped,
    /// Every write fails: the disk is full.
    Writes,
}

const FAULTS: [Fault; 5] = [Fault::None, Fault::Reads, Fault::Short, Fault::Flipped, Fault::Writes];

/// A store that counts reads of tables, waits at each, and fails when it is to.
#[derive(Debug)]
pub struct Store {
    inner: Arc<dyn ObjectStore>,
    reads: AtomicU64,
    bytes: AtomicU64,
    wait_micros: AtomicU64,
    fault: AtomicU8,
}

impl Store {
    /// Wraps a store.
    pub fn new(inner: Arc<dyn ObjectStore>) -> Arc<Store> {
        let zero = || AtomicU64::new(0);
        Arc::new(Store { inner, reads: zero(), bytes: zero(), wait_micros: zero(), fault: AtomicU8::new(0) })
    }

    /// How often tables were read.
    pub fn reads(&self) -> u64 {
        self.reads.load(Relaxed)
    }

    /// How many bytes of tables were read.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// Sets what a read of a table takes, at least.
    pub fn wait(&self, time: Duration) {
        self.wait_micros.store(time.as_micros() as u64, Relaxed);
    }

    /// Sets what goes wrong from now on.
    pub fn fail(&self, fault: Fault) {
        self.fault.store(FAULTS.iter().position(|&other| other == fault).unwrap_or(0) as u8, Relaxed);
    }

    fn fault(&self) -> Fault {
        FAULTS[self.fault.load(Relaxed) as usize]
    }

    /// The timer of the runtime counts in milliseconds, so that a sleep of one takes between one and two. That of the system is finer.
    fn pause(&self) {
        let time = Duration::from_micros(self.wait_micros.load(Relaxed));
        if !time.is_zero() {
            tokio::task::block_in_place(|| std::thread::sleep(time));
        }
    }
}

/// Whether this is a table, and not a log or a manifest.
fn is_table(path: &Path) -> bool {
    path.as_ref().contains("compacted/")
}

fn error(what: &'static str) -> Error {
    Error::Generic { store: "bench", source: what.into() }
}

impl fmt::Display for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Store({})", self.inner)
    }
}

#[async_trait]
impl ObjectStore for Store {
    async fn put_opts(&self, path: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        match self.fault() {
            Fault::Writes => Err(error("no space left on device")),
            _ => self.inner.put_opts(path, payload, options).await,
        }
    }

    async fn put_multipart_opts(&self, path: &Path, options: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        match self.fault() {
            Fault::Writes => Err(error("no space left on device")),
            _ => self.inner.put_multipart_opts(path, options).await,
        }
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        let head = options.head;
        let result = self.inner.get_opts(path, options).await?;
        if !is_table(path) || head {
            return Ok(result);
        }
        self.reads.fetch_add(1, Relaxed);
        self.bytes.fetch_add(result.range.end - result.range.start, Relaxed);
        self.pause();
        let fault = self.fault();
        if matches!(fault, Fault::None | Fault::Writes) {
            return Ok(result);
        }
        let (meta, range, attributes, extensions) =
            (result.meta.clone(), result.range.clone(), result.attributes.clone(), result.extensions.clone());
        let bytes = result.bytes().await?;
        let bytes = match fault {
            Fault::Reads => return Err(error("connection reset")),
            Fault::Short => bytes.slice(..bytes.len() / 2),
            _ => bytes.iter().map(|byte| !byte).collect::<Bytes>(),
        };
        let payload = GetResultPayload::Stream(stream::once(async move { Ok(bytes) }).boxed());
        Ok(GetResult { payload, meta, range, attributes, extensions })
    }

    async fn get_ranges(&self, path: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let mut parts = vec![];
        for range in ranges {
            let options = GetOptions { range: Some(range.clone().into()), ..GetOptions::default() };
            parts.push(self.get_opts(path, options).await?.bytes().await?);
        }
        Ok(parts)
    }

    fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.inner.rename_opts(from, to, options).await
    }
}
