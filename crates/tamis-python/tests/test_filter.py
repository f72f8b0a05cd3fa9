"""builds, files, pickles, threads, processes."""

import copy
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pyarrow as pa
import pytest

import tamis
from tamis import _tamis


def test_goals_and_options():
    keys, excluded = range(20_000), range(20_000, 200_000)
    filter = tamis.build(keys, exclude=excluded, fpr=0.001)
    assert filter.contains_many(keys).all() and not filter.contains_many(excluded).any()
    share = filter.contains_many(np.arange(10**6, 2 * 10**6)).mean()
    deviation = (filter.fpr * (1 - filter.fpr) / 10**6) ** 0.5
    assert filter.fpr <= 0.001 and abs(share - filter.fpr) < 5 * deviation
    assert tamis.build(keys, exclude=excluded, exact=True).nbytes < filter.nbytes
    assert tamis.build(keys, exclude=excluded, excluded_fpr=0.1).nbytes < filter.nbytes
    assert tamis.build(keys, bits_per_key=10.0).nbytes * 8 <= 10 * 20_000
    assert tamis.build(keys, seed=7) != tamis.build(keys)
    assert tamis.build(keys, threads=1) == tamis.build(keys, threads=2, memory=1 << 20)
    assert tamis.build(keys, metadata="of today").metadata == b"of today"
    assert tamis.build(keys, kind="fuse").layers[0]["structure"] == "binary fuse"
    weights = {key: 1e6 / (key - 19_999) for key in range(20_000, 30_000)}
    covered = tamis.build(keys, workload=weights, bits_per_key=10.0)
    assert 20_000 not in covered
    mixed = {key: int(weight) if key % 3 else weight + 0.5 for key, weight in weights.items()}
    assert 20_000 not in tamis.build(keys, workload=mixed, bits_per_key=10.0)
    columns = (np.array(list(weights)), np.array(list(weights.values())))
    assert tamis.build(keys, workload=columns, bits_per_key=10.0) == covered


def test_wrong_options():
    wrong = [
        ({"fpr": 2.0}, tamis.BuildError, "fpr"),
        ({"kind": "blom"}, tamis.InputError, 'kind "blom": unknown; expected auto'),
        ({"exact": True}, tamis.BuildError, "exclude"),
        ({"fpr": 0.1, "bits_per_key": 3.0}, tamis.BuildError, "fpr"),
        ({"seed": 1, "secret": b"0" * 16}, tamis.InputError, "seed"),
        ({"secret": "short"}, tamis.InputError, "secret"),
        ({"exclude": ["a"]}, tamis.BuildError, "exclude"),
        ({"workload": 7}, tamis.InputError, "workload"),
        ({"workload": (["x", "y"], [1.0])}, tamis.InputError, "workload"),
        ({"workload": {"x": -1.0}}, tamis.BuildError, "weight"),
        ({"threads": 0}, tamis.BuildError, "threads"),
        ({"seed": -1}, tamis.InputError, "seed -1: out of range"),
        ({"memory": 2**64}, tamis.InputError, "memory 18446744073709551616: out of range"),
    ]
    for options, error, text in wrong:
        with pytest.raises(error, match=text) as caught:
            tamis.build(["a", "b"], **options)
        assert isinstance(caught.value, tamis.Error) and isinstance(caught.value, ValueError)
    with pytest.raises(TypeError):
        tamis.build(["a"], fp=0.1)
    with pytest.raises(tamis.InputError, match="fp: not an option"):
        tamis.plan(["a"], fp=0.1)


def test_secrets(tmp_path):
    for secret in (b"0123456789abcdef", "30313233343536373839616263646566"):
        filter = tamis.build(["ann"], secret=secret, secret_beside=True, path=tmp_path / "s.tamis")
        assert "ann" in filter
        with pytest.raises(tamis.FormatError, match="secret"):
            tamis.open(tmp_path / "s.tamis")
        with pytest.raises(tamis.FormatError, match="wrong secret"):
            tamis.open(tmp_path / "s.tamis", secret=b"1" * 16)
        assert "ann" in tamis.open(tmp_path / "s.tamis", secret=secret)
        with pytest.raises(tamis.InputError, match="the secret is not in the file"):
            pickle.dumps(filter)
    assert tamis.build(["ann"], secret=True) != tamis.build(["ann"], secret=True)
    for call in (tamis.build, tamis.plan):
        with pytest.raises(tamis.InputError, match="secret_beside: given with a new secret; expected 16 bytes or 32"):
            call(["ann"], secret=True, secret_beside=True)
        with pytest.raises(tamis.BuildError, match="secret"):
            call(["ann"], secret_beside=True)


