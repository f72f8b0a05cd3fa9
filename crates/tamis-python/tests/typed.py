"""a program with types -> mypy has nothing to say, and finds what is wrong."""

from typing_extensions import assert_type

import tamis

filter = tamis.build(["ann"], exclude=["bob"], fpr=0.001, threads=2)
assert_type(filter, tamis.Filter)
assert_type("ann" in filter, bool)
assert_type(filter.to_bytes(), bytes)
assert_type(tamis.map({"ann": 1}).get("ann", 7), str | bytes | int)
assert_type(tamis.sets({"red": ["ann"]}).find("ann"), list[str])
assert_type(tamis.plan([1]).chosen.bits_per_key, float | None)
assert_type("ann" in tamis.map({"ann": 1}), bool)
list(tamis.map({"ann": 1}))  # type: ignore[call-overload]
tamis.Bloom(10).insert(1.5)  # type: ignore[arg-type]
tamis.build(["ann"], fpr="low")  # type: ignore[arg-type]
tamis.build(["ann"], fp=0.1)  # type: ignore[call-arg]
