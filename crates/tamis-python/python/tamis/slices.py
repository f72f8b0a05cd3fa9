"""digests in parts, on machines that share a plan -> one filter: the rounds that ``tamis.dask`` and ``tamis.spark`` run.

Digests are sorted into parts by their top bits. The bytes of each step follow from its part and the plan, so a task
that failed can run again, and the joined filter is that of one build of all keys.

>>> import tamis
>>> from tamis import slices
>>> members, _ = slices.split(["ann", "bob", "eve"], 4)
>>> surveys = [slices.survey({"fpr": 0.001}, part, 4, [members[part]], []) for part in range(4)]
>>> plan = slices.plan({"fpr": 0.001}, "bytes", slices.merge(surveys), 4)
>>> slices.needs_sketch(plan), slices.count(plan)
(False, 1)
>>> slices.join([slices.slice(plan, 0, members, [])]) == tamis.build(["ann", "bob", "eve"], fpr=0.001)
True

Digests of a part are bytes, 16 for each, or a file of them: a tuple of path, offset and length. The limits of a task are
those of ``tamis.build``: ``threads``, ``memory``, ``disk`` and ``tmp``.

A plan has the secret, if there is one, and so have slices and a manifest: keep them as you keep the secret.
"""

from __future__ import annotations

import os
from typing import Any

from tamis import _tamis
from tamis._errors import InputError

Digests = list[bytes | tuple[str | os.PathLike[str], int, int]]


def file_name(number: int) -> str:
    """The name of a slice in the folder of a manifest.

    >>> from tamis import slices
    >>> slices.file_name(17)
    'slice-00017.tamis'
    """
    return f"slice-{number:05}.tamis"


def split(keys: Any, parts: int, **hashed: Any) -> tuple[list[bytes], str]:
    """Hashes a column: the digests of each of ``parts`` parts, a power of two, and the key type, "" without keys.

    The options are ``seed`` and ``secret``, which all rounds need alike.
    """
    if hashed.get("secret") is True:
        raise InputError("secret: drawn again by each call; expected 16 bytes or 32 hexadecimal digits")
    return _tamis._split(keys, parts, hashed)


def survey(options: dict[str, Any], part: int, parts: int, members: Digests, excluded: Digests) -> bytes:
    """Round one, for each part: counts and checks its keys. Options are those of ``tamis.build``."""
    return _tamis._survey(options, part, parts, members, excluded)


def merge(surveys: list[bytes]) -> bytes:
    """Joins surveys, in any order."""
    return _tamis._merge(surveys)


def plan(options: dict[str, Any], key_type: str, survey: bytes, most: int) -> str:
    """Plans at most ``most`` slices, a power of two. Missing parts and members that are excluded are errors."""
    return _tamis._plan_slices(options, key_type, survey, most)


def needs_sketch(plan: str) -> bool:
    """Whether there are so many excluded keys that round two is needed."""
    return _tamis._rounds(plan)[0]


def count(plan: str) -> int:
    """How many slices there are: fewer than planned for few keys."""
    return _tamis._rounds(plan)[1]


def slice_of_range(plan: str, part: int, parts: int) -> int:
    """The slice that a part belongs to; a part with keys of several slices is an error."""
    slices = count(plan)
    if slices > parts:
        raise InputError(f"slices: {slices} of {parts} parts; expected at most one for each part")
    return part * slices // parts


def sketch(plan: str, part: int, parts: int, excluded: Digests, **limits: Any) -> bytes:
    """Round two, for each part: counts its excluded keys."""
    return _tamis._sketch(plan, part, parts, excluded, limits)


def with_sketch(plan: str, sketches: list[bytes]) -> str:
    """The plan with the sketches of all parts."""
    return _tamis._with_sketch(plan, sketches)


def slice(plan: str, number: int, members: Digests, excluded: Digests, **limits: Any) -> bytes:
    """Round three, for each slice: builds it from the digests of its parts."""
    return _tamis._slice(plan, number, members, excluded, limits)


def slice_to(
    path: str | os.PathLike[str], plan: str, number: int, members: Digests, excluded: Digests, **limits: Any
) -> int:
    """Round three into a file, which is there whole or not at all; returns its length."""
    return _tamis._slice_to(path, plan, number, members, excluded, limits)


def refine(plan: str, slices: list[bytes] | list[str | os.PathLike[str]]) -> str | None:
    """The plan to build all slices with again; nearly always none. Excluded keys may be chosen to need it.

    Slices are bytes, or files, of which the directories alone are read.
    """
    return _tamis._refine(plan, slices)


def join(slices: list[bytes]) -> _tamis.Filter:
    """The filter of all slices of one plan, in any order."""
    return _tamis._join(slices)


def join_to(path: str | os.PathLike[str], slices: list[str | os.PathLike[str]]) -> int:
    """Joins the files of all slices of one plan to a file, in the memory of their directories; returns its length."""
    return _tamis._join_to(path, slices)


def write_manifest(folder: str | os.PathLike[str]) -> None:
    """Writes the manifest of a folder that has all slices under their names: ``tamis.open`` opens it as one filter."""
    _tamis._write_manifest(folder)
