//! keyword arguments -> the options of a build, and the link from a running build to Python: progress, interrupts.

use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};
use tamis::{BuildError, Error, Hasher, Limits, NameError, Options, Progress};

use crate::error::Failure;

/// Keyword arguments of which some are not used yet.
pub(crate) struct Given<'py>(Bound<'py, PyDict>);

impl<'py> Given<'py> {
    pub(crate) fn new(options: &Bound<'py, PyDict>) -> PyResult<Given<'py>> {
        Ok(Given(options.copy()?))
    }

    /// The value of an option that is set.
    pub(crate) fn take<T: FromPyObjectOwned<'py>>(&self, name: &str) -> PyResult<Option<T>> {
        let Some(value) = self.0.get_item(name)? else { return Ok(None) };
        self.0.del_item(name)?;
        if value.is_none() {
            return Ok(None);
        }
        value.extract::<T>().map(Some).map_err(|error| {
            let error = Into::<PyErr>::into(error);
            // Python's own error does not say which number.
            match error.is_instance_of::<PyOverflowError>(value.py()) {
                true => Failure::Input(format!("{name} {value}: out of range; expected a number that fits")).into(),
                false => error,
            }
        })
    }

    /// Whether an option is set.
    pub(crate) fn has(&self, name: &str) -> PyResult<bool> {
        Ok(self.0.get_item(name)?.is_some_and(|value| !value.is_none()))
    }

    /// An option whose value is a name.
    pub(crate) fn named<T: FromStr<Err = NameError>>(&self, name: &str) -> Result<Option<T>, Failure> {
        let Some(given) = self.take::<String>(name)? else { return Ok(None) };
        let wrong = |error: NameError| Failure::Input(format!("{name} {given:?}: {error}"));
        given.parse().map(Some).map_err(wrong)
    }

    /// Whether an option is true.
    pub(crate) fn is(&self, name: &str) -> PyResult<bool> {
        Ok(self.take(name)?.unwrap_or(false))
    }

    /// No option may be left.
    pub(crate) fn end(self) -> Result<(), Failure> {
        match self.0.keys().get_item(0) {
            Ok(name) => Err(Failure::Input(format!("{name}: not an option of this call"))),
            Err(_) => Ok(()),
        }
    }
}

/// A secret: 16 bytes, 32 hexadecimal digits, or true for one that is drawn.
pub(crate) fn secret(given: &Bound<'_, PyAny>) -> Result<[u64; 2], Failure> {
    if is_drawn(given) {
        return Ok(Hasher::random_secret()?.words());
    }
    let digits = match (given.cast::<PyBytes>(), given.cast::<PyString>()) {
        (Ok(bytes), _) => bytes.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect(),
        (_, Ok(text)) => text.to_str()?.to_string(),
        _ => String::new(),
    };
    let word = |range| u64::from_str_radix(digits.get(range).unwrap_or(""), 16).ok();
    match (digits.len(), word(0..16), word(16..32)) {
        (32, Some(high), Some(low)) => Ok([high, low]),
        _ => Err(Failure::Input("secret: not a secret; expected 16 bytes or 32 hexadecimal digits".into())),
    }
}

fn is_drawn(secret: &Bound<'_, PyAny>) -> bool {
    secret.extract::<bool>().is_ok_and(|drawn| drawn)
}

/// How often a running build looks at Python: for interrupts, and to show how far it is.
const INTERVAL: Duration = Duration::from_millis(100);

/// A running build and the Python that waits for it.
pub(crate) struct Watch {
    cancel: Arc<AtomicBool>,
    error: Mutex<Option<PyErr>>,
    callback: Option<Py<PyAny>>,
    last: Mutex<Instant>,
}

impl Watch {
    /// Shows progress, and stops the build if Python has an interrupt or the callback fails.
    fn look(&self, progress: Progress) {
        let done = matches!(progress, Progress::Built { shards, total } if shards == total);
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if !done && last.elapsed() < INTERVAL {
            return;
        }
        *last = Instant::now();
        drop(last);
        let (stage, count, total) = match progress {
            Progress::Read { keys, total } => ("read", keys, total),
            Progress::Excluded { keys, total } => ("excluded", keys, total),
            Progress::Built { shards, total } => ("built", shards, Some(total)),
            _ => return,
        };
        let looked = Python::attach(|py| {
            py.check_signals()?;
            self.callback.as_ref().map_or(Ok(()), |callback| callback.call1(py, (stage, count, total)).map(drop))
        });
        if let Err(error) = looked {
            *self.error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            self.cancel.store(true, Ordering::Relaxed);
        }
    }

