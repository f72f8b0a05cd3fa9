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

from typing import Any

import dask
import numpy
import pandas

from tamis import _parts, slices
from tamis._tamis import Filter

PARTS = 64


def _split(rows: Any, column: str | None, parts: int, options: dict[str, Any]) -> tuple[Any, ...]:
    """The digests of one partition by part, and their key type."""
    found, key_type = slices.split(rows if column is None else rows[column], parts, **options)
    return (*found, key_type)


def _run(task: _parts.Task, number: int, members: list[bytes], excluded: list[bytes]) -> bytes:
    return task(number, members, excluded)


def _pieces(rows: Any, column: str | None, parts: int, options: dict[str, Any]) -> list[list[Any]]:
    """Tasks that split each partition."""
    split = dask.delayed(_split, nout=parts + 1, pure=False)
    return [list(split(partition, column, parts, options)) for partition in rows.to_delayed()]


def build(
    rows: Any,
    column: str | None = None,
    *,
    exclude: tuple[Any, str | None] | None = None,
    parts: int = PARTS,
    slices: int | None = None,
    **options: Any,
) -> Filter:
    """Builds a filter of a column of a Dask frame, or of a series. Its bytes are those of one build of all keys.

    exclude: a frame and the name of its column of keys that never match.
    parts: a power of two: tasks of each round. slices: the largest number of slices; ``parts`` by default.

    Other options are goals, structure and hash as in ``tamis.build``. Workers hold the digests of one part at a time,
    16 bytes for each key.
    """
    hashed: dict[str, Any] = {name: options[name] for name in ("seed", "secret") if name in options}
    sides = [_pieces(rows, column, parts, hashed)]
    if exclude is not None:
        sides.append(_pieces(exclude[0], exclude[1], parts, hashed))
    # Hashed once, and kept on the workers where there are some.
    sides = list(dask.persist(*sides))
    types = {found for side in dask.compute(*([piece[parts] for piece in side] for side in sides)) for found in side}
    key_type = _parts.one_type(types)

    def each(task: _parts.Task, groups: list[list[int]]) -> list[bytes]:
        run = dask.delayed(_run, pure=False)
        tasks = []
        for number, group in enumerate(groups):
            digests = [[piece[part] for piece in side for part in group] for side in sides]
            tasks.append(run(task, number, digests[0], digests[1] if len(digests) > 1 else []))
        return list(dask.compute(*tasks))

    return _parts.build(each, options, key_type, parts, slices or parts)


def _contains(series: Any, filter: Filter) -> Any:
    return pandas.Series(numpy.asarray(filter.contains_many(series)), index=series.index, dtype=bool)


def contains(filter: Filter, series: Any) -> Any:
    """Returns a series of Dask: whether each key matches."""
    return series.map_partitions(_contains, filter, meta=(series.name, bool))
