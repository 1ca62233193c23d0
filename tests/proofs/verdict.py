"""What a proof found, and how it is told: counts, what is wrong, where to look."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

MOST_PROBLEMS: Final = 20  # told one by one; the rest is counted
Tell = Callable[[str], None]


@dataclass
class Verdict:
    """Wrong as soon as there is one problem."""

    proof: str
    counts: dict[str, int | float | str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    more_problems: int = 0

    def add(self, problem: str) -> None:
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(problem)
        else:
            self.more_problems += 1

    @property
    def is_good(self) -> bool:
        return not self.problems


@dataclass(frozen=True, slots=True)
class Plan:
    """How long and with how many; ``kill_every_s`` of 0: nobody is killed."""

    seconds: float
    writers: int
    seed: int
    kill_every_s: float
    upheaval_pause_s: float = 0.3  # between flushes, compactions, splits and merges


def shown_counts(counted: Counter[str]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counted.items())) or "none"
