"""maps, sequences, indexes of sets and filters that change."""

import collections.abc
import copy
import pickle
import threading
import time

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tamis


def test_maps_of_text():
    keys = [f"key {i}" for i in range(5000)]
    values = [f"value {i % 7}" for i in range(5000)]
    map = tamis.map(keys, values, fpr=2**-20)
    for same in (tamis.map(pa.array(keys), pl.Series(values)), tamis.map(dict(zip(keys, values)))):
        assert same == tamis.map(keys, values)
    assert map["key 3"] == "value 3" and len(map) == 5000 and map.value_type == "bytes"
    assert map.get("none") is None and map.get("none", 7) == 7
    with pytest.raises(KeyError):
        map["none"]
    found = map.get_many(pa.array(["key 8", None, "none", "key 2"]))
    assert found.type == pa.large_string() and found.to_pylist() == ["value 1", None, None, "value 2"]
    assert map.get_many(keys).to_pylist() == values
    assert isinstance(map.get_many(pl.Series(keys)), pl.Series)
    assert pickle.loads(pickle.dumps(map)) == map and copy.deepcopy(map) is map
    assert "key 3" in map and "none" not in map and b"key 3" in map
    with pytest.raises(tamis.KeyTypeError):
        3 in map
    # Keys are not stored: a map has positions no more than a dict has.
    for all_of in (iter, list, reversed, dict, lambda map: [*map]):
        with pytest.raises(TypeError):
            all_of(map)
    with pytest.raises(TypeError):
        iter(tamis.map([0, 1, 2], [5, 6, 7]))
    assert not isinstance(map, collections.abc.Iterable)
    assert repr(map).startswith("Map(keys=5000, values=7, fpr=9.54e-7, ")


def test_maps_of_bytes_and_numbers(tmp_path):
    raw = tamis.map(["a", "b"], [b"\xff", b"x"])
    assert raw["a"] == b"\xff" and raw.get_many(["b", "a"]).to_pylist() == [b"x", b"\xff"]
    assert tamis.map(["a", "b"], pd.Series([b"\xff", b"x"], dtype=object)) == raw
    assert tamis.map(["a"], pd.Series([b"x"], dtype=object))["a"] == b"x"
    raw.save(tmp_path / "m")
    with pytest.raises(tamis.InputError, match="not UTF-8"):
        tamis.open(tmp_path / "m")["a"]
    with pytest.raises(tamis.InputError, match="not UTF-8"):
        tamis.open(tmp_path / "m").get_many(["a"])
    assert tamis.open(tmp_path / "m", text=False)["a"] == b"\xff"
    assert pickle.loads(pickle.dumps(raw))["a"] == b"\xff"
    numbers = np.arange(100_000)
    squares = tamis.map(numbers, (numbers * numbers).astype("u8"), path=tmp_path / "s")
    assert squares[300] == 90_000 and squares.value_type == "integer"
    assert (squares.get_many(numbers).to_numpy() == numbers * numbers).all()
    assert squares.get_many([]).to_pylist() == []
    recognised = tamis.map(numbers, numbers, fpr=2**-24)
    assert recognised.get_many(pa.array([5, None, 10**9])).to_pylist() == [5, None, None]
    readers = [
        pa.RecordBatchReader.from_batches(pa.schema({"a": kind}), [pa.record_batch({"a": pa.array(column, kind)})])
        for kind, column in ((pa.string(), ["x", "y"]), (pa.uint64(), [7, 8]))
    ]
    assert tamis.map(*readers)["y"] == 8
    assert len(tamis.map([], [])) == 0 and tamis.map(np.array([], int), []).key_type == "integer"


def test_maps_check_their_keys():
    keys, others = range(1000), range(1000, 51_000)
    pairs = {key: key % 8 for key in keys}
    for options, fpr in (({}, 1 / 256), ({"fpr": 0.1}, 1 / 16), ({"fpr": 1e-9}, 2**-30), ({"unchecked": True}, 1)):
        map = tamis.map(pairs, **options)
        assert map.fpr == fpr and all(map[key] == key % 8 for key in keys)
        found = sum(key in map for key in others)
        assert found <= 50_000 * fpr + 5 * (50_000 * fpr) ** 0.5
        assert (found == 50_000) == (fpr == 1)
    with pytest.raises(KeyError):
        tamis.map(pairs, fpr=1e-9)[7000]
    with pytest.raises(tamis.InputError, match="fpr: not possible with unchecked"):
        tamis.map(pairs, fpr=0.1, unchecked=True)
    with pytest.raises(tamis.BuildError, match="fpr 2: out of range"):
        tamis.map(pairs, fpr=2)