@pytest.mark.skipif(os.name != "posix", reason="no permissions")
def test_a_saved_secret_is_for_its_owner(tmp_path):
    secret = b"0123456789abcdef"
    private = [
        tamis.build(["ann"], secret=secret),
        tamis.map({"a": 1}, secret=secret),
        tamis.sets({"s": ["a"]}, secret=secret),
        *(make(10, secret=secret) for make in (tamis.Bloom, tamis.Cuckoo, tamis.Quotient)),
    ]
    public = [tamis.build(["ann"]), tamis.build(["ann"], secret=secret, secret_beside=True), tamis.Bloom(10)]
    path, link = tmp_path / "real", tmp_path / "link"
    link.symlink_to("real")
    mask = os.umask(0o022)
    try:
        for made, expected in [*((made, 0o600) for made in private), *((made, 0o644) for made in public)]:
            for target in (path, link):
                path.unlink(missing_ok=True)
                made.save(target)
                assert path.stat().st_mode & 0o777 == expected and path.read_bytes() == bytes(made)
            # What could read the file before can read it after, but a secret.
            path.chmod(0o640)
            made.save(link)
            assert path.stat().st_mode & 0o777 == (0o600 if expected == 0o600 else 0o640)
            assert link.is_symlink() and sorted(os.listdir(tmp_path)) == ["link", "real"]
    finally:
        os.umask(mask)
    with pytest.raises(tamis.FileError):
        private[0].save(tmp_path)


@pytest.mark.skipif(not os.path.exists("/dev/fd"), reason="no /dev/fd")
def test_saved_into_a_pipe():
    filter = tamis.build(["ann"])
    reading, writing = os.pipe()
    filter.save(f"/dev/fd/{writing}")
    os.close(writing)
    with open(reading, "rb") as pipe:
        assert pipe.read() == bytes(filter)


def test_plan():
    plan = tamis.plan(range(1000), exclude=range(1000, 9000), fpr=0.01)
    assert plan.chosen.name == "steered" and plan.keys == 1000 and plan.excluded == 8000
    assert any(candidate.why_not for candidate in plan.candidates)
    built = tamis.build(range(1000), exclude=range(1000, 9000), fpr=0.01)
    assert abs(plan.chosen.nbytes - built.nbytes) < 0.1 * built.nbytes


def test_digests():
    digests = tamis.digests(["ann", "bob"], seed=3)
    assert digests == tamis.digests(pa.array(["ann", "bob"]), seed=3) != tamis.digests(["ann", "bob"])
    assert digests != tamis.digests(["bob", "ann"], seed=3) and digests != "digests"
    filter = tamis.build(["ann", "bob"], seed=3)
    assert tamis.build(digests) == filter and filter.contains_many(digests).all()
    assert filter.digest("ann").to_bytes(16, "little") == digests.to_bytes()[:16]
    excluded = tamis.digests(["eve"], seed=3)
    assert tamis.build(digests, exclude=excluded) == tamis.build(["ann", "bob"], exclude=["eve"], seed=3)
    with pytest.raises(tamis.InputError, match="of another hasher"):
        tamis.build(["ann"]).contains_many(digests)
    numbers = tamis.digests([7, 8], seed=3)
    assert tamis.build(numbers, exclude=tamis.digests([9], seed=3)) == tamis.build([7, 8], exclude=[9], seed=3)
    for make in (tamis.build, tamis.plan):
        wrong = [
            ({"exclude": ["eve"]}, tamis.InputError, "exclude: keys, and members are digests; expected digests"),
            ({"exclude": tamis.digests(["eve"])}, tamis.InputError, "exclude: of another hasher"),
            ({"exclude": tamis.digests(["eve"], secret=b"0" * 16)}, tamis.InputError, "exclude: of another hasher"),
            ({"exclude": numbers}, tamis.KeyTypeError, "exclude: of key type integer; expected bytes"),
            ({"workload": {"eve": 1.0}}, tamis.InputError, "workload: given with digests"),
            ({"seed": 3}, tamis.InputError, "seed: given with digests"),
            ({"seed": 0}, tamis.InputError, "seed: given with digests"),
            ({"secret": b"0" * 16}, tamis.InputError, "secret: given with digests"),
        ]
        for options, error, text in wrong:
            with pytest.raises(error, match=text):
                make(digests, **options)
        with pytest.raises(tamis.InputError, match="exclude: digests, and members are keys; expected keys"):
            make(["ann"], exclude=excluded, seed=3)
    with pytest.raises(tamis.KeyTypeError, match="digests: of key type bytes; expected integer"):
        tamis.build([1], seed=3).contains_many(digests)
    with pytest.raises(tamis.InputError, match="partition: given with digests"):
        filter.contains_many(digests, partition="a")


