"""structures of Arrow as a broken or hostile library makes them -> an error, or what they say, never a crash."""

import ctypes

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import tamis

RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
capsule_of = ctypes.pythonapi.PyCapsule_New
capsule_of.restype = ctypes.py_object
capsule_of.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Schema(ctypes.Structure):
    pass


class Array(ctypes.Structure):
    pass


Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(Schema))),
    ("dictionary", ctypes.POINTER(Schema)),
    ("release", RELEASE),
    ("private_data", ctypes.c_void_p),
]
Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(Array))),
    ("dictionary", ctypes.POINTER(Array)),
    ("release", RELEASE),
    ("private_data", ctypes.c_void_p),
]


RELEASED = []
# What a column refers to: Python does not see it.
KEPT = []


def releasing(kind):
    def release(structure):
        ctypes.c_void_p.from_address(structure + kind.release.offset).value = None
        RELEASED.append(kind)

    return RELEASE(release)


RELEASE_SCHEMA, RELEASE_ARRAY = releasing(Schema), releasing(Array)


def pointers(kind, items):
    table = (ctypes.POINTER(kind) * max(len(items), 1))(*[ctypes.pointer(item) for item in items])
    KEPT.append((table, items))
    return table


def schema(format, children=(), dictionary=None, **fields):
    made = Schema(format=format, n_children=len(children), children=pointers(Schema, children), release=RELEASE_SCHEMA)
    if dictionary is not None:
        made.dictionary = ctypes.pointer(dictionary)
    for name, value in fields.items():
        setattr(made, name, value)
    KEPT.append((made, dictionary))
    return made


def array(length, buffers, children=(), dictionary=None, **fields):
    """An array of buffers, which are arrays of NumPy or none."""
    table = (ctypes.c_void_p * max(len(buffers), 1))(*[None if b is None else b.ctypes.data for b in buffers])
    made = Array(length=length, n_buffers=len(buffers), buffers=table, n_children=len(children), release=RELEASE_ARRAY)
    made.children = pointers(Array, children)
    if dictionary is not None:
        made.dictionary = ctypes.pointer(dictionary)
    for name, value in fields.items():
        setattr(made, name, value)
    KEPT.append((made, table, buffers, dictionary))
    return made


class Column:
    """Hands over these structures, under these names."""

    def __init__(self, schema, array, names=(b"arrow_schema", b"arrow_array")):
        pairs = zip((schema, array), names)
        self.capsules = tuple(capsule_of(ctypes.addressof(one), name, None) for one, name in pairs)

    def __arrow_c_array__(self, requested_schema=None):
        return self.capsules


NUMBERS = np.arange(5, 13, dtype=np.int64)
OFFSETS = np.array([0, 1, 2, 3], dtype=np.int32)
TEXT = np.frombuffer(b"abc", np.uint8)
NULL = RELEASE()


def text(offsets=OFFSETS, length=3, **fields):
    return array(length, [None, offsets, TEXT], **fields)


def test_structures_of_our_own():
    RELEASED.clear()
    assert tamis.build(Column(schema(b"l"), array(8, [None, NUMBERS]))) == tamis.build(range(5, 13))
    assert tamis.build(Column(schema(b"l"), array(3, [None, NUMBERS], offset=2))) == tamis.build([7, 8, 9])
    column = Column(schema(b"u"), text())
    assert tamis.build(column) == tamis.build(["a", "b", "c"])
    # Each was released once.
    assert (RELEASED.count(Schema), RELEASED.count(Array)) == (3, 3)


