"""columns and options -> filters, maps, sequences and indexes of sets."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Callable, TypeVar

from tamis import _columns, _tamis
from tamis._errors import InputError
from tamis._plan import Candidate, Plan
from tamis._progress import Bar, Callback, callback

T = TypeVar("T")


def _given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _run(options: dict[str, Any], progress: bool | Callback | None, call: Callable[[dict[str, Any]], T]) -> T:
    """Calls a build, with a bar that vanishes with it."""
    shown = callback(progress)
    try:
        return call(options if shown is None else {**options, "progress": shown})
    finally:
        if isinstance(shown, Bar):
            shown.close()


def _weighted(workload: Any) -> tuple[Any, Any] | None:
    """The columns of keys and weights of a mapping or a pair."""
    if workload is None:
        return None
    if isinstance(workload, Mapping):
        return list(workload), list(workload.values())
    if isinstance(workload, tuple) and len(workload) == 2:
        return workload
    raise InputError("workload: expected a mapping from keys to weights, or a pair of columns")


def build(
    keys: Any,
    *,
    exclude: Any = None,
    fpr: float | None = None,
    exact: bool = False,
    bits_per_key: float | None = None,
    excluded_fpr: float | None = None,
    workload: Any = None,
    workload_fpr: float | None = None,
    unlisted_share: float | None = None,
    kind: str | None = None,
    layout: str | None = None,
    effort: str | None = None,
    on_conflict: str | None = None,
    capacity: int | None = None,
    extra_capacity: float | None = None,
    seed: int | None = None,
    secret: bytes | str | bool | None = None,
    secret_beside: bool = False,
    metadata: bytes | str | None = None,
    shard_bytes: int | None = None,
    threads: int | None = None,
    memory: int | None = None,
    disk: int | None = None,
    tmp: str | os.PathLike[str] | None = None,
    path: str | os.PathLike[str] | None = None,
    progress: bool | Callback | None = None,
) -> _tamis.Filter:
    """Builds a filter of a column of keys.

    The bytes are those that the Rust library and ``tamis build`` make of the same keys and options.

    keys: the members, or their ``digests``, which have a seed or secret already.
    exclude: keys that never match; digests if the members are.
    fpr: the largest share of other keys that match; 0.01 unless another goal is set.
    exact: right for members and excluded keys only, and smaller.
    bits_per_key: the size as the goal.
    excluded_fpr: the share of excluded keys that may match.
    workload: expected queries: a mapping from keys to weights, or a column of keys and one of weights.
    workload_fpr: the share of negative queries of the workload that may match.
    unlisted_share: the share of negative queries that are outside the workload.
    kind, layout, effort: the structure, its layout ("auto", "compact", "local"), "fast", "balanced" or "smallest".
    on_conflict: for members that are excluded: "error", "keep" (they stay members) or "drop".
    capacity, extra_capacity: room for keys that are inserted later, by kinds that change.
    seed, secret: of the hash. A secret is 16 bytes, 32 hexadecimal digits or ``True`` for a new one, which is in the file.
    secret_beside: the secret, which must be given, is not in the file.
    metadata: a note in the file.
    shard_bytes: the size of shards, for files that are read in parts.
    threads, memory, disk, tmp: limits of the build, in bytes, and the folder of temporary files.
    path: builds into this file, which is then mapped, without ever holding the filter in memory.
    progress: true or false for a bar of tqdm, or a function of a stage, a count and a total.

    >>> import tamis
    >>> filter = tamis.build(range(1000), exclude=range(1000, 20_000), exact=True)
    >>> 7 in filter, 7000 in filter
    (True, False)
    """
    options = _given(
        fpr=fpr, exact=exact or None, bits_per_key=bits_per_key, excluded_fpr=excluded_fpr, workload_fpr=workload_fpr,
        unlisted_share=unlisted_share, kind=kind, layout=layout, effort=effort, on_conflict=on_conflict,
        capacity=capacity, extra_capacity=extra_capacity, seed=seed, secret=secret,
        secret_beside=secret_beside or None, metadata=metadata, shard_bytes=shard_bytes, threads=threads,
        memory=memory, disk=disk, tmp=tmp,
    )  # fmt: skip
    return _run(options, progress, lambda options: _tamis._build(keys, exclude, _weighted(workload), path, options))


def plan(keys: Any, *, exclude: Any = None, workload: Any = None, **options: Any) -> Plan:
    """Plans every design for these keys and options, which are those of ``build``. Builds nothing.

    >>> import tamis
    >>> plan = tamis.plan(range(1000), fpr=0.01)
    >>> plan.chosen.name, plan.chosen.bits_per_key < 9
    ('ribbon', True)
    """
    rows, reasons, count, excluded = _tamis._plan(keys, exclude, _weighted(workload), options)
    candidates = (Candidate(**{**row, "layers": tuple(row.get("layers", ()))}) for row in rows)
    return Plan(tuple(candidates), tuple(reasons), count, excluded)


def _pairs(keys: Any, values: Any, what: str) -> tuple[Any, Any]:
    """Two columns, or those of a mapping."""
    if values is not None:
        return keys, values
    if isinstance(keys, Mapping):
        return list(keys), list(keys.values())
    raise InputError(f"{what}: missing; expected two columns, or a mapping")


def _is_arrow(values: Any) -> bool:
    return hasattr(values, "__arrow_c_array__") or hasattr(values, "__arrow_c_stream__")


def _held(values: Any) -> Any:
    """A column that can be read twice, or one of Arrow, which is read once."""
    return values if hasattr(values, "__len__") or _is_arrow(values) else list(values)


def _is_text(values: Any) -> bool:
    """Whether values are text: only bytes are not, and numbers do not matter."""
    kind = str(getattr(values, "dtype", getattr(values, "type", "")))
    if kind and kind != "object":
        return not ("binary" in kind or kind.lower().startswith(("|s", "binary", "bytes")))
    if not kind and _is_arrow(values):
        return True
    return not any(isinstance(value, (bytes, bytearray, memoryview)) for value in values)


def map(
    keys: Any,
    values: Any = None,
    *,
    fpr: float | None = None,
    unchecked: bool | None = None,
    kind: str | None = None,
    layout: str | None = None,
    width: int | None = None,
    alphabet: Any = None,
    text: bool | None = None,
    effort: str | None = None,
    seed: int | None = None,
    secret: bytes | str | bool | None = None,
    metadata: bytes | str | None = None,
    threads: int | None = None,
    memory: int | None = None,
    disk: int | None = None,
    tmp: str | os.PathLike[str] | None = None,
    path: str | os.PathLike[str] | None = None,
    progress: bool | Callback | None = None,
) -> _tamis.Map:
    """Builds a map of a column of keys and one of values, or of a mapping. Values are text, bytes or 0 to 2^64 - 1.

    fpr: share of other keys that have a value; the default is 1/256, for 8 bits per key, and 2^-32 the least.
    unchecked: a static function without these bits, which has a value for any key.
    kind: "auto", "compressed", "ribbon" or "fuse".
    width: values are numbers below 2^width. alphabet: all values there may be.
    text: whether values are read as text; by default unless some are bytes.

    Other options are those of ``build``.

    >>> import tamis
    >>> ages = tamis.map({"ann": 30, "bob": 41}, fpr=1e-5)
    >>> ages["bob"], ages.get("eve")
    (41, None)
    """
    keys, values = _pairs(keys, values, "values")
    values = _held(values)
    text = _is_text(values) if text is None else text
    options = _given(
        fpr=fpr, unchecked=unchecked, kind=kind, layout=layout, width=width, alphabet=alphabet, effort=effort, seed=seed,
        secret=secret, metadata=metadata, threads=threads, memory=memory, disk=disk, tmp=tmp,
    )  # fmt: skip
    return _run(options, progress, lambda options: _tamis._map(keys, values, path, text, options))


def sequence(
    symbols: Any,
    *,
    kind: str | None = None,
    width: int | None = None,
    text: bool | None = None,
    effort: str | None = None,
    seed: int | None = None,
    metadata: bytes | str | None = None,
    threads: int | None = None,
) -> _tamis.Sequence:
    """Builds a sequence of a column of symbols: text, bytes or 0 to 2^64 - 1. Options are those of ``map``.

    >>> import tamis
    >>> days = tamis.sequence(["mon", "tue", "mon"])
    >>> days[1], days.get_many([0, 2]).to_pylist()
    ('tue', ['mon', 'mon'])
    """
    symbols = _held(symbols)
    text = _is_text(symbols) if text is None else text
    options = _given(kind=kind, width=width, effort=effort, seed=seed, metadata=metadata, threads=threads)
    return _tamis._sequence(symbols, text, options)


def sets(
    keys: Any,
    names: Any = None,
    *,
    false_sets: float | None = None,
    member_false_sets: float | None = None,
    bits_per_pair: float | None = None,
    kind: str | None = None,
    counts: bool | None = None,
    capacity: int | None = None,
    effort: str | None = None,
    seed: int | None = None,
    secret: bytes | str | bool | None = None,
    metadata: bytes | str | None = None,
    threads: int | None = None,
    memory: int | None = None,
    disk: int | None = None,
    tmp: str | os.PathLike[str] | None = None,
    path: str | os.PathLike[str] | None = None,
    progress: bool | Callback | None = None,
) -> _tamis.Sets:
    """Builds an index of many sets: of a column of keys and one of names, or of a mapping from names to lists of keys.

    false_sets: the largest number of false sets of an unlisted key, on average; 0.01 by default.
    member_false_sets: the same for members; a frozen index has none.
    bits_per_pair: the size of a sketch as the goal. kind: "auto", "frozen", "bloom" or "cuckoo".

    Other options are those of ``build``.

    >>> import tamis
    >>> index = tamis.sets({"red": ["ann", "bob"], "blue": ["ann"]})
    >>> index.find("ann")
    ['red', 'blue']
    """
    if names is None and isinstance(keys, Mapping):
        names = [name for name, members in keys.items() for _ in members]
        keys = [key for members in keys.values() for key in members]
    keys, names = _pairs(keys, names, "names")
    options = _given(
        false_sets=false_sets, member_false_sets=member_false_sets, bits_per_pair=bits_per_pair, kind=kind,
        counts=counts, capacity=capacity, effort=effort, seed=seed, secret=secret, metadata=metadata, threads=threads,
        memory=memory, disk=disk, tmp=tmp,
    )  # fmt: skip
    return _run(options, progress, lambda options: _tamis._sets(keys, names, path, options))


def digests(keys: Any, *, seed: int | None = None, secret: bytes | str | None = None) -> _tamis.Digests:
    """Hashes a column of keys once, for several filters of this seed or secret. A filter is queried and built with them,
    but not with digests of another seed, secret or key type.

    >>> import tamis
    >>> digests = tamis.digests([1, 2, 3])
    >>> tamis.build([3, 4]).contains_many(digests)
    array([False, False,  True])
    """
    return _tamis._digests(keys, _given(seed=seed, secret=secret))


def ngrams(texts: Any, words: int, *, lower: bool = False) -> tuple[Any, Any]:
    """Returns the keys of all runs of so many words of a column of texts, and where those of each text start: two arrays
    of NumPy. The keys of text ``i`` are ``keys[offsets[i] : offsets[i + 1]]``.

    White space separates words. A missing text has no keys. Equal runs have equal keys, which are integers of 64 bits.
    A run has 1 to 2^32 - 1 words.

    lower: the case of letters does not matter.

    >>> import tamis
    >>> keys, offsets = tamis.ngrams(["to be or not to be", "or not", "not to be"], 3)
    >>> offsets
    array([0, 4, 4, 5])
    >>> bool(keys[3] == keys[4])
    True
    """
    keys, offsets = _tamis._ngrams(texts, words, lower)
    return _columns.numpy_words(keys, "u8"), _columns.numpy_words(offsets, "i8")


def open(
    path: str | os.PathLike[str],
    *,
    mmap: bool = True,
    verify: bool = True,
    secret: bytes | str | None = None,
    text: bool = True,
) -> Any:
    """Opens a file of tamis: a ``Filter``, ``Map``, ``Sequence`` or ``Sets``, whichever it holds.

    A folder of slices with their manifest opens as one filter, a ``Sliced``.

    mmap: maps the file, which processes then share in memory. A file that is replaced by renaming, as tamis does, stays
    what it was. No process may change or cut it in place: that would end this one. ``False`` reads it into memory.
    verify: compares all of it with its checksums.
    secret: if it is not in the file.
    text: whether values of maps and sequences are text; ``False`` for bytes.

    >>> import tamis, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tamis.build(["ann"]).save(folder + "/a.tamis")
    ...     "ann" in tamis.open(folder + "/a.tamis")
    True
    """
    return _tamis._open(path, mmap, verify, secret, text)
