"""The verdict of a proof and its report: counts, problems, and where to look."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NoReturn

from rich.console import Console

MOST_PROBLEMS: Final = 20  # told one by one; the rest is counted
Tell = Callable[[str], None]


@dataclass
class Verdict:
    """A verdict, which is negative as soon as there is one problem."""

    proof: str
    counts: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    more_problems: int = 0
    done: int = 0  # what was done within ``seconds``, for a rate
    seconds: float = 0.0
    needed: tuple[str, ...] = ()  # counts without which nothing was shown
    against: Counter[str] = field(default_factory=Counter)  # what was going on meanwhile

    def add(self, problem: str) -> None:
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(problem)
        else:
            self.more_problems += 1

    def take_in(self, other: Verdict) -> None:
        """Add the verdict of a further round; counts called "longest" take the maximum, all others add up."""
        for problem in other.problems:
            self.add(problem)
        self.more_problems += other.more_problems
        self.done += other.done
        self.seconds += other.seconds
        self.against += other.against
        self.needed = other.needed
        for name, count in other.counts.items():
            held = self.counts.get(name, 0)
            self.counts[name] = max(held, count) if name.startswith("longest") else held + count

    def look_for_nothing(self) -> None:
        """Add a problem for each needed count of 0 over all rounds: a run in which nothing happened is no proof."""
        for name in self.needed:
            if not self.counts.get(name):
                self.add(f"there were no {name}: the run shows nothing")

    def has_some(self, *names: str) -> bool:
        """Return whether each of these counts has begun.

        A machine that is busy can shoot a store as often as planned before a client has had its first answer.
        """
        return all(self.counts.get(name) for name in names)

    @property
    def is_good(self) -> bool:
        return not self.problems


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a run: times and numbers; with ``kill_every_s`` of 0 nothing is killed."""

    seconds: float
    writers: int
    seed: int
    kill_every_s: float
    upheaval_pause_s: float = 0.3  # between flushes, compactions, splits and merges
    most_kills: int = 1 << 30
    servers: int = 1  # 1: one process
    nodes: int = 0  # with one server each; 0: one machine with ``servers``
    routing: bool = False  # clients call the owners of rows themselves


def end_report(console: Console, problems: Collection[str], folder: Path) -> NoReturn:
    """Print the problems, and end the process: with status 0 and without the folder if there are none."""
    for problem in problems:
        console.print(f"WRONG  {problem}", markup=False, soft_wrap=True)
    console.print("holds" if not problems else f"DOES NOT HOLD; the data is kept in {folder}", style="bold")
    if not problems:
        shutil.rmtree(folder)
    sys.exit(bool(problems))
