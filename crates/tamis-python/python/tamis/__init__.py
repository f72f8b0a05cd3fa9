"""Membership filters that match every member and no excluded key, for columns.

>>> import tamis
>>> blocked = tamis.build(["ads.example", "spam.example"], exclude=["news.example"])
>>> "ads.example" in blocked, "news.example" in blocked
(True, False)
>>> blocked.contains_many(["spam.example", "news.example"])
array([ True, False])

A column of keys is a list or another iterable, an array of NumPy, or a column of Arrow, pandas, Polars or DuckDB.
Keys are text, bytes or integers from -2^63 to 2^64 - 1. Text is its UTF-8 bytes; ``1`` and ``"1"`` are different keys.
"""

from tamis._build import build, digests, map, ngrams, open, plan, sequence, sets
from tamis._errors import (
    BuildError,
    ChangeError,
    Error,
    FileError,
    FormatError,
    InputError,
    KeyTypeError,
    MissingFileError,
    QueryError,
)
from tamis._plan import Candidate, Plan
from tamis._tamis import Bloom, Cuckoo, Digests, Filter, Map, Quotient, Sequence, Sets, Sliced

__all__ = [
    "Bloom",
    "BuildError",
    "Candidate",
    "ChangeError",
    "Cuckoo",
    "Digests",
    "Error",
    "FileError",
    "Filter",
    "FormatError",
    "InputError",
    "KeyTypeError",
    "Map",
    "MissingFileError",
    "Plan",
    "QueryError",
    "Quotient",
    "Sequence",
    "Sets",
    "Sliced",
    "build",
    "digests",
    "map",
    "ngrams",
    "open",
    "plan",
    "sequence",
    "sets",
]
