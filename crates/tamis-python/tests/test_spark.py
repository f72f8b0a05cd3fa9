"""Spark with two executors of their own -> the bytes of one build, also if one of them dies."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.engine("pyspark")
COUNT, OTHERS = 60_000, 40_000
OPTIONS = {"fpr": 0.003, "shard_bytes": 4096}


@pytest.fixture(scope="module")
def spark():
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.driver.host", "127.0.0.1")
    builder = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "4").config("spark.executor.memory", "1024m")
    # An executor that dies takes its blocks along; they are computed again.
    session = builder.config("spark.task.maxFailures", "8").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


def rows(spark, word, count, partitions=4):
    from pyspark.sql import functions

    numbers = spark.range(0, count, 1, partitions)
    return numbers.select(functions.concat(functions.lit(word + " "), numbers.id.cast("string")).alias("key"))


def keys(word, count):
    return [f"{word} {i}" for i in range(count)]


def test_one_build(spark):
    import tamis.spark

    members, others = rows(spark, "member", COUNT), rows(spark, "other", OTHERS)
    made = tamis.spark.build(members, "key", exclude=(others, "key"), parts=8, **OPTIONS)
    assert made == tamis.build(keys("member", COUNT), exclude=keys("other", OTHERS), **OPTIONS)
    assert tamis.spark.build(spark.range(5000), "id", parts=4, seed=3) == tamis.build(range(5000), seed=3)


def test_a_folder_and_a_secret(spark, tmp_path):
    import tamis.spark

    table = rows(spark, "member", COUNT)
    made = tamis.spark.build(table, "key", parts=8, folder=tmp_path / "slices", secret=True, **OPTIONS)
    assert made.slices == 8 and made == tamis.open(tmp_path / "slices")
    assert made.contains_many(keys("member", COUNT)).all()
    found = table.withColumn("hit", tamis.spark.contains(made, table.key)).groupBy("hit").count().collect()
    assert {row.hit: row["count"] for row in found} == {True: COUNT}


def test_answers(spark):
    import tamis.spark

    filter = tamis.build(keys("member", 1000), fpr=1e-9)
    table = rows(spark, "member", 1100).union(spark.createDataFrame([(None,)], "key string"))
    found = table.withColumn("hit", tamis.spark.contains(filter, table.key)).groupBy("hit").count().collect()
    assert {row.hit: row["count"] for row in found} == {True: 1000, False: 100, None: 1}


def test_wrong_keys(spark):
    import tamis.spark

    with pytest.raises(Exception, match="missing"):
        tamis.spark.build(spark.createDataFrame([("a",), (None,)], "key string"), "key", parts=2)
    with pytest.raises(tamis.KeyTypeError):
        tamis.spark.build(rows(spark, "member", 10), "key", exclude=(spark.range(5), "id"), parts=2)


def executors():
    """The processes that run tasks, children of this one's children."""
    table = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
            table.append((int(process.name), parent, (process / "cmdline").read_bytes()))
        except OSError:
            pass  # It has ended.
    ours = {os.getpid()}
    while more := {pid for pid, parent, _ in table if parent in ours} - ours:
        ours |= more
    return [pid for pid, _, command in table if pid in ours and b"CoarseGrainedExecutorBackend" in command]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc")
def test_an_executor_dies(spark):
    import tamis.spark

    members = rows(spark, "member", 400_000, 16)
    made = []
    build = threading.Thread(target=lambda: made.append(tamis.spark.build(members, "key", parts=16, **OPTIONS)))
    build.start()
    time.sleep(2.0)
    found = executors()
    assert found
    os.kill(found[0], signal.SIGKILL)
    build.join(timeout=240)
    assert not build.is_alive()
    assert made == [tamis.build(keys("member", 400_000), **OPTIONS)]
