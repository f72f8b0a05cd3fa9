"""digests in parts on many machines -> one filter: the rounds that every engine runs.

Keys are hashed where they are, and their digests sorted into parts by their top bits. Then the driver runs rounds over
groups of parts: a survey of each part, a sketch of its excluded keys if there are many, and the slice of each group.
What a round returns depends on its group and the plan alone, so a task that is run again returns the same bytes.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import tamis
from tamis import slices
from tamis._errors import InputError, KeyTypeError

# A number, the digests of the members and those of the excluded keys of its group.
Task = Callable[[int, list[Any], list[Any]], bytes]
# Runs a task for each group of parts, in order.
Each = Callable[[Task, list[list[int]]], list[bytes]]
LIMITS = ("threads", "memory", "disk", "tmp")


def ready(options: dict[str, Any], parts: int, most: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options of all tasks, which share one secret, and those of them that hash keys."""
    if options.get("secret_beside"):
        raise InputError("secret_beside: not possible in slices; expected a build in one process")
    if most > parts:
        raise InputError(f"slices: {most} of {parts} parts; expected at most one for each part")
    if options.get("secret") is True:
        options = {**options, "secret": secrets.token_bytes(16)}
    return options, {name: options[name] for name in ("seed", "secret") if options.get(name) is not None}


def one_type(types: set[str]) -> str:
    """The key type of all parts; those without keys have none."""
    found = types - {""}
    if len(found) > 1:
        raise KeyTypeError("keys: of two key types; expected one key type")
    return found.pop() if found else "bytes"


def survey(options: dict[str, Any], parts: int, part: int, members: list[Any], excluded: list[Any]) -> bytes:
    return slices.survey(options, part, parts, members, excluded)


def sketch(plan: str, parts: int, limits: dict[str, Any], part: int, members: list[Any], excluded: list[Any]) -> bytes:
    return slices.sketch(plan, part, parts, excluded, **limits)


def slice_of(
    plan: str, limits: dict[str, Any], folder: str | None, number: int, members: list[Any], excluded: list[Any]
) -> bytes:
    """A slice; of one that goes into the folder nothing goes back to the driver."""
    if folder is None:
        return slices.slice(plan, number, members, excluded, **limits)
    slices.slice_to(Path(folder) / slices.file_name(number), plan, number, members, excluded, **limits)
    return b""


def build(
    each: Each,
    options: dict[str, Any],
    key_type: str,
    parts: int,
    most: int,
    folder: str | os.PathLike[str] | None = None,
) -> Any:
    """Runs all rounds; ``each`` is the engine's way to run one. A ``Filter``, or a ``Sliced`` in the folder."""
    ranges = [[part] for part in range(parts)]
    limits = {name: options[name] for name in LIMITS if name in options}
    surveyed = slices.merge(each(partial(survey, options, parts), ranges))
    plan = slices.plan(options, key_type, surveyed, most)
    if slices.needs_sketch(plan):
        plan = slices.with_sketch(plan, each(partial(sketch, plan, parts, limits), ranges))
    into = None if folder is None else os.path.abspath(folder)
    while True:
        groups: list[list[int]] = [[] for _ in range(slices.count(plan))]
        for part in range(parts):
            groups[slices.slice_of_range(plan, part, parts)].append(part)
        made: list[Any] = list(each(partial(slice_of, plan, limits, into), groups))
        if into is not None:
            made = [Path(into) / slices.file_name(number) for number in range(len(groups))]
        again = slices.refine(plan, made)
        if again is not None:
            plan = again
        elif into is None:
            return slices.join(made)
        else:
            slices.write_manifest(into)
            return tamis.open(into)
