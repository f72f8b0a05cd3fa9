"""designs side by side -> ``Plan``: what a build would make, and why."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Candidate:
    """One design for the keys and the goal; ``why_not`` is set if it cannot reach the goal."""

    name: str
    chosen: bool
    nbytes: int | None = None
    bits_per_key: float | None = None
    lower_bound: float | None = None
    fpr: float | None = None
    excluded_fpr: float | None = None
    workload_fpr: float | None = None
    layers: tuple[str, ...] = ()
    why_not: str | None = None


@dataclass(frozen=True)
class Plan:
    """All designs, and the reasons for the chosen one."""

    candidates: tuple[Candidate, ...]
    reasons: tuple[str, ...]
    keys: int
    excluded: int

    @property
    def chosen(self) -> Candidate:
        """The design that a build makes."""
        return next(candidate for candidate in self.candidates if candidate.chosen)
