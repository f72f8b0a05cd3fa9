//! bytes, a path -> the classes that are files: opened, compared, saved, pickled.
#![allow(unsafe_code)]

use std::path::Path;

use pyo3::prelude::*;
use tamis::{Error, FileInfo, FormatError};

use crate::error::Failure;

/// How a file is opened.
#[derive(Clone, Copy)]
pub(crate) struct How {
    pub(crate) mmap: bool,
    pub(crate) verify: bool,
    pub(crate) secret: Option<[u64; 2]>,
}

/// Types that are bytes of a file.
pub(crate) trait Opened: Sized + Send {
    fn from_file(path: &Path, how: How) -> Result<Self, Error>;
    fn from_data(bytes: bytes::Bytes, how: How) -> Result<Self, FormatError>;
    fn data(&self) -> &[u8];
}

macro_rules! opened {
    ($($type:ty),*) => {$(
        impl Opened for $type {
            fn from_file(path: &Path, how: How) -> Result<Self, Error> {
                if !how.mmap {
                    return match how.secret {
                        Some(secret) => <$type>::read_with_secret(path, secret),
                        None if how.verify => <$type>::read(path),
                        None => <$type>::read_unverified(path),
                    };
                }
                // SAFETY: a file of ours is replaced by renaming and never changed in place. The documentation of `open` says
                // what becomes of a process whose file another program cuts, as with everything that maps files.
                let opened = unsafe {
                    match how.secret {
                        Some(secret) => <$type>::mmap_with_secret(path, secret),
                        None => <$type>::mmap(path),
                    }
                }?;
                if how.verify {
                    let at = |error| Error::Format { path: Some(path.into()), error };
                    opened.verify().map_err(at)?;
                }
                Ok(opened)
            }

            fn from_data(bytes: bytes::Bytes, how: How) -> Result<Self, FormatError> {
                match how.secret {
                    Some(secret) => <$type>::open_with_secret(bytes, secret),
                    None if how.verify => <$type>::open(bytes),
                    None => <$type>::open_unverified(bytes),
                }
            }

            fn data(&self) -> &[u8] {
                self.as_bytes()
            }
        }
    )*};
}
opened!(tamis::Filter, tamis::Map, tamis::Sequence, tamis::Sets);

/// Bytes for a pickle, which must hold all that is needed to open them.
pub(crate) fn pickled(bytes: &[u8]) -> Result<&[u8], Failure> {
    match FileInfo::of(bytes)?.secret_beside {
        true => {
            Err(Failure::Input("pickle: the secret is not in the file; send the bytes and the secret apart".into()))
        }
        false => Ok(bytes),
    }
}

/// The version of what is pickled besides the file, whose own version is in it.
pub(crate) const PICKLE: u32 = 1;

/// What `__reduce__` returns: a function, and a version, a form, bytes, and whether values are text.
pub(crate) type Reduced<'py> = (Bound<'py, PyAny>, (u32, &'static str, Bound<'py, pyo3::types::PyBytes>, bool));

/// Bytes of a Python object, copied once.
pub(crate) fn bytes_of(data: &Bound<'_, PyAny>) -> PyResult<bytes::Bytes> {
    if let Ok(bytes) = data.cast::<pyo3::types::PyBytes>() {
        return Ok(bytes::Bytes::copy_from_slice(bytes.as_bytes()));
    }
    let bytes = data.py().import("builtins")?.getattr("bytes")?;
    let view = data.py().import("builtins")?.getattr("memoryview")?.call1((data,))?;
    Ok(bytes::Bytes::copy_from_slice(bytes.call1((view,))?.cast::<pyo3::types::PyBytes>()?.as_bytes()))
}

