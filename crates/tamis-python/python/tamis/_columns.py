"""buffers -> columns: answers of the library as arrays of NumPy, Arrow or Polars, or as lists where these are missing."""

from __future__ import annotations

import sys
from typing import Any


def _arrow() -> Any:
    """pyarrow, or none."""
    try:
        import pyarrow
    except ImportError:
        return None
    return pyarrow


def _in_kind(keys: Any, column: Any) -> Any:
    """A column of Arrow as a column of the library that the keys are from."""
    if type(keys).__module__.partition(".")[0] == "polars":
        return sys.modules["polars"].from_arrow(column)
    return column


def numpy_booleans(yes: bytearray) -> Any:
    try:
        import numpy
    except ImportError:
        return [bool(byte) for byte in yes]
    return numpy.frombuffer(yes, dtype=numpy.bool_)


def numpy_words(words: bytearray, kind: str) -> Any:
    """Words of 64 bits, signed ("i8") or not ("u8")."""
    try:
        import numpy
    except ImportError:
        return memoryview(words).cast("q" if kind == "i8" else "Q").tolist()
    return numpy.frombuffer(words, dtype=kind)


def _bits(packed: bytearray, count: int) -> list[bool]:
    return [bool(packed[row // 8] >> row % 8 & 1) for row in range(count)]


def arrow_booleans(keys: Any, count: int, yes: bytearray, valid: bytearray | None) -> Any:
    pyarrow = _arrow()
    if pyarrow is not None:
        buffers = [valid if valid is None else pyarrow.py_buffer(valid), pyarrow.py_buffer(yes)]
        return _in_kind(keys, pyarrow.Array.from_buffers(pyarrow.bool_(), count, buffers))
    answers: list[bool | None] = list(_bits(yes, count))
    if valid is not None:
        answers = [answer if there else None for answer, there in zip(answers, _bits(valid, count))]
    if type(keys).__module__.partition(".")[0] == "polars":
        polars = sys.modules["polars"]
        return polars.Series(answers, dtype=polars.Boolean)
    return answers


def _list(values: list[Any], valid: bytearray | None) -> list[Any]:
    if valid is None:
        return values
    return [value if there else None for value, there in zip(values, _bits(valid, len(values)))]


def numbers(keys: Any, count: int, words: bytearray, valid: bytearray | None) -> Any:
    pyarrow = _arrow()
    if pyarrow is None:
        return _list(memoryview(words).cast("Q").tolist(), valid)
    buffers = [valid if valid is None else pyarrow.py_buffer(valid), pyarrow.py_buffer(words)]
    return _in_kind(keys, pyarrow.Array.from_buffers(pyarrow.uint64(), count, buffers))


def texts(keys: Any, count: int, offsets: bytearray, data: bytearray, valid: bytearray | None, text: bool) -> Any:
    pyarrow = _arrow()
    if pyarrow is None:
        ends = memoryview(offsets).cast("q")
        values = [bytes(data[start:end]) for start, end in zip(ends, ends[1:])]
        return _list([value.decode() for value in values] if text else values, valid)
    kind = pyarrow.large_string() if text else pyarrow.large_binary()
    buffers = [
        valid if valid is None else pyarrow.py_buffer(valid),
        pyarrow.py_buffer(offsets),
        pyarrow.py_buffer(data),
    ]
    return _in_kind(keys, pyarrow.Array.from_buffers(kind, count, buffers))


def lists(keys: Any, offsets: bytearray, ids: bytearray, valid: bytearray | None, names: list[str | None]) -> Any:
    """Lists of names, each name stored once."""
    pyarrow = _arrow()
    if pyarrow is None:
        ends, numbers = memoryview(offsets).cast("q"), memoryview(ids).cast("I")
        return _list([[names[number] for number in numbers[start:end]] for start, end in zip(ends, ends[1:])], valid)
    count = len(offsets) // 8 - 1
    numbers = pyarrow.Array.from_buffers(pyarrow.uint32(), len(ids) // 4, [None, pyarrow.py_buffer(ids)])
    named = pyarrow.DictionaryArray.from_arrays(numbers, pyarrow.array(names, pyarrow.string()))
    buffers = [valid if valid is None else pyarrow.py_buffer(valid), pyarrow.py_buffer(offsets)]
    kind = pyarrow.large_list(named.type)
    return _in_kind(keys, pyarrow.Array.from_buffers(kind, count, buffers, children=[named]))
