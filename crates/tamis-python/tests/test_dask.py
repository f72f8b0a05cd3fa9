"""Dask with three processes -> the bytes of one build, also if a worker dies."""

import os
import signal
import threading
import time

import numpy as np
import pandas as pd
import pytest

pytestmark = pytest.mark.engine("dask", "distributed")
MEMBERS = [f"member {i}" for i in range(60_000)]
OTHERS = [f"other {i}" for i in range(40_000)]
OPTIONS = {"fpr": 0.003, "shard_bytes": 4096}


def frame(keys, partitions=6):
    import dask.dataframe

    return dask.dataframe.from_pandas(pd.DataFrame({"key": keys}), npartitions=partitions)


@pytest.fixture(scope="module")
def client():
    from distributed import Client, LocalCluster

    options = {
        "n_workers": 3,
        "threads_per_worker": 1,
        "processes": True,
        "host": "127.0.0.1",
        "dashboard_address": None,
    }
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        yield client


def test_one_build(client):
    import tamis.dask

    made = tamis.dask.build(frame(MEMBERS), "key", exclude=(frame(OTHERS), "key"), parts=8, **OPTIONS)
    assert made == tamis.build(MEMBERS, exclude=OTHERS, **OPTIONS)
    series = frame(np.arange(50_000))["key"]
    assert tamis.dask.build(series, parts=4, seed=3) == tamis.build(np.arange(50_000), seed=3)


def test_a_folder(client, tmp_path):
    import tamis.dask

    folder = tmp_path / "slices"
    options = {"exclude": (frame(OTHERS), "key"), "parts": 8, "memory": 64 << 20, **OPTIONS}
    made = tamis.dask.build(frame(MEMBERS), "key", folder=folder, **options)
    assert made.slices == 8 and made == tamis.open(folder)
    # Digests are gone.
    assert len(list(folder.iterdir())) == 9
    one = tamis.build(MEMBERS, exclude=OTHERS, **OPTIONS)
    paths = [folder / tamis.slices.file_name(number) for number in range(8)]
    assert tamis.slices.join_to(tmp_path / "joined", paths) == one.nbytes
    assert tamis.open(tmp_path / "joined") == one
    rows = frame([*MEMBERS[:100], "none of them"])
    assert tamis.dask.contains(made, rows["key"]).compute().tolist() == [True] * 100 + [False]


def test_a_secret(client):
    import tamis.dask

    secret = bytes(range(16))
    made = tamis.dask.build(frame(MEMBERS), "key", parts=4, secret=secret)
    assert made == tamis.build(MEMBERS, secret=secret)
    drawn = tamis.dask.build(frame(MEMBERS), "key", parts=4, secret=True)
    assert drawn != made and drawn.contains_many(MEMBERS).all()


def test_answers(client):
    import tamis.dask

    filter = tamis.build(MEMBERS)
    rows = frame([*MEMBERS[:100], None, "none of them"])
    rows["hit"] = tamis.dask.contains(filter, rows["key"])
    assert rows["hit"].compute().tolist() == [True] * 100 + [False] * 2


def test_wrong_keys(client):
    import tamis.dask

    with pytest.raises(tamis.InputError, match="missing"):
        tamis.dask.build(frame(["a", None]), "key", parts=2)
    with pytest.raises(tamis.KeyTypeError):
        tamis.dask.build(frame(["a", "b"]), "key", exclude=(frame([1, 2]), "key"), parts=2)


def test_a_worker_dies(client):
    import tamis.dask

    members = [f"member {i}" for i in range(400_000)]
    first = next(iter(client.run(os.getpid).values()))
    made = []
    build = threading.Thread(
        target=lambda: made.append(tamis.dask.build(frame(members, 24), "key", parts=16, **OPTIONS))
    )
    build.start()
    time.sleep(1.0)
    os.kill(first, signal.SIGKILL)
    build.join(timeout=240)
    assert not build.is_alive()
    assert made == [tamis.build(members, **OPTIONS)]
