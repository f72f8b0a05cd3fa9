"""what the tests share: a folder, and engines that may be missing where TAMIS_ENGINES does not demand them."""

import importlib
import os

import pytest


def pytest_runtest_setup(item):
    for mark in item.iter_markers("engine"):
        for name in mark.args:
            try:
                importlib.import_module(name)
            except ImportError:
                pytest.skip(f"no {name}")
            if name == "pyspark" and not os.environ.get("TAMIS_SPARK"):
                pytest.skip("TAMIS_SPARK is not set: no JRE, or no Spark")


def pytest_configure(config):
    config.addinivalue_line("markers", "engine(*names): needs these packages")