def test_digests_are_values():
    secret = b"0123456789abcdef"
    for digests in (
        tamis.digests(["ann", "bob"], seed=2**64 - 1),
        tamis.digests([1, -1], secret=secret),
        tamis.digests([]),
    ):
        for version in range(pickle.HIGHEST_PROTOCOL + 1):
            again = pickle.loads(pickle.dumps(digests, version))
            assert again == digests and hash(again) == hash(digests) and tamis.build(again) == tamis.build(digests)
        assert copy.copy(digests) is digests and copy.deepcopy([digests])[0] is digests
        assert len({digests, again}) == 1 and weakref.ref(digests)() is digests
    # The secret comes along, as in the file of a filter.
    assert secret[:8][::-1] in pickle.dumps(tamis.digests([1], secret=secret))
    call, (version, form, data, text) = tamis.digests(["ann"]).__reduce__()
    for wrong in (b"", data[:-1], data[:17], data + b"x", b"\x02" + data[1:], data[:1] + b"\x02" + data[2:]):
        with pytest.raises(tamis.InputError, match="pickle of digests: damaged"):
            call(version, form, wrong, text)
    with pytest.raises(tamis.FormatError, match="pickle 2 is not supported"):
        call(2, form, data, text)


def test_copies_and_pickles():
    filter = tamis.build(["ann", "bob"], exclude=["eve"])
    for version in range(pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(filter, version))
        assert again == filter and "ann" in again and hash(again) == hash(filter)
    assert copy.copy(filter) is filter and copy.deepcopy([filter])[0] is filter
    assert filter != tamis.build(["ann"]) and filter != "filter" and len({filter, again}) == 1
    assert weakref.ref(filter)() is filter
    call, (version, form, data, text) = filter.__reduce__()
    assert call(version, form, data, text) == filter
    with pytest.raises(tamis.FormatError, match="pickle 0 is not supported"):
        call(0, form, data, text)
    with pytest.raises(tamis.FormatError):
        call(version, form, data[:-1], text)
    with pytest.raises(tamis.InputError):
        call(version, "form", data, text)


def test_bytes():
    filter = tamis.build(range(1000))
    data = filter.to_bytes()
    assert bytes(filter) == data and filter.nbytes == len(data)
    if sys.version_info >= (3, 11):
        view = memoryview(filter)
        assert view.readonly and view == data
        del filter
        assert bytes(view) == data
    for given in (data, bytearray(data), memoryview(data), np.frombuffer(data, np.uint8)):
        assert 7 in tamis.Filter.from_bytes(given)
    for damaged in (b"", data[:-1], data[:50], b"x" + data[1:], bytes([*data[:40], data[40] ^ 1, *data[41:]])):
        with pytest.raises(tamis.FormatError):
            tamis.Filter.from_bytes(damaged)
    with pytest.raises(tamis.FormatError, match="holds a filter; expected a map"):
        tamis.Map.from_bytes(data)


def test_files(tmp_path):
    path = tmp_path / "a.tamis"
    filter = tamis.build(range(1000), path=path)
    assert tamis.open(path) == filter == tamis.open(str(path), mmap=False) == tamis.build(range(1000))
    # It is replaced by renaming: who mapped the old one keeps it.
    tamis.build(range(5000), path=path)
    assert len(filter) == 1000 and filter.contains_many(range(1000)).all()
    assert len(tamis.open(path)) == 5000
    filter.save(path)
    assert tamis.open(path) == filter and os.listdir(tmp_path) == ["a.tamis"]
    with pytest.raises(tamis.MissingFileError) as caught:
        tamis.open(tmp_path / "none")
    assert isinstance(caught.value, FileNotFoundError) and caught.value.filename == str(tmp_path / "none")
    for call in (lambda: filter.save(tmp_path / "no" / "a"), lambda: tamis.build([1], path=tmp_path / "no" / "a")):
        with pytest.raises(tamis.FileError):
            call()
    damaged = bytearray(path.read_bytes())
    damaged[60] ^= 1
    (tmp_path / "d.tamis").write_bytes(damaged)
    with pytest.raises(tamis.FormatError, match="d.tamis: damaged"):
        tamis.open(tmp_path / "d.tamis")
    # A build that fails leaves what was there.
    with pytest.raises(tamis.BuildError):
        tamis.build([1], exclude=[1], path=path)
    assert tamis.open(path) == filter and sorted(os.listdir(tmp_path)) == ["a.tamis", "d.tamis"]


