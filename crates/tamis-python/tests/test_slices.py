"""slices, built in parts -> the bytes of one build; what does not fit together is an error."""

import pickle
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


def built(options, members, excluded, each=None, folder=None):
    """Runs all rounds here; a task runs twice, as if the first had failed."""

    def here(task, groups):
        made = []
        for number, group in enumerate(groups):
            sides = [[side[part] for part in group] for side in (members, excluded)]
            again = task(number, *(side[::-1] for side in sides))
            made.append(task(number, *sides))
            assert again == made[-1]
        return made

    return _parts.build(each or here, options, "bytes", PARTS, PARTS, folder)


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


@pytest.mark.parametrize("case", ["plain", "sketched"])
def test_a_folder_is_the_filter(case, tmp_path):
    options, count = CASES[case]
    members, excluded = columns(count)
    one = tamis.build(members, exclude=excluded if count else None, metadata="note", **options)
    # Digests in files, of which a task reads those of its part; limits that make it use the disk.
    sides = []
    for name, column in (("members", members), ("excluded", excluded)):
        path, at, places = tmp_path / name, 7, []
        found = parts(column, options)
        path.write_bytes(b"-------" + b"".join(found))
        for digests in found:
            places.append((path, at, len(digests)))
            at += len(digests)
        sides.append(places)
    limits = {"memory": 4 << 20, "tmp": str(tmp_path), "threads": 1}
    folder = tmp_path / "slices"
    folder.mkdir()
    whole = built({**options, "metadata": "note", **limits}, *sides, folder=folder)
    assert isinstance(whole, tamis.Sliced) and whole.slices == len(list(folder.glob("slice-*")))
    assert sorted(path.name for path in folder.iterdir())[0] == "manifest.tamis"
    assert (len(whole), whole.excluded, whole.fpr, whole.key_type) == (len(one), one.excluded, one.fpr, one.key_type)
    assert whole.metadata == b"note" and whole.layers == one.layers and whole.folder == folder
    assert whole.contains_many(members).all() and not whole.contains_many(excluded).any()
    unlisted = [f"unlisted {i}" for i in range(5000)]
    assert (whole.contains_many(unlisted) == one.contains_many(unlisted)).all()
    assert "member 1" in whole and b"member 2" in whole and whole.contains("member 3")
    with pytest.raises(tamis.KeyTypeError):
        whole.contains_many([1, 2])
    with pytest.raises(tamis.KeyTypeError):
        whole.contains(1.5)
    for again in (pickle.loads(pickle.dumps(whole)), tamis.open(str(folder), mmap=False)):
        assert again == whole and hash(again) == hash(whole) and again.identity == whole.identity
        again.verify()
    assert f"slices={whole.slices}" in repr(whole)
    paths = [folder / slices.file_name(number) for number in range(whole.slices)]
    assert slices.join_to(tmp_path / "joined", paths[::-1]) == one.nbytes
    assert tamis.open(tmp_path / "joined") == one
    with pytest.raises(tamis.FormatError, match="a secret was given"):
        tamis.open(folder, secret=b"0" * 16)
    data = bytearray(paths[0].read_bytes())
    data[20] ^= 1
    paths[0].write_bytes(data)
    with pytest.raises(tamis.FormatError, match="slice-00000"):
        tamis.open(folder)
    paths[0].unlink()
    with pytest.raises(tamis.Error, match="slice-00000"):
        tamis.open(folder)
    with pytest.raises(tamis.Error, match="slice-00000"):
        slices.write_manifest(folder)


def test_limits_of_a_task():
    members = np.arange(1_000_000)
    split = slices.split(members, PARTS)[0]
    surveys = [slices.survey({}, part, PARTS, [split[part]], []) for part in range(PARTS)]
    plan = slices.plan({}, "integer", slices.merge(surveys), 1)
    # The least memory, 4 MiB, does not hold 16 MB of digests.
    for limits in ({"disk": 0, "memory": 1}, {"threads": 0}, {"tmp": "/nowhere", "memory": 1}):
        with pytest.raises(tamis.Error):
            slices.slice(plan, 0, split, [], **limits)
        if "threads" not in limits:
            with pytest.raises(tamis.Error):
                slices.sketch(plan, 0, 1, split, **limits)
    with pytest.raises(tamis.InputError, match="seed: not an option"):
        slices.slice(plan, 0, split, [], seed=1)
    with pytest.raises(tamis.Error, match="no file"):
        slices.slice(plan, 0, [("no file", 0, 16)], [])
    assert slices.join([slices.slice(plan, 0, split, [], threads=1, memory=8 << 20)]) == tamis.build(members)


def test_secrets_and_numbers_of_slices():
    members, _ = columns(0)
    secret = bytes(range(16))
    options, hashed = _parts.ready({"secret": secret, "fpr": 0.01}, PARTS, PARTS)
    assert hashed == {"secret": secret}
    drawn, hashed = _parts.ready({"secret": True}, PARTS, PARTS)
    assert hashed["secret"] == drawn["secret"] and len(drawn["secret"]) == 16
    for options in (options, drawn):
        found = slices.split(members, PARTS, secret=options["secret"])[0]
        assert built(options, found, [b""] * PARTS) == tamis.build(members, **options)
    with pytest.raises(tamis.InputError, match="secret_beside"):
        _parts.ready({"secret": secret, "secret_beside": True}, PARTS, PARTS)
    with pytest.raises(tamis.InputError, match="drawn again"):
        slices.split(members, PARTS, secret=True)
    with pytest.raises(tamis.InputError, match="16 of 8 parts"):
        _parts.ready({}, 8, 16)
    _, surveys = plan_of({"shard_bytes": 4096}, members, [])
    plan = slices.plan({"shard_bytes": 4096}, "bytes", slices.merge(surveys), PARTS)
    with pytest.raises(tamis.InputError, match="8 of 4 parts"):
        slices.slice_of_range(plan, 0, 4)
