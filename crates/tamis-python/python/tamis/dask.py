"""columns of Dask -> one filter, built in parts where the rows are; and a column of answers.

>>> import dask.dataframe, pandas, tamis.dask
>>> hosts = dask.dataframe.from_pandas(pandas.DataFrame({"host": ["ads.example", "spam.example"]}), npartitions=2)
>>> blocked = tamis.dask.build(hosts, "host")
>>> "ads.example" in blocked
True
>>> tamis.dask.contains(blocked, hosts["host"]).compute().tolist()
[True, True]
"""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
import uuid
from typing import Any

import dask
import numpy
import pandas

from tamis import _parts, slices
from tamis._tamis import Filter, Sliced

PARTS = 64


def _split(rows: Any, column: str | None, parts: int, options: dict[str, Any], path: str | None) -> tuple[Any, ...]:
    """The digests of one partition by part, in memory or as places in a file, and their key type."""
    found, key_type = slices.split(rows if column is None else rows[column], parts, **options)
    if path is None:
        return (*found, key_type)
    # A task that runs twice, perhaps at the same time, writes the same bytes.
    part = f"{path}.{uuid.uuid4().hex}"
    with open(part, "wb") as file:
        file.writelines(found)
    os.replace(part, path)
    places, at = [], 0
    for digests in found:
        places.append((path, at, len(digests)))
        at += len(digests)
    return (*places, key_type)


def _run(task: _parts.Task, number: int, members: list[Any], excluded: list[Any]) -> bytes:
    return task(number, members, excluded)


def _pieces(
    rows: Any, column: str | None, parts: int, options: dict[str, Any], folder: str | None, side: int
) -> list[list[Any]]:
    """Tasks that split each partition."""
    split = dask.delayed(_split, nout=parts + 1, pure=False)
    paths = (folder and os.path.join(folder, f"{side}-{number}") for number in itertools.count())
    return [list(split(partition, column, parts, options, path)) for partition, path in zip(rows.to_delayed(), paths)]


def build(
    rows: Any,
    column: str | None = None,
    *,
    exclude: tuple[Any, str | None] | None = None,
    parts: int = PARTS,
    slices: int | None = None,
    folder: str | os.PathLike[str] | None = None,
    **options: Any,
) -> Any:
    """Builds a filter of a column of a Dask frame, or of a series. Its bytes are those of one build of all keys.

    exclude: a frame and the name of its column of keys that never match.
    parts: a power of two: tasks of each round. slices: the largest number of slices; ``parts`` by default.
    folder: where slices and their manifest stay, in place of one filter: returns a ``Sliced``. All workers and this process
    must see the folder. Digests are files there too while the build runs, so no process holds more than a partition, or
    what ``memory`` allows; the driver holds no part of the filter.

    Other options are goals, structure and hash as in ``tamis.build``, and the limits of a task: ``threads``, ``memory``,
    ``disk`` and ``tmp``. Without a folder the cluster holds all digests, 16 bytes for each key, and this process the filter.
    A secret travels with the tasks, as it is; ``secret=True`` draws one here for all of them.
    """
    options, hashed = _parts.ready(options, parts, slices or parts)
    held = None
    if folder is not None:
        os.makedirs(folder, exist_ok=True)
        held = tempfile.mkdtemp(prefix="digests-", dir=os.path.abspath(folder))
    try:
        sides = [_pieces(rows, column, parts, hashed, held, 0)]
        if exclude is not None:
            sides.append(_pieces(exclude[0], exclude[1], parts, hashed, held, 1))
        # Hashed once, and kept on the workers where there are some.
        sides = list(dask.persist(*sides))
        types = {
            found for side in dask.compute(*([piece[parts] for piece in side] for side in sides)) for found in side
        }
        key_type = _parts.one_type(types)

        def each(task: _parts.Task, groups: list[list[int]]) -> list[bytes]:
            run = dask.delayed(_run, pure=False)
            tasks = []
            for number, group in enumerate(groups):
                digests = [[piece[part] for piece in side for part in group] for side in sides]
                tasks.append(run(task, number, digests[0], digests[1] if len(digests) > 1 else []))
            return list(dask.compute(*tasks))

        return _parts.build(each, options, key_type, parts, slices or parts, folder)
    finally:
        if held is not None:
            shutil.rmtree(held, ignore_errors=True)


def _contains(series: Any, filter: Filter | Sliced) -> Any:
    return pandas.Series(numpy.asarray(filter.contains_many(series)), index=series.index, dtype=bool)


def contains(filter: Filter | Sliced, series: Any) -> Any:
    """Returns a series of Dask: whether each key matches."""
    return series.map_partitions(_contains, filter, meta=(series.name, bool))