BROKEN = {
    "released schema": lambda: Column(schema(b"l", release=NULL), array(8, [None, NUMBERS])),
    "released array": lambda: Column(schema(b"l"), array(8, [None, NUMBERS], release=NULL)),
    "names exchanged": lambda: Column(schema(b"l"), array(8, [None, NUMBERS]), names=(b"arrow_array", b"arrow_schema")),
    "other name": lambda: Column(schema(b"l"), array(8, [None, NUMBERS]), names=(b"arrow_schema", b"array")),
    "no format": lambda: Column(schema(None), array(8, [None, NUMBERS])),
    "negative length": lambda: Column(schema(b"l"), array(-1, [None, NUMBERS])),
    "negative offset": lambda: Column(schema(b"l"), array(8, [None, NUMBERS], offset=-1)),
    "length beyond memory": lambda: Column(schema(b"l"), array(2**63 - 1, [None, NUMBERS])),
    "bytes beyond memory": lambda: Column(schema(b"l"), array(2**60, [None, NUMBERS])),
    "offset beyond memory": lambda: Column(schema(b"l"), array(8, [None, NUMBERS], offset=2**63 - 4)),
    "bits beyond memory": lambda: Column(schema(b"l"), array(8, [NUMBERS, NUMBERS], offset=2**63 - 1, null_count=1)),
    "no buffers": lambda: Column(schema(b"l"), array(8, [])),
    "negative buffers": lambda: Column(schema(b"l"), array(8, [None, NUMBERS], n_buffers=-2)),
    "no values": lambda: Column(schema(b"l"), array(8, [None, None])),
    "offsets out of order": lambda: Column(schema(b"u"), text(np.array([0, 2, 1, 3], np.int32))),
    "offsets past the end": lambda: Column(schema(b"u"), text(np.array([0, 9, 2, 3], np.int32))),
    "negative offsets": lambda: Column(schema(b"u"), text(np.array([-4, 1, 2, 3], np.int32))),
    "negative end": lambda: Column(schema(b"u"), text(np.array([0, 1, 2, -3], np.int32))),
    "texts beyond memory": lambda: Column(schema(b"u"), text(length=2**63 - 1)),
    "width": lambda: Column(schema(b"w:-3"), array(1, [None, TEXT])),
    "widths beyond memory": lambda: Column(schema(b"w:4611686018427387904"), array(3, [None, TEXT])),
    "list": lambda: Column(schema(b"+l", [schema(b"l")]), array(1, [None, OFFSETS], [array(1, [None, NUMBERS])])),
    "struct of a struct": lambda: Column(
        schema(b"+s", [schema(b"+s", [schema(b"l")])]),
        array(8, [None], [array(8, [None], [array(8, [None, NUMBERS])])]),
    ),
    "struct without children": lambda: Column(schema(b"+s", [schema(b"l")]), array(8, [None])),
    "struct of no columns": lambda: Column(schema(b"+s"), array(8, [None])),
    "struct of a moved child": lambda: Column(
        schema(b"+s", [schema(b"l")]), array(8, [None], [array(8, [None, NUMBERS], release=NULL)])
    ),
    "struct longer than its child": lambda: Column(
        schema(b"+s", [schema(b"l")]), array(8, [None], [array(7, [None, NUMBERS])])
    ),
    "struct beyond its child": lambda: Column(
        schema(b"+s", [schema(b"l")]), array(8, [None], [array(8, [None, NUMBERS])], offset=1)
    ),
    "dictionary without values": lambda: Column(
        schema(b"l", dictionary=schema(b"u")), array(1, [None, np.zeros(1, np.int64)])
    ),
    "dictionary moved": lambda: Column(
        schema(b"l", dictionary=schema(b"u")),
        array(1, [None, np.zeros(1, np.int64)], dictionary=text(release=NULL)),
    ),
    "position past the dictionary": lambda: Column(
        schema(b"l", dictionary=schema(b"u")), array(1, [None, np.array([3])], dictionary=text())
    ),
    "negative position": lambda: Column(
        schema(b"l", dictionary=schema(b"u")), array(1, [None, np.array([-1])], dictionary=text())
    ),
    "positions that are text": lambda: Column(schema(b"u", dictionary=schema(b"u")), text(dictionary=text())),
    "position in no values": lambda: Column(
        schema(b"l", dictionary=schema(b"n")), array(1, [None, np.array([0])], dictionary=array(0, []))
    ),
    "dictionary of dictionaries": lambda: Column(
        schema(b"l", dictionary=schema(b"l", dictionary=schema(b"u"))),
        array(
            1,
            [None, np.zeros(1, np.int64)],
            dictionary=array(1, [None, np.zeros(1, np.int64)], dictionary=text()),
        ),
    ),
    "views past their buffer": lambda: Column(
        schema(b"vu"), array(1, [None, np.array([20, 0, 0, 0], np.uint32), TEXT, np.array([3], np.int64)])
    ),
    "views of no buffer": lambda: Column(schema(b"vu"), array(1, [None, np.array([20, 0, 7, 0], np.uint32)])),
    "buffers of negative size": lambda: Column(
        schema(b"vu"), array(1, [None, np.array([20, 0, 0, 0], np.uint32), TEXT, np.array([-3], np.int64)])
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_structures(name):
    calls = [
        tamis.build,
        tamis.digests,
        tamis.build(range(100)).contains_many,
        tamis.build(["a"]).contains_many,
        tamis.map({"a": "b"}).get_many,
        tamis.sets({"a": ["b"]}).find_many,
        lambda column: tamis.map(np.arange(8), column),
        lambda column: tamis.ngrams(column, 1),
    ]
    for call in calls:
        with pytest.raises(tamis.InputError):
            call(BROKEN[name]())


def test_a_capsule_is_read_once():
    class Same:
        """Hands over one pair of capsules, or one stream, again and again."""

        def __init__(self, column, method):
            capsule = getattr(column, method)()
            setattr(type(self), method, lambda self, requested_schema=None: capsule)

    for column, method in ((pa.array(["a"]), "__arrow_c_array__"), (pa.chunked_array([["a"]]), "__arrow_c_stream__")):
        same = type("Same", (Same,), {})(column, method)
        assert tamis.build(same) == tamis.build(["a"])
        for _ in range(2):
            with pytest.raises(tamis.InputError, match="read before; expected a new one"):
                tamis.build(same)


def test_what_is_no_capsule():
    for returned in (None, 7, (), ("a", "b"), (1, 2, 3), pa.array([1]).__arrow_c_array__()[:1]):
        for method in ("__arrow_c_array__", "__arrow_c_stream__"):
            column = type("Column", (), {method: lambda self, requested_schema=None: returned})()
            with pytest.raises(tamis.InputError):
                tamis.build(column)


def test_missing_rows_of_a_struct():
    """A row is missing if the struct or its column says so."""
    words = pa.array(["a", "b", None, "d", "e"])
    for mask in ([False, True, False, False, True], [False] * 5):
        column = pa.StructArray.from_arrays([words], ["word"], mask=pa.array(mask))
        expected = [None if gone or word is None else True for gone, word in zip(mask, words.to_pylist())]
        filter = tamis.build(words.drop_null())
        for start in range(5):
            assert filter.contains_many(column[start:]).to_pylist() == expected[start:]
            assert filter.contains_many(pa.chunked_array([column[start:]])).to_pylist() == expected[start:]
        with pytest.raises(tamis.InputError, match="row [12]: missing"):
            tamis.build(column)
    column = pl.Series([{"a": 1}, None, {"a": 3}], dtype=pl.Struct({"a": pl.Int64}))
    assert tamis.build([1, 3]).contains_many(column).to_list() == [True, None, True]


def test_columns_longer_than_memory():
    for column in (Column(schema(b"n"), array(2**50, [])), range(2**62)):
        for call in (tamis.build([1]).contains_many, tamis.map({1: 2}).get_many, tamis.digests):
            with pytest.raises((MemoryError, tamis.InputError)):
                call(column)
