"""digests in parts on many machines -> one filter: the rounds that every engine runs.

Keys are hashed where they are, and their digests sorted into parts by their top bits. Then the driver runs rounds over
groups of parts: a survey of each part, a sketch of its excluded keys if there are many, and the slice of each group.
What a round returns depends on its group and the plan alone, so a task that is run again returns the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tamis import slices
from tamis._errors import KeyTypeError
from tamis._tamis import Filter

# A number, the digests of the members and those of the excluded keys of its group.
Task = Callable[[int, list[bytes], list[bytes]], bytes]
# Runs a task for each group of parts, in order.
Each = Callable[[Task, list[list[int]]], list[bytes]]


def one_type(types: set[str]) -> str:
    """The key type of all parts; those without keys have none."""
    found = types - {""}
    if len(found) > 1:
        raise KeyTypeError("keys: of two key types; expected one key type")
    return found.pop() if found else "bytes"


def survey(options: dict[str, Any], parts: int, part: int, members: list[bytes], excluded: list[bytes]) -> bytes:
    return slices.survey(options, part, parts, members, excluded)


def sketch(plan: str, parts: int, part: int, members: list[bytes], excluded: list[bytes]) -> bytes:
    return slices.sketch(plan, part, parts, excluded)


def slice_of(plan: str, number: int, members: list[bytes], excluded: list[bytes]) -> bytes:
    return slices.slice(plan, number, members, excluded)


def build(each: Each, options: dict[str, Any], key_type: str, parts: int, most: int) -> Filter:
    """Runs all rounds; ``each`` is the engine's way to run one."""
    ranges = [[part] for part in range(parts)]
    surveyed = slices.merge(each(partial(survey, options, parts), ranges))
    plan = slices.plan(options, key_type, surveyed, most)
    if slices.needs_sketch(plan):
        plan = slices.with_sketch(plan, each(partial(sketch, plan, parts), ranges))
    while True:
        groups: list[list[int]] = [[] for _ in range(slices.count(plan))]
        for part in range(parts):
            groups[slices.slice_of_range(plan, part, parts)].append(part)
        made = each(partial(slice_of, plan), groups)
        again = slices.refine(plan, made)
        if again is None:
            return slices.join(made)
        plan = again
