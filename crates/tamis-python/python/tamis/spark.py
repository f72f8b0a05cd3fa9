"""columns of Spark -> one filter, built in parts where the rows are; and a column of answers.

    blocked = tamis.spark.build(hosts, "host", exclude=(popular, "host"), fpr=0.001)
    visits.withColumn("blocked", tamis.spark.contains(blocked, visits.host))

Executors need the package too, and ``PYSPARK_PYTHON`` must name their Python.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow
from pyspark.sql import functions
from pyspark.sql.types import IntegralType

from tamis import _parts, slices
from tamis._tamis import Filter, Sliced

PARTS = 64
# Digests that a task holds before it hands them on, in bytes.
BATCH = 64 << 20
SPLIT = "side int, part int, digests binary"
MADE = "number int, made binary"
Batches = Iterator[Any]


def _rows(side: int, held: list[list[bytes]]) -> Any:
    """What a task hands on: one row for each part that has digests."""
    made = [(part, b"".join(digests)) for part, digests in enumerate(held) if digests]
    columns = [
        pyarrow.array([side] * len(made), pyarrow.int32()),
        pyarrow.array([part for part, _ in made], pyarrow.int32()),
        pyarrow.array([digests for _, digests in made], pyarrow.binary()),
    ]
    return pyarrow.record_batch(columns, ["side", "part", "digests"])


# Types of what Spark calls are complete or missing: it reads them as a choice of how to call it.
def _splitter(side: int, parts: int, options: dict[str, Any]) -> Callable[[Batches], Batches]:
    def split(batches: Batches) -> Batches:
        held: list[list[bytes]] = [[] for _ in range(parts)]
        size = 0
        for batch in batches:
            found, _ = slices.split(batch.column(0), parts, **options)
            for digests, more in zip(held, found):
                if more:
                    digests.append(more)
                    size += len(more)
            if size >= BATCH:
                yield _rows(side, held)
                held, size = [[] for _ in range(parts)], 0
        yield _rows(side, held)

    return split


def _runner(task: _parts.Task) -> Callable[[pyarrow.Table], pyarrow.Table]:
    def run(table: pyarrow.Table) -> pyarrow.Table:
        number = table.column("number")[0].as_py()
        sides = table.column("side").to_pylist()
        digests = table.column("digests").to_pylist()
        members, excluded = ([found for at, found in zip(sides, digests) if at == side] for side in (0, 1))
        made = task(number, members, excluded)
        columns = [pyarrow.array([number], pyarrow.int32()), pyarrow.array([made], pyarrow.binary())]
        return pyarrow.table(columns, ["number", "made"])

    return run


def _key_type(rows: Any, column: str) -> str:
    return "integer" if isinstance(rows.schema[column].dataType, IntegralType) else "bytes"


def build(
    rows: Any,
    column: str,
    *,
    exclude: tuple[Any, str] | None = None,
    parts: int = PARTS,
    slices: int | None = None,
    folder: str | os.PathLike[str] | None = None,
    **options: Any,
) -> Any:
    """Builds a filter of a column of a Spark frame. Its bytes are those of one build of all keys.

    exclude: a frame and the name of its column of keys that never match.
    parts: a power of two: tasks of each round. slices: the largest number of slices; ``parts`` by default.
    folder: where slices and their manifest stay, in place of one filter: returns a ``Sliced``. All executors and the driver
    must see the folder; the driver then holds no part of the filter.

    Other options are goals, structure and hash as in ``tamis.build``, and the limits of a task: ``threads``, ``memory``,
    ``disk`` and ``tmp``. A task holds the digests of one part, 16 bytes for each key, so more parts need less memory. Spark
    runs a task that failed again, and it returns the same bytes. A secret travels with the tasks, as it is; ``secret=True``
    draws one here for all of them.
    """
    options, hashed = _parts.ready(options, parts, slices or parts)
    if folder is not None:
        os.makedirs(folder, exist_ok=True)
    sides = [(rows, column), *([exclude] if exclude is not None else [])]
    key_type = _parts.one_type({_key_type(*side) for side in sides})
    split: Any = None
    for side, (frame, name) in enumerate(sides):
        digests = frame.select(name).mapInArrow(_splitter(side, parts, hashed), SPLIT)
        split = digests if split is None else split.unionByName(digests)
    split = split.persist()

    def each(task: _parts.Task, groups: list[list[int]]) -> list[bytes]:
        number_of = {part: number for number, group in enumerate(groups) for part in group}
        numbers = functions.array(*[functions.lit(number_of[part]) for part in range(parts)])
        grouped = split.withColumn("number", numbers[split.part]).groupBy("number")
        made = {row.number: bytes(row.made) for row in grouped.applyInArrow(_runner(task), MADE).collect()}
        # A group without keys is no group to Spark.
        return [made[number] if number in made else task(number, [], []) for number in range(len(groups))]

    try:
        return _parts.build(each, options, key_type, parts, slices or parts, folder)
    finally:
        split.unpersist()


_opened: dict[str, Filter | Sliced] = {}


def contains(filter: Filter | Sliced, column: Any) -> Any:
    """Returns a column of Spark: whether each key matches; missing where the key is missing.

    A process of Python that runs tasks opens the filter once.
    """
    identity, data = filter.identity, pickle.dumps(filter)

    def answer(keys: pyarrow.Array) -> pyarrow.Array:
        from tamis import spark

        if identity not in spark._opened:
            spark._opened[identity] = pickle.loads(data)
        return spark._opened[identity].contains_many(keys)

    return functions.arrow_udf(answer, "boolean")(column)
