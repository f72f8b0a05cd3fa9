"""the same keys in every form of a column -> the same bytes and the same answers."""

import array
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tamis

WORDS = [f"host-{i}.example" for i in range(3000)] + ["", "ü", "x" * 5000]
NUMBERS = [*range(-1500, 1500), 2**63 - 1, -(2**63)]
LARGE = [*range(3000), 2**64 - 1]


def texts():
    words = pa.array(WORDS)
    half = len(WORDS) // 2
    yield "list", WORDS
    yield "tuple", tuple(WORDS)
    yield "generator", (word for word in WORDS)
    yield "set", set(WORDS)
    yield "bytes", [word.encode() for word in WORDS]
    yield "bytearray", [bytearray(word.encode()) for word in WORDS]
    yield "memoryview", [memoryview(word.encode()) for word in WORDS]
    yield "numpy U", np.array(WORDS)
    yield "numpy S", np.array([word.encode() for word in WORDS])
    yield "numpy U, big-endian", np.array(WORDS).astype(np.array(WORDS).dtype.newbyteorder(">"))
    yield "numpy U, every second of double", np.repeat(np.array(WORDS), 2)[::2]
    yield "numpy objects", np.array(WORDS, dtype=object)
    yield "numpy strings", np.array(WORDS, dtype=np.dtypes.StringDType())
    yield "arrow string", words
    yield "arrow large string", words.cast(pa.large_string())
    yield "arrow binary", words.cast(pa.binary())
    yield "arrow large binary", words.cast(pa.large_binary())
    yield "arrow string view", words.cast(pa.string_view())
    yield "arrow binary view", words.cast(pa.binary()).cast(pa.binary_view())
    yield "arrow dictionary", words.dictionary_encode()
    yield "arrow slice", pa.concat_arrays([pa.array(["not", None, "these"]), words, pa.array(["nor"])])[3:-1]
    yield "arrow chunks", pa.chunked_array([words[:half], pa.array([], pa.string()), words[half:]])
    yield "arrow dictionary chunks", pa.chunked_array([words[:half], words[half:]]).dictionary_encode()
    yield "arrow table of one column", pa.table({"word": words})
    yield "arrow batch of one column", pa.record_batch({"word": words})
    yield "arrow slice of a batch", pa.record_batch({"word": pa.concat_arrays([words[:7], words])})[7:]
    yield "pandas", pd.Series(WORDS)
    yield "pandas objects", pd.Series(WORDS, dtype=object)
    yield "pandas string", pd.Series(WORDS, dtype="string")
    yield "pandas arrow", pd.Series(WORDS, dtype=pd.ArrowDtype(pa.string()))
    yield "pandas category", pd.Series(WORDS).astype("category")
    yield "pandas index", pd.Index(WORDS)
    yield "pandas of one column", pd.DataFrame({"word": WORDS})
    yield "polars", pl.Series(WORDS)
    yield "polars binary", pl.Series([word.encode() for word in WORDS])
    yield "polars category", pl.Series(WORDS).cast(pl.Categorical)
    yield "polars of one column", pl.DataFrame({"word": WORDS})
    yield "polars chunks", pl.concat([pl.Series(WORDS[:half]), pl.Series(WORDS[half:])], rechunk=False)


def integers(numbers):
    signed = min(numbers) < 0
    kind = "int64" if signed else "uint64"
    half = len(numbers) // 2
    yield "list", numbers
    yield "numpy scalars", [np.dtype(kind).type(number) for number in numbers]
    yield "numpy", np.array(numbers, dtype=kind)
    yield "numpy, big-endian", np.array(numbers, dtype=kind).astype(np.dtype(kind).newbyteorder(">"))
    yield "numpy, backwards", np.array(numbers[::-1], dtype=kind)[::-1]
    yield "numpy, every third", np.repeat(np.array(numbers, dtype=kind), 3)[::3]
    yield "numpy objects", np.array(numbers, dtype=object)
    yield "array", array.array("q" if signed else "Q", numbers)
    yield "arrow", pa.array(numbers, pa.type_for_alias(kind))
    yield "arrow slice", pa.array([5, None, *numbers], pa.type_for_alias(kind))[2:]
    yield "arrow chunks", pa.chunked_array([numbers[:half], numbers[half:]], pa.type_for_alias(kind))
    yield "arrow dictionary", pa.array(numbers, pa.type_for_alias(kind)).dictionary_encode()
    yield "pandas", pd.Series(numbers, dtype=kind)
    yield "pandas with a mask", pd.Series(numbers, dtype=kind.replace("i", "I").replace("uI", "UI"))
    yield "pandas index", pd.Index(np.array(numbers, dtype=kind))
    yield "polars", pl.Series(numbers, dtype=pl.Int64 if signed else pl.UInt64)


