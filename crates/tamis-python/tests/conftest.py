"""what the tests share: engines that may be missing, unless TAMIS_ENGINES demands them.

TAMIS_ENGINES lists modules: a test of one of them fails if it cannot be imported, and tests of others are skipped.
Without it the tests of whatever is installed run. `.ci/python` demands all that it could install.
"""

import importlib
import os
import shutil

import pytest

DEMANDED = os.environ["TAMIS_ENGINES"].split() if "TAMIS_ENGINES" in os.environ else None


def pytest_runtest_setup(item):
    for mark in item.iter_markers("engine"):
        for name in mark.args:
            if DEMANDED is not None:
                if name not in DEMANDED:
                    pytest.skip(f"{name} is not in TAMIS_ENGINES")
                importlib.import_module(name)
                continue
            try:
                importlib.import_module(name)
            except ImportError:
                pytest.skip(f"no {name}")
            if name == "pyspark" and not shutil.which("java"):
                pytest.skip("no Java for pyspark")


def pytest_configure(config):
    config.addinivalue_line("markers", "engine(*names): needs these packages")
