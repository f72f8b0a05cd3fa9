"""slices, built in parts -> the bytes of one build; what does not fit together is an error."""

from functools import partial

import numpy as np
import pytest

import tamis
from tamis import _parts, slices

PARTS = 8
CASES = {
    "plain": ({}, 0),
    "many shards": ({"shard_bytes": 4096, "fpr": 0.001}, 0),
    "excluded": ({"shard_bytes": 4096}, 9_000),
    "sketched": ({"shard_bytes": 4096, "fpr": 0.003}, 90_000),
    "exact, of a seed": ({"exact": True, "seed": 7}, 40_000),
    "fuse": ({"kind": "fuse", "shard_bytes": 8192}, 0),
}


def columns(excluded):
    members = np.array([f"member {i}" for i in range(60_000)])
    return members, np.array([f"other {i}" for i in range(excluded)], dtype="U12")


def parts(column, options):
    hashed = {name: options[name] for name in ("seed",) if name in options}
    return slices.split(column, PARTS, **hashed)[0]


def built(options, members, excluded, each=None):
    """Runs all rounds here; a task runs twice, as if the first had failed."""

    def here(task, groups):
        made = []
        for number, group in enumerate(groups):
            sides = [[side[part] for part in group] for side in (members, excluded)]
            again = task(number, *(side[::-1] for side in sides))
            made.append(task(number, *sides))
            assert again == made[-1]
        return made

    return _parts.build(each or here, options, "bytes", PARTS, PARTS)


@pytest.mark.parametrize("case", CASES)
def test_joined_slices_are_one_build(case):
    options, count = CASES[case]
    members, excluded = columns(count)
    one = tamis.build(members, exclude=excluded if count else None, **options)
    whole = built(options, parts(members, options), parts(excluded, options))
    assert whole == one
    assert whole.contains_many(members).all() and not whole.contains_many(excluded).any()


def plan_of(options, members, excluded):
    split = [parts(side, options) for side in (members, excluded)]
    surveys = [slices.survey(options, part, PARTS, [split[0][part]], [split[1][part]]) for part in range(PARTS)]
    return split, surveys


def test_what_does_not_fit_together():
    options = {"shard_bytes": 4096}
    members, excluded = columns(0)
    split, surveys = plan_of(options, members, excluded)
    plan = slices.plan(options, "bytes", slices.merge(surveys[::-1]), PARTS)
    assert slices.count(plan) == PARTS and not slices.needs_sketch(plan)
    build = partial(slices.slice, plan)
    made = [build(number, [split[0][number]], []) for number in range(PARTS)]
    assert slices.refine(plan, made) is None
    assert slices.join(made[::-1]) == tamis.build(members, **options)
    wrong = {
        "a part is missing": lambda: slices.plan(options, "bytes", slices.merge(surveys[1:]), PARTS),
        "a part twice": lambda: slices.merge([*surveys, surveys[0]]),
        "other options": lambda: slices.merge([*surveys[1:], slices.survey({}, 0, PARTS, [split[0][0]], [])]),
        "another seed": lambda: slices.plan({**options, "seed": 1}, "bytes", slices.merge(surveys), PARTS),
        "keys of another part": lambda: slices.survey(options, 0, PARTS, [split[0][1]], []),
        "no parts": lambda: slices.merge([]),
        "parts that are no power of two": lambda: slices.split(members, 3),
        "keys of another slice": lambda: build(0, [split[0][1]], []),
        "no such slice": lambda: build(PARTS, [], []),
        "a slice is missing": lambda: slices.join(made[1:]),
        "a slice twice": lambda: slices.join([*made, made[0]]),
        "no slices": lambda: slices.join([]),
        "a slice of fewer keys": lambda: slices.join([build(0, [split[0][0][:-16]], []), *made[1:]]),
        "a damaged slice": lambda: slices.join([made[0][:-1], *made[1:]]),
        "a digest that is cut": lambda: build(0, [split[0][0][:-1]], []),
        "a plan that is none": lambda: slices.slice("{}", 0, [], []),
        "an option that is none": lambda: slices.survey({"fp": 0.1}, 0, PARTS, [], []),
    }
    for what, call in wrong.items():
        with pytest.raises(tamis.Error):
            call()
            pytest.fail(what)
    other = slices.plan(
        {**options, "fpr": 0.1}, "bytes", slices.merge(plan_of({**options, "fpr": 0.1}, members, excluded)[1]), PARTS
    )
    with pytest.raises(tamis.Error):
        slices.join([slices.slice(other, 0, [split[0][0]], []), *made[1:]])


def test_conflicts_and_key_types():
    members, _ = columns(0)
    with pytest.raises(tamis.BuildError):
        built({}, parts(members, {}), parts(members[:1], {}))
    with pytest.raises(tamis.InputError, match="keys row 1: missing"):
        slices.split(["a", None], PARTS)
    assert slices.split([], PARTS)[1] == "" and slices.split([1], PARTS)[1] == "integer"
    with pytest.raises(tamis.KeyTypeError):
        _parts.one_type({"bytes", "integer", ""})