def forms(columns):
    return [pytest.param(column, id=name) for name, column in columns]


@pytest.mark.parametrize("column", forms(texts()))
def test_text(column):
    if not isinstance(column, (set, list, tuple)) and hasattr(column, "send"):
        assert tamis.build(column) == tamis.build(WORDS)
        return
    filter = tamis.build(column)
    assert filter == tamis.build(WORDS)
    answers = tamis.build(WORDS[:100], fpr=1e-9).contains_many(column)
    if not isinstance(column, set):
        assert list(np.asarray(answers)) == [True] * 100 + [False] * (len(WORDS) - 100)


@pytest.mark.parametrize("column", forms([*integers(NUMBERS), *((f"{n}, large", c) for n, c in integers(LARGE))]))
def test_integers(column):
    numbers = (
        [int(number) for number in column]
        if not isinstance(column, (pa.Array, pa.ChunkedArray))
        else column.to_pylist()
    )
    filter = tamis.build(column)
    assert filter == tamis.build(numbers) and len(filter) == len(numbers)
    answers = tamis.build(numbers[:100], fpr=1e-9).contains_many(column)
    assert list(np.asarray(answers)) == [True] * 100 + [False] * (len(numbers) - 100)


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_every_width_is_the_same_key(kind):
    numbers = list(range(-100, 100) if kind.startswith("i") else range(200))
    expected = tamis.build(numbers)
    for column in (np.array(numbers, dtype=kind), pa.array(numbers, pa.type_for_alias(kind)), pl.Series(numbers)):
        assert tamis.build(column) == expected
        assert all(expected.contains_many(column))


def test_forms_of_answers():
    filter = tamis.build(["ann"], fpr=1e-6)
    assert isinstance(filter.contains_many(["ann"]), np.ndarray)
    assert isinstance(filter.contains_many(pd.Series(["ann"])), np.ndarray)
    assert isinstance(filter.contains_many(pa.array(["ann"])), pa.BooleanArray)
    assert isinstance(filter.contains_many(pl.Series(["ann"])), pl.Series)
    frame = pd.DataFrame({"name": ["ann", "bob", None]})
    assert frame[filter.contains_many(frame["name"])]["name"].tolist() == ["ann"]
    frame = pl.DataFrame({"name": ["ann", "bob", None]})
    assert frame.filter(filter.contains_many(frame["name"]))["name"].to_list() == ["ann"]
    answers = filter.contains_many(["ann"])
    answers[0] = False  # It belongs to the caller.


def test_missing_keys():
    filter = tamis.build(["ann", "bob"], fpr=1e-9)
    column = [None, "ann", None, "eve", "bob"]
    assert filter.contains_many(pa.array(column)).to_pylist() == [None, True, None, False, True]
    assert filter.contains_many(pa.array(column)[1:]).to_pylist() == [True, None, False, True]
    assert filter.contains_many(pa.array(column).dictionary_encode()).to_pylist() == [None, True, None, False, True]
    assert filter.contains_many(pa.array(column, pa.string_view())).to_pylist() == [None, True, None, False, True]
    assert filter.contains_many(pl.Series(column)).to_list() == [None, True, None, False, True]
    for column in (column, pd.Series(column), np.array(column, dtype=object), [float("nan"), *column[1:]]):
        assert filter.contains_many(column).tolist() == [False, True, False, False, True]
    assert filter.contains_many([None, None]).tolist() == [False, False]
    assert filter.contains_many(pa.nulls(3)).to_pylist() == [None] * 3
    empty = tamis.build([""])
    assert empty.contains_many(pa.array([None, ""])).to_pylist() == [None, True]
    zero = tamis.build([0])
    assert zero.contains_many(pd.Series([pd.NA, 0], dtype="Int64")).tolist() == [False, True]
    for column in (["ann", None], pa.array(["ann", None]), pd.Series(["ann", None]), pl.Series(["ann", None])):
        with pytest.raises(tamis.InputError, match="keys row 1: missing; expected a key; drop missing rows first"):
            tamis.build(column)
        with pytest.raises(tamis.InputError, match="exclude row 1: missing"):
            tamis.build(["bob"], exclude=column)


