"""the examples -> they end well."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


# Some compare tamis with other packages.
NEEDS = {"decontaminate": pytest.mark.engine("rbloom")}


@pytest.mark.parametrize(
    "name", [pytest.param(path.stem, marks=NEEDS.get(path.stem, ())) for path in sorted(EXAMPLES.glob("*.py"))]
)
def test_example(name):
    done = subprocess.run([sys.executable, EXAMPLES / f"{name}.py"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    print(done.stdout)