def test_open_finds_the_form(tmp_path):
    built = [tamis.build([1]), tamis.map({"a": 1}), tamis.sequence([1, 2]), tamis.sets({"s": ["a"]})]
    for made in built:
        made.save(tmp_path / "x")
        again = tamis.open(tmp_path / "x")
        assert type(again) is type(made) and again == made


def test_repr():
    filter = tamis.build(range(1000), exclude=[5000], fpr=0.01)
    assert repr(filter).startswith("Filter(keys=1000, excluded=1, fpr=0.00")
    assert "key_type='integer'" in repr(filter)


def test_progress():
    seen = []
    tamis.build(range(300_000), progress=lambda *step: seen.append(step))
    assert seen and seen[-1][0] == "built" and seen[-1][1] == seen[-1][2]

    def fails(stage, done, total):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        tamis.build(range(300_000), progress=fails)


@pytest.mark.engine("tqdm")
def test_progress_with_tqdm(capsys):
    tamis.build(range(300_000), progress=True)
    assert "shards" in capsys.readouterr().err
    tamis.build(range(300_000))
    assert capsys.readouterr().err == ""


def test_threads():
    keys = pa.array([f"key {i}" for i in range(50_000)])
    filter = tamis.build(keys)
    seen = tamis.Bloom(200_000)
    wrong = []

    def work(number):
        for _ in range(5):
            if not pa.compute.all(filter.contains_many(keys)).as_py():
                wrong.append(number)
            seen.insert_many(keys)
            seen.insert(f"of {number}")
            tamis.build(keys)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not wrong and all(seen.contains_many(keys)) and all(f"of {i}" in seen for i in range(4))


def test_python_runs_on_during_a_build():
    steps = 0
    done = threading.Event()
    keys = np.random.default_rng(1).integers(0, 2**63, 3_000_000)

    def build():
        tamis.build(keys, threads=1)
        done.set()

    thread = threading.Thread(target=build)
    thread.start()
    while not done.is_set():
        steps += 1
        time.sleep(0.001)
    thread.join()
    assert steps > 20


def test_an_interrupt_ends_a_build():
    program = """
import numpy, tamis
keys = numpy.random.default_rng(1).integers(0, 2**63, 20_000_000)
print("ready", flush=True)
try:
    tamis.build(keys, threads=1)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    time.sleep(0.3)
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=60)[0] == "interrupted\n"


def answers(filter):
    return bool(filter.contains_many(range(1000)).all()), filter.identity


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_processes(method, tmp_path):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} here")
    filter = tamis.build(range(1000), path=tmp_path / "a.tamis")
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map(answers, [filter] * 4) == [(True, filter.identity)] * 4


SHARED = """
import sys, tamis
filter = tamis.open(sys.argv[1])
assert filter.contains_many(range(0, 4_000_000, 5)).all()
print("mapped", flush=True)
sys.stdin.readline()
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/smaps"), reason="no /proc/self/smaps")
def test_processes_share_one_map(tmp_path):
    filter = tamis.build(range(4_000_000), path=tmp_path / "a.tamis", fpr=1e-6)
    command = [sys.executable, "-c", SHARED, str(tmp_path / "a.tamis")]
    children = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    try:
        for child in children:
            assert child.stdout.readline() == "mapped\n"
        for child in children:
            of_file = False
            private = 0
            for line in open(f"/proc/{child.pid}/smaps"):
                if "-" in line.split(" ")[0]:
                    of_file = "a.tamis" in line
                elif of_file and line.startswith(("Private_Clean", "Private_Dirty")):
                    private += int(line.split()[1]) * 1024
            assert private < filter.nbytes / 10
    finally:
        for child in children:
            child.communicate("\n")


def test_versions_of_python():
    assert _tamis.__name__ == "tamis._tamis" and tamis.Filter.__module__ == "tamis"
