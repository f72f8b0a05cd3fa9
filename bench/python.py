"""keys in NumPy, Arrow and lists -> nanoseconds per key and memory: the Python package, Rust, and other filters.

    python bench/python.py [--n 1000000] [--rust PATH]

The Rust half is the example `rust_side` of crates/tamis-python, built as the wheel is:
`cargo build --profile quick --example rust_side`. Libraries that are not installed are left out.

Memory is that of a process of its own for each row: what its keys hold, and the peak of the build beyond that.
"""

import argparse
import json
import subprocess
import sys
import time

FPR = 0.01


def quickest(run, rounds=15):
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


def columns(n):
    import numpy
    import pyarrow

    numbers = numpy.arange(n, dtype=numpy.uint64) * numpy.uint64(0x9E3779B97F4A7C15)
    texts = [f"host-{number}.example" for number in range(n)]
    return numbers, texts, pyarrow.array(texts)


def loop(keys, filter):
    for key in keys:
        key in filter


def ours(n):
    import tamis

    numbers, texts, column = columns(n)
    rows = {}
    rows["build-u64", "tamis, NumPy"] = quickest(lambda: tamis.build(numbers, threads=1, fpr=FPR))
    rows["build-text", "tamis, Arrow"] = quickest(lambda: tamis.build(column, threads=1, fpr=FPR))
    rows["build-text", "tamis, list"] = quickest(lambda: tamis.build(texts, threads=1, fpr=FPR))
    by_number, by_text = tamis.build(numbers), tamis.build(column)
    rows["many-u64", "tamis, NumPy"] = quickest(lambda: by_number.contains_many(numbers))
    rows["many-text", "tamis, Arrow"] = quickest(lambda: by_text.contains_many(column))
    rows["many-text", "tamis, list"] = quickest(lambda: by_text.contains_many(texts))
    rows["one-text", "tamis"] = quickest(lambda: loop(texts, by_text))
    return rows


def others(n):
    _, texts, _ = columns(n)
    rows = {}
    rows["build-text", "set"] = quickest(lambda: set(texts))
    rows["one-text", "set"] = quickest(lambda: loop(texts, members)) if (members := set(texts)) else 0
    try:
        from rbloom import Bloom

        def build():
            bloom = Bloom(n, FPR)
            bloom.update(texts)
            return bloom

        rows["build-text", "rbloom"] = quickest(build)
        bloom = build()
        rows["one-text", "rbloom"] = quickest(lambda: loop(texts, bloom))
    except ImportError:
        pass
    few = texts[:20_000]
    try:
        from pybloom_live import BloomFilter

        def build():
            bloom = BloomFilter(len(few), FPR)
            for key in few:
                bloom.add(key)
            return bloom

        rows["build-text", "pybloom-live"] = quickest(build) * n / len(few)
        bloom = build()
        rows["one-text", "pybloom-live"] = quickest(lambda: loop(few, bloom)) * n / len(few)
    except ImportError:
        pass
    try:
        from probables import BloomFilter

        def build():
            bloom = BloomFilter(est_elements=len(few), false_positive_rate=FPR)
            for key in few:
                bloom.add(key)
            return bloom

        rows["build-text", "pyprobables"] = quickest(build) * n / len(few)
        bloom = build()
        rows["one-text", "pyprobables"] = quickest(lambda: loop(few, bloom)) * n / len(few)
    except ImportError:
        pass
    return rows


# What makes the keys of a measurement of memory, and what is built of them.
NUMBERS = "import numpy\nkeys = numpy.arange(N, dtype='u8')\nkeys *= numpy.uint64(0x9E3779B97F4A7C15)"
TEXTS = "keys = [f'host-{number}.example' for number in range(N)]"
ARROW = """import numpy, pyarrow, pyarrow.compute
keys = pyarrow.array(numpy.arange(N)).cast('string')
keys = pyarrow.compute.binary_join_element_wise('host-', keys, '.example', '')
pyarrow.default_memory_pool().release_unused()"""
MEMORY = {
    "tamis, NumPy": (f"import tamis\n{NUMBERS}", "made = tamis.build(keys, threads=2)"),
    "tamis, Arrow": (f"import tamis\n{ARROW}", "made = tamis.build(keys, threads=2)"),
    "tamis, list": (f"import tamis\n{TEXTS}", "made = tamis.build(keys, threads=2)"),
    "rbloom, list": (f"from rbloom import Bloom\n{TEXTS}", "made = Bloom(N, 0.01)\nmade.update(keys)"),
    "set of a list": (TEXTS, "made = set(keys)"),
}

# Memory of files that are mapped, such as the programs themselves, is no memory of keys.
HELD = """
import ctypes, gc
def held():
    return sum(int(l.split()[1]) for l in open("/proc/self/status") if l.startswith(("RssAnon", "RssShmem"))) * 1024
def peak():
    fields = {l.split()[0]: int(l.split()[1]) for l in open("/proc/self/status") if l.startswith(("VmHWM", "RssFile"))}
    return (fields["VmHWM:"] - fields["RssFile:"]) * 1024
"""


def memory(n):
    """Prints what a process holds for the keys, and at most beyond that while it builds.

    The peak is set back to what is held when the keys are there (Linux alone can do that), so that neither imports nor
    what made the keys counts. What was freed goes back to the system before, or a build could use it uncounted.
    """
    for name, (keys, build) in MEMORY.items():
        imports = "\n".join(line for line in keys.split("\n") if line.startswith(("import", "from")))
        code = f"""N = {n}
{HELD}
{imports}
gc.disable()
start = held()
{keys}
ctypes.CDLL(None).malloc_trim(0)
there = held()
open("/proc/self/clear_refs", "w").write("5")
{build}
print(there - start, peak() - there)"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        if done.returncode != 0:
            print(f"memory      {name:<16} not run: {done.stderr.strip().splitlines()[-1]}")
            continue
        held, more = (int(number) / n for number in done.stdout.split())
        print(f"memory      {name:<16} {held:8.1f} bytes per key for the keys, and at most {more:6.1f} to build")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--n", type=int, default=1_000_000)
    parser.add_argument("--memory", type=int, default=10_000_000, help="keys of the measurements of memory")
    parser.add_argument("--rust", help="the program rust_side")
    parser.add_argument("--part", choices=["ours", "others"], help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.part:
        rows = ours(given.n) if given.part == "ours" else others(given.n)
        print(json.dumps([[*key, 1e9 * seconds / given.n] for key, seconds in rows.items()]))
        return
    rows = []
    if given.rust:
        lines = subprocess.run([given.rust, str(given.n)], capture_output=True, text=True, check=True).stdout.split(
            "\n"
        )
        rows += [
            [name, "Rust", float(time)] for name, time in (line.split() for line in lines if line) if name != "peak"
        ]
    for part in ("ours", "others"):
        command = [sys.executable, __file__, "--part", part, "--n", str(given.n)]
        rows += json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    for name, who, nanoseconds in sorted(rows, key=lambda row: row[0]):
        print(f"{name:<11} {who:<16} {nanoseconds:8.1f} ns per key")
    memory(given.memory)
    if given.rust:
        lines = subprocess.run([given.rust, str(given.memory), "memory"], capture_output=True, text=True, check=True)
        more = int(lines.stdout.split()[-1]) / given.memory - 8
        print(
            f"memory      {'Rust, a vector':<16} {8:8.1f} bytes per key for the keys, and at most {more:6.1f} to build"
        )


if __name__ == "__main__":
    main()