def test_categories_of_pandas():
    words = pd.Series(["b", None, "a", "b"], dtype="category")
    filter = tamis.build(["a"], fpr=1e-9)
    assert filter.contains_many(words).tolist() == [False, False, True, False]
    assert filter.contains_many(words[1:]).tolist() == [False, True, False]
    assert tamis.build(words.dropna()) == tamis.build(words.cat.add_categories(["unused"]).dropna())
    assert tamis.build(words.dropna()) == tamis.build(["a", "b"])
    with pytest.raises(tamis.InputError, match="keys row 1: missing"):
        tamis.build(words)
    numbers = pd.Series(pd.Categorical.from_codes([1, 0, 1], [2**63 - 1, -7]))
    assert tamis.build(numbers) == tamis.build([-7, 2**63 - 1])
    assert tamis.build(pd.CategoricalIndex(["a", "b"])) == tamis.build(["a", "b"])
    assert tamis.map(["x", "y", "z"], words.dropna()).get_many(["x", "y", "z"]).to_pylist() == ["b", "a", "b"]
    for wrong in (pd.Series([1.5, 2.5], dtype="category"), pd.Series(["a", 1], dtype="category")):
        with pytest.raises(tamis.KeyTypeError):
            tamis.build(wrong)
    # No object for each row.
    many = pd.Series(pd.Categorical.from_codes(np.zeros(3_000_000, np.int8), ["a"]))
    tracemalloc.start()
    assert filter.contains_many(many).all()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * len(many)


def test_one_and_its_text_are_different():
    assert tamis.build([1]) != tamis.build(["1"])
    filter = tamis.build(["1"])
    for query in (lambda: 1 in filter, lambda: filter.contains_many([1]), lambda: filter.contains_many(np.array([1]))):
        with pytest.raises(tamis.KeyTypeError, match="wrong key type integer; expected bytes"):
            query()
    with pytest.raises(tamis.KeyTypeError):
        tamis.build([1]).contains("1")
    assert "1" in filter and b"1" in filter and bytearray(b"1") in filter and np.str_("1") in filter


def test_what_is_no_key():
    wrong = [1.5, True, np.True_, object(), ["a"], {"a": 1}, 1j]
    for key in wrong:
        for call in (lambda: tamis.build([key]), lambda: key in tamis.build(["a"])):
            with pytest.raises(tamis.KeyTypeError):
                call()
    for column in (np.array([1.5]), np.array([True]), np.array(["2026-01-01"], dtype="M8[D]"), pa.array([1.5])):
        with pytest.raises(tamis.KeyTypeError):
            tamis.build(column)
    for column in (pa.array([True]), pa.array([[1]]), pl.Series([1.5]), pd.Series([1.5]), np.array([1j])):
        with pytest.raises(tamis.KeyTypeError):
            tamis.build(column)
    for column in (np.zeros((2, 2), int), np.zeros((), int), "text", b"text", 7, None, pa.table({"a": [1], "b": [2]})):
        with pytest.raises(tamis.InputError):
            tamis.build(column)
    for column in (["a", 1], [1, "a"], [1, 2, 1.5], np.array(["a", 1], dtype=object)):
        with pytest.raises(tamis.KeyTypeError):
            tamis.build(column)
    with pytest.raises(tamis.KeyTypeError):
        tamis.build(["a"], exclude=[1])
    # However late: rows are read thousands at a time.
    late = [
        ([1] * 8192 + ["a"], 8192, 1),
        (["a"] * 20_000 + [None, 7], 20_001, "a"),
        ([None] * 9000 + ["a", 1], 9001, "a"),
    ]
    for column, row, key in late:
        with pytest.raises(tamis.KeyTypeError, match=f"keys row {row}: of another key type"):
            tamis.build([key]).contains_many(column)
    with pytest.raises(tamis.KeyTypeError, match="keys row 8192: of another key type; expected integer"):
        tamis.build([*range(8192), "a"])
    with pytest.raises(tamis.KeyTypeError, match="exclude row 8192: of another key type; expected integer"):
        tamis.build([-1], exclude=[*range(8192), "a"])
    with pytest.raises(tamis.KeyTypeError, match="workload row 1: of another key type; expected integer"):
        tamis.build([-1], workload={1: 1.0, "a": 2.0})
    with pytest.raises(tamis.KeyTypeError, match="values row 1: of another key type; expected integer"):
        tamis.map([1, 2], [1, "a"])
    with pytest.raises(tamis.InputError):
        tamis.build(np.ma.masked_array([1, 2], [True, False]))
    for start, rows, kind in ((0, 3, "<i8"), (8, 2**62, "<i8"), (8, 2**62, "|S99"), (8, 3, "<U4611686018427387904")):
        array = type("Array", (), {"__array_interface__": {"shape": (rows,), "typestr": kind, "data": (start, True)}})
        with pytest.raises(tamis.InputError):
            tamis.build(array())
    for number in (2**64, -(2**63) - 1, 10**30):
        with pytest.raises(tamis.InputError, match="out of range; expected -2\\^63 to 2\\^64 - 1"):
            tamis.build([number])
    for text in ("\ud800", "a\udfff"):
        for call in (lambda: tamis.build([text]), lambda: text in tamis.build(["a"])):
            with pytest.raises(tamis.InputError, match="surrogate"):
                call()
    with pytest.raises(tamis.InputError, match="no UTF-8"):
        tamis.build(np.array(["\ud800"]))