    /// The result of the build; a cancelled one has the error of Python.
    pub(crate) fn result<T>(&self, result: Result<T, Failure>) -> Result<T, Failure> {
        match result {
            Err(Failure::Tamis(Error::Build(BuildError::Cancelled))) => {
                let error = self.error.lock().unwrap_or_else(PoisonError::into_inner).take();
                Err(error.map_or(Failure::Tamis(BuildError::Cancelled.into()), Failure::Python))
            }
            result => result,
        }
    }
}

/// Memory, disk and the folder of temporary files.
pub(crate) fn limits(given: &Given<'_>) -> Result<Limits, Failure> {
    let mut limits = Limits::default();
    if let Some(bytes) = given.take("memory")? {
        limits = limits.memory(bytes);
    }
    if let Some(bytes) = given.take("disk")? {
        limits = limits.disk(bytes);
    }
    if let Some(folder) = given.take::<std::path::PathBuf>("tmp")? {
        limits = limits.tmp(folder);
    }
    Ok(limits)
}

/// The options that all builds share.
pub(crate) fn common(given: &Given<'_>) -> Result<(Options<'static>, Arc<Watch>), Failure> {
    let mut options = Options::default();
    if let Some(effort) = given.named("effort")? {
        options = options.effort(effort);
    }
    let (seed, secret_given) = (given.take::<u64>("seed")?, given.take::<Bound<'_, PyAny>>("secret")?);
    let drawn = secret_given.as_ref().is_some_and(is_drawn);
    match (seed, secret_given) {
        (Some(_), Some(_)) => return Err(Failure::Input("seed: given with secret; expected one of them".into())),
        (Some(seed), None) => options = options.seed(seed),
        (None, Some(given)) => options = options.secret(secret(&given)?),
        (None, None) => {}
    }
    if given.is("secret_beside")? {
        if drawn {
            // Nothing would have the secret once the filter is gone.
            let text = "secret_beside: given with a new secret; expected 16 bytes or 32 hexadecimal digits as secret";
            return Err(Failure::Input(text.into()));
        }
        options = options.secret_beside();
    }
    if let Some(note) = given.take::<Bound<'_, PyAny>>("metadata")? {
        options = match note.cast::<PyString>() {
            Ok(text) => options.metadata(text.to_str()?),
            Err(_) => options.metadata(note.extract::<Vec<u8>>()?),
        };
    }
    if let Some(threads) = given.take("threads")? {
        options = options.threads(threads);
    }
    let limits = limits(given)?;
    let watch = Arc::new(Watch {
        cancel: Arc::default(),
        error: Mutex::default(),
        callback: given.take("progress")?,
        last: Mutex::new(Instant::now()),
    });
    let looking = watch.clone();
    let options = options.limits(limits).cancel(watch.cancel.clone()).progress(move |progress| looking.look(progress));
    Ok((options, watch))
}

/// The options of a filter.
pub(crate) fn filter(given: &Given<'_>) -> Result<(Options<'static>, Arc<Watch>), Failure> {
    let (mut options, watch) = common(given)?;
    macro_rules! set {
        ($($name:ident),*) => {$(
            if let Some(value) = given.take(stringify!($name))? {
                options = options.$name(value);
            }
        )*};
    }
    macro_rules! named {
        ($($name:ident),*) => {$(
            if let Some(value) = given.named(stringify!($name))? {
                options = options.$name(value);
            }
        )*};
    }
    set!(fpr, bits_per_key, excluded_fpr, workload_fpr, unlisted_share, capacity, extra_capacity, shard_bytes);
    named!(kind, layout, on_conflict);
    if given.is("exact")? {
        options = options.exact();
    }
    Ok((options, watch))
}
