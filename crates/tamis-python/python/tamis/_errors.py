"""Exceptions: a tree under ``tamis.Error``, each also one of Python's own."""


class Error(Exception):
    """Any error of tamis."""


class BuildError(Error, ValueError):
    """A build failed: options contradict each other, a goal cannot be reached, a member is excluded."""


class FormatError(Error, ValueError):
    """Bytes are not a file of tamis, or damaged, or of another form or version."""


class QueryError(Error, ValueError):
    """A query has no answer, as one without a partition for a partitioned filter."""


class ChangeError(Error, ValueError):
    """A filter was not changed, as one that is full."""


class InputError(Error, ValueError):
    """A key, value or option that is none: missing, out of range, not UTF-8."""


class KeyTypeError(InputError, TypeError):
    """Keys of another type: integers for a filter of text, floating-point numbers, two types in one column."""


class FileError(Error, OSError):
    """A file cannot be read or written."""


class MissingFileError(FileError, FileNotFoundError):
    """There is no such file."""
