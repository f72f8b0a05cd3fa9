"""progress of a build -> a bar where tqdm is present and someone watches."""

from __future__ import annotations

import sys
from typing import Any, Callable

Callback = Callable[[str, int, "int | None"], object]
STAGES = {"read": "keys", "excluded": "excluded keys", "built": "shards"}


class Bar:
    """A bar of tqdm for each stage of a build."""

    def __init__(self, tqdm: Any) -> None:
        self._tqdm = tqdm
        self._bar: Any = None
        self._stage = ""

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        if stage != self._stage:
            self.close()
            self._bar = self._tqdm(total=total, desc=STAGES[stage], leave=False)
            self._stage = stage
        self._bar.total = total
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def callback(progress: bool | Callback | None) -> Callback | None:
    """What a build calls: nothing for ``None`` unless tqdm is there and standard error is a terminal."""
    if callable(progress):
        return progress
    if progress is False or (progress is None and not sys.stderr.isatty()):
        return None
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return Bar(tqdm)