/// What all classes that are files have in common. `$rest` are methods of this one.
macro_rules! file_class {
    ($(#[$doc:meta])* $class:ident of $form:literal $(, $slots:ident)? { $($rest:tt)* }) => {
        $(#[$doc])*
        #[pyclass(frozen, module = "tamis", weakref $(, $slots)?)]
        pub(crate) struct $class {
            pub(crate) inner: tamis::$class,
            /// Whether values are text; only maps have values.
            pub(crate) text: bool,
        }

        #[pymethods]
        impl $class {
            /// Opens a file: see `tamis.open`, which takes files of every form.
            #[staticmethod]
            #[pyo3(signature = (path, *, mmap=true, verify=true, secret=None, text=true))]
            pub(crate) fn open(
                py: Python<'_>,
                path: std::path::PathBuf,
                mmap: bool,
                verify: bool,
                secret: Option<&Bound<'_, PyAny>>,
                text: bool,
            ) -> PyResult<$class> {
                let how = How { mmap, verify, secret: secret.map(crate::options::secret).transpose()? };
                let inner = py.detach(|| <tamis::$class as Opened>::from_file(&path, how)).map_err(Failure::from)?;
                Ok($class { inner, text })
            }

            /// Opens the bytes of a file, of which it keeps a copy.
            #[staticmethod]
            #[pyo3(signature = (data, *, verify=true, secret=None, text=true))]
            pub(crate) fn from_bytes(
                data: &Bound<'_, PyAny>,
                verify: bool,
                secret: Option<&Bound<'_, PyAny>>,
                text: bool,
            ) -> PyResult<$class> {
                let how = How { mmap: false, verify, secret: secret.map(crate::options::secret).transpose()? };
                let bytes = crate::file::bytes_of(data)?;
                let inner = data.py().detach(|| <tamis::$class as Opened>::from_data(bytes, how)).map_err(Failure::from)?;
                Ok($class { inner, text })
            }

            /// Returns a copy of the bytes of the file; `memoryview(x)` shows them without one, from Python 3.11 on.
            fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
                PyBytes::new(py, self.inner.data())
            }

            fn __bytes__<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
                self.to_bytes(py)
            }

            /// Writes the file whole or not at all. Only its owner may read one that holds a secret.
            fn save(&self, py: Python<'_>, path: std::path::PathBuf) -> PyResult<()> {
                Ok(py.detach(|| self.inner.save(&path)).map_err(Failure::from)?)
            }

            /// Compares all of the file with its checksums.
            fn verify(&self, py: Python<'_>) -> PyResult<()> {
                Ok(py.detach(|| self.inner.verify()).map_err(Failure::from)?)
            }

            /// Number of bytes of the file.
            #[getter]
            fn nbytes(&self) -> usize {
                self.inner.data().len()
            }

            /// A hash of the file, 32 hexadecimal digits: equal ones are the same file.
            #[getter]
            fn identity(&self) -> String {
                self.inner.identity().iter().map(|byte| format!("{byte:02x}")).collect()
            }

            /// The note that the build put into the file.
            #[getter]
            fn metadata<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
                PyBytes::new(py, self.inner.metadata())
            }

            /// The version of the format.
            #[getter]
            fn format_version(&self) -> u16 {
                self.inner.version()
            }

            fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
                other.cast::<$class>().is_ok_and(|other| self.inner.data() == other.get().inner.data())
            }

            fn __hash__(&self) -> u64 {
                u64::from_le_bytes(std::array::from_fn(|i| self.inner.identity()[i]))
            }

            // It never changes.
            fn __copy__(this: PyRef<'_, Self>) -> Py<Self> {
                this.into()
            }

            fn __deepcopy__<'py>(this: PyRef<'py, Self>, _memo: &Bound<'py, PyAny>) -> Py<Self> {
                this.into()
            }

            fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<crate::file::Reduced<'py>> {
                let bytes = PyBytes::new(py, crate::file::pickled(self.inner.data())?);
                Ok((py.import("tamis._tamis")?.getattr("_unpickle")?, (PICKLE, $form, bytes, self.text)))
            }

            #[cfg(any(not(Py_LIMITED_API), Py_3_11))]
            #[allow(unsafe_code)]
            unsafe fn __getbuffer__(this: Bound<'_, Self>, view: *mut pyo3::ffi::Py_buffer, flags: std::ffi::c_int) -> PyResult<()> {
                // SAFETY: Python passes a view to be filled, or null, which the function makes an error. The view holds a reference to
                // this object, whose bytes never change and never move.
                let status = unsafe {
                    let bytes = this.get().inner.data();
                    let start = bytes.as_ptr().cast_mut().cast();
                    pyo3::ffi::PyBuffer_FillInfo(view, this.as_ptr(), start, bytes.len() as isize, 1, flags)
                };
                if status == 0 { Ok(()) } else { Err(PyErr::fetch(this.py())) }
            }

            $($rest)*
        }
    };
}
pub(crate) use file_class;
