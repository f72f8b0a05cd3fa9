"""examples in the documentation of every function and class -> they say what they print."""

import dataclasses
import doctest
import importlib
import inspect
from pathlib import Path

import pytest

import tamis
from tamis import _build


def documented():
    for name in ("", *tamis.__all__):
        thing = getattr(tamis, name) if name else tamis
        yield name or "tamis", thing.__doc__
        if inspect.isclass(thing) and not dataclasses.is_dataclass(thing):
            for member, value in vars(thing).items():
                if not member.startswith("_"):
                    yield f"{name}.{member}", value.__doc__


@pytest.mark.parametrize("name, text", list(documented()))
def test_examples(name, text):
    assert text, f"{name} has no documentation"
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    results = doctest.DocTestRunner(verbose=False).run(test)
    assert results.failed == 0


GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guide" / "python.md"


@pytest.mark.parametrize("page", [GUIDE, Path(__file__).resolve().parents[1] / "README.md"], ids=lambda page: page.name)
def test_pages(page):
    blocks = page.read_text().split("```python\n")[1:]
    assert blocks
    for block in blocks:
        exec(block.split("```")[0], {})


@pytest.mark.parametrize("name", ["tamis.slices", pytest.param("tamis.dask", marks=pytest.mark.engine("dask"))])
def test_modules(name):
    results = doctest.testmod(importlib.import_module(name))
    assert results.attempted > 2 and results.failed == 0


def test_options_are_documented():
    for function in (_build.build,):
        for option in list(inspect.signature(function).parameters)[2:]:
            assert option in function.__doc__