def test_empty_columns():
    empty = [[], (), iter([]), np.array([], dtype="U3"), np.array([], dtype="S3"), pa.array([], pa.string())]
    empty += [pa.array([], pa.string_view()), pa.chunked_array([], pa.string()), pl.Series([], dtype=pl.String)]
    for column in empty:
        filter = tamis.build(column)
        assert len(filter) == 0 and "a" not in filter and filter == tamis.build([])
    for column in (np.array([], dtype=int), pa.array([], pa.int32()), pl.Series([], dtype=pl.Int8)):
        filter = tamis.build(column)
        assert len(filter) == 0 and 7 not in filter and filter.key_type == "integer"
        with pytest.raises(tamis.KeyTypeError):
            filter.contains("a")
    for column in empty[:2] + empty[3:]:
        assert len(tamis.build(["a"]).contains_many(column)) == 0


def test_iterators_that_fail():
    def failing():
        yield "a"
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        tamis.build(failing())
    with pytest.raises(RuntimeError, match="no more"):
        tamis.build(["a"]).contains_many(failing())

    def batches():
        yield pa.record_batch({"a": ["x"]})
        raise RuntimeError("lost")

    reader = pa.RecordBatchReader.from_batches(pa.schema({"a": pa.string()}), batches())
    with pytest.raises(tamis.InputError, match="lost"):
        tamis.build(reader)


@pytest.mark.engine("duckdb")
def test_duckdb():
    import duckdb

    with duckdb.connect() as connection:
        column = connection.sql("select 'host-' || i || '.example' as host from range(100000) as t(i)")
        expected = tamis.build(f"host-{i}.example" for i in range(100_000))
        assert tamis.build(column) == expected
        assert pa.compute.all(expected.contains_many(column)).as_py()
        with pytest.raises(tamis.InputError, match="a table of 2 columns; expected one column"):
            tamis.build(connection.sql("select 1 as a, 2 as b"))


def test_the_command_line_builds_the_same(tmp_path):
    keys, excluded = WORDS[:3000], [f"news-{i}.example" for i in range(5000)]
    (tmp_path / "keys").write_text("\n".join(keys))
    (tmp_path / "excluded").write_text("\n".join(excluded))
    command = [sys.executable, "-m", "tamis"]
    for options, given in (([], {}), (["--fpr", "0.001"], {"fpr": 0.001}), (["--exact"], {"exact": True})):
        arguments = ["build", "keys", "--exclude", "excluded", "-o", "x.tamis", "-q", *options]
        subprocess.run([*command, *arguments], cwd=tmp_path, check=True)
        built = tamis.build(pa.array(keys), exclude=np.array(excluded), **given)
        assert bytes(built) == (tmp_path / "x.tamis").read_bytes()
        assert tamis.open(tmp_path / "x.tamis") == built
    built.save(tmp_path / "y.tamis")
    # The script that the wheel installs, too.
    for command in (command, [str(Path(sys.executable).with_name("tamis"))]):
        done = subprocess.run(
            [*command, "query", "y.tamis", "keys", "-c"], cwd=tmp_path, capture_output=True, text=True
        )
        assert (done.returncode, done.stdout) == (0, "3000\n")
        done = subprocess.run([*command, "query", "none"], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 2 and done.stderr.startswith("tamis: none: ")