def test_wrong_maps():
    wrong = [
        (["a"], [], "values row 0: none, and there are more keys"),
        (["a"], [1, 2], "values: 2 for 1 keys; expected as many"),
        (["a"], [-1], "values row 0: below zero"),
        (["a"], [1.5], "values row 0: a floating-point number"),
        (["a"], [None], "values row 0: missing"),
        (["a", None], [1, 2], "keys row 1: missing"),
    ]
    for keys, values, text in wrong:
        with pytest.raises(tamis.InputError, match=text):
            tamis.map(keys, values)
    with pytest.raises(tamis.BuildError):
        tamis.map(["a", "a"], [1, 2])
    with pytest.raises(tamis.BuildError, match="not declared"):
        tamis.map(["a"], ["red"], alphabet=["blue"])
    with pytest.raises(tamis.InputError, match="values: missing"):
        tamis.map(["a"])
    with pytest.raises(tamis.KeyTypeError):
        tamis.map(["a"], [1]).get_many([1])


def test_sequences():
    text = list("mississippi" * 100)
    sequence = tamis.sequence(text)
    assert [sequence[i] for i in range(20)] == text[:20] and sequence[-1] == "i" and list(sequence) == text
    assert sequence.get_many(np.arange(1100)).to_pylist() == text
    assert sequence.get_many([5, 10**6, None]).to_pylist() == ["s", None, None]
    assert pickle.loads(pickle.dumps(sequence)) == sequence
    assert tamis.sequence(np.array([5, 6, 5]), kind="ribbon")[1] == 6
    for position in (1100, -1101, 2**62):
        with pytest.raises(IndexError):
            sequence[position]
    with pytest.raises(tamis.KeyTypeError):
        sequence.get_many(["a"])


def test_sets():
    members = {"red": ["ann", "bob"], "blue": ["ann", "eve"], "green": [f"x{i}" for i in range(1000)]}
    index = tamis.sets(members, false_sets=1e-4)
    keys = [key for keys in members.values() for key in keys]
    names = [name for name, keys in members.items() for _ in keys]
    assert tamis.sets(pa.array(keys), pd.Series(names), false_sets=1e-4) == index
    assert index.find("ann") == ["red", "blue"] and index.names == ["red", "blue", "green"] and len(index) == 3
    found = index.find_many(pa.array(["eve", None, "ann", "nobody?"]))
    assert found.to_pylist() == [["blue"], None, ["red", "blue"], []] and found.null_count == 1
    found.validate(full=True)
    assert index.find_many([None, "ann", None]).to_pylist() == [None, ["red", "blue"], None]
    assert index.find_many(pa.nulls(9)).to_pylist() == [None] * 9
    chunks = pa.chunked_array([["ann", None], [None, "bob"]])
    assert index.find_many(chunks).to_pylist() == [["red", "blue"], None, None, ["red"]]
    assert index.find_many(pl.Series(["bob", None])).to_list() == [["red"], None]
    assert index.find_many(["x7"]).to_pylist() == [["green"]] and index.find_many([]).to_pylist() == []
    assert index.find_many(pl.Series(["bob"])).to_list() == [["red"]]
    assert index.tally(keys) == {"red": 3, "blue": 3, "green": 1000}
    assert index.pairs == 1004 and pickle.loads(pickle.dumps(index)) == index
    with pytest.raises(tamis.InputError, match="names row 1: missing"):
        tamis.sets(["a", "b"], ["s", None])
    with pytest.raises(tamis.InputError, match="names: 1 for 0 keys"):
        tamis.sets([], ["s"])


