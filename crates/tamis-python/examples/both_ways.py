"""one file, two programs: written in Python and queried by the Rust program, and the other way round.

python both_ways.py
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import tamis


def command(*arguments: str, folder: str) -> str:
    """What the command line prints."""
    call = [sys.executable, "-m", "tamis", *arguments]
    return subprocess.run(call, cwd=folder, check=True, capture_output=True, text=True).stdout


def main() -> None:
    hosts = [f"host-{number}.example" for number in range(10_000)]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "hosts").write_text("\n".join(hosts))
        filter = tamis.build(hosts, fpr=0.001, path=Path(folder) / "python.tamis")
        print("the command line matches", command("query", "python.tamis", "hosts", "-c", folder=folder).strip())
        command("build", "hosts", "--fpr", "0.001", "-o", "rust.tamis", "-q", folder=folder)
        again = tamis.open(Path(folder) / "rust.tamis")
        assert again == filter and again.contains_many(hosts).all()
        print("both files are", again.identity)


if __name__ == "__main__":
    main()