@pytest.mark.parametrize("make", [tamis.Bloom, tamis.Cuckoo, tamis.Quotient])
def test_filters_that_change(make, tmp_path):
    filter = make(5000, fpr=0.001)
    keys = pa.array([f"key {i}" for i in range(4000)])
    filter.insert_many(keys)
    filter.insert("one more")
    assert len(filter) == 4001 and "one more" in filter and filter.contains_many(keys).to_pylist() == [True] * 4000
    assert filter.contains_many([f"other {i}" for i in range(20_000)]).mean() < 0.003
    again = pickle.loads(pickle.dumps(filter))
    other = copy.copy(filter)
    other.insert("only there")
    assert len(again) == 4001 and len(filter) == 4001 and len(other) == 4002
    filter.save(tmp_path / "f")
    assert tamis.open(tmp_path / "f").contains_many(keys).to_pylist() == [True] * 4000
    assert "one more" in make.from_bytes(filter.to_bytes())
    assert repr(filter).startswith(f"{make.__name__}(keys=4001, fpr=0.0")
    with pytest.raises(tamis.KeyTypeError):
        filter.insert(1)
    with pytest.raises(tamis.InputError):
        filter.insert_many(["a", None])
    integers = make(100, key_type="integer", seed=7)
    integers.insert_many(np.arange(50))
    assert integers.contains_many(range(50)).all()
    for options in ({"fpr": 0.0}, {"key_type": "text"}, {"colour": 1}):
        with pytest.raises(tamis.Error):
            make(10, **options)
    if make is not tamis.Bloom:
        assert filter.remove("one more") and len(filter) == 4000


def test_full_and_merged():
    small = tamis.Cuckoo(100)
    with pytest.raises(tamis.ChangeError, match="full"):
        small.insert_many(f"key {i}" for i in range(1000))
    one, two = tamis.Quotient(100), tamis.Quotient(100)
    one.insert("ann")
    two.insert("bob")
    one.merge(two)
    one.merge(one)
    assert one.count("ann") == 2 and one.count("bob") == 2
    two.insert_many(f"key {i}" for i in range(5000))
    assert two.capacity >= 5001


def test_a_query_of_many_keys_lets_others_change_the_filter():
    """A thread that inserts one key waits for some keys of a long query, not for all, and Python runs on."""
    filter = tamis.Quotient(100_000, key_type="integer")
    filter.insert_many(range(60_000))
    keys = np.arange(10_000_000)

    def longest_wait():
        """The longest change during a query, as a share of the query. One that waits for all keys takes most of it."""
        done, longest, start = threading.Event(), 0.0, time.monotonic()

        def query():
            filter.contains_many(keys)
            done.set()

        thread = threading.Thread(target=query)
        thread.start()
        while not done.is_set():
            before = time.monotonic()
            filter.insert(7)
            filter.remove(7)
            longest = max(longest, time.monotonic() - before)
            time.sleep(0.001)
        thread.join()
        return longest / (time.monotonic() - start)

    # A busy machine may stop any thread for a while, but not each time.
    assert any(longest_wait() < 0.5 for _ in range(10))


def test_ngrams():
    texts = ["to be or not to be", None, "", "a", " Or  not\tto\nBE ", "ü to be or", "to be ü or"]
    for words in range(1, 5):
        for lower in (False, True):
            keys, offsets = tamis.ngrams(texts, words, lower=lower)
            rows = np.repeat(range(len(texts)), np.diff(offsets))
            expected = []
            for row, text in enumerate(texts):
                found = ((text or "").lower() if lower else text or "").split()
                expected += [(row, tuple(found[at : at + words])) for at in range(len(found) - words + 1)]
            assert rows.tolist() == [row for row, _ in expected]
            grams = [gram for _, gram in expected]
            assert len(set(grams)) == len(set(keys.tolist())) == len(set(zip(grams, keys.tolist())))
            for column in (pa.array(texts), pl.Series(texts), pd.Series(texts)):
                assert (tamis.ngrams(column, words, lower=lower)[0] == keys).all()
    assert len(tamis.ngrams([], 3)[0]) == 0 and tamis.ngrams([], 3)[1].tolist() == [0]
    assert len(tamis.ngrams(["to be or not to be"], 2**32 - 1)[0]) == 0
    for texts, words in ((["a"], 0), ([1], 1), ([b"\xff\xfe"], 1), (["a"], 10**15), (["a"], 10**30), (["a"], -1)):
        with pytest.raises(tamis.InputError):
            tamis.ngrams(texts, words)
