"""Runs of a model with many seeds in parallel: a bar, the first seed that fails, and a shortest failing history.

A run is a function of its seed and of the left-out steps: each step draws from ``step_seed``, so that leaving out a
step does not change the others.  ``python -m`` of a model's module takes --seed, --seeds and --jobs (``main``).
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Final, NamedTuple

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

AT_ONCE: Final = 20  # seeds of one task

Left = frozenset[int]  # numbers of steps that are left out
Tell = Callable[[str], None]  # hears of each step
Play = Callable[[int, Left, Tell], Counter[str]]  # a run, by its seed; raises what is wrong


class Played(NamedTuple):
    seen: Counter[str]
    count: int
    failed: int | None  # the seed


def step_seed(seed: int, step: int) -> str:
    return f"{seed}/{step}"


def untold(_text: str) -> None:
    """Ignore a step."""


def runs(play: Play, first: int, count: int) -> Counter[str]:
    """Run the seeds in this process; a failing seed is printed, and its error raised."""
    seen: Counter[str] = Counter()
    for seed in range(first, first + count):
        try:
            seen.update(play(seed, frozenset(), untold))
        except BaseException:
            print(f"seed {seed}")
            raise
    return seen


def error_of(play: Play, seed: int, left: Left) -> str:
    """Return the error of a run, or an empty text."""
    try:
        play(seed, left, untold)
    except Exception:  # noqa: BLE001 - whatever it is, it is what was looked for
        return traceback.format_exc()
    return ""


def shrunk(play: Play, seed: int, steps: int) -> Left:
    """Return the steps that can be left out of the failing run; no further step can be left out."""
    left: Left = frozenset()
    size = max(1, steps // 2)
    while size:
        for start in range(0, steps, size):
            more = left | set(range(start, min(start + size, steps)))
            if more != left and error_of(play, seed, more):
                left = more
        size //= 2
    return left


def _some(play: Play, seeds: range) -> Played:
    seen: Counter[str] = Counter()
    for seed in seeds:
        try:
            seen.update(play(seed, frozenset(), untold))
        except Exception:  # noqa: BLE001 - it is run again where it can be looked at
            return Played(seen, seed - seeds.start, seed)
    return Played(seen, len(seeds), None)


def _played(play: Play, tasks: Iterable[range], jobs: int) -> Iterator[Played]:
    if jobs == 1:
        yield from map(partial(_some, play), tasks)
        return
    with ProcessPoolExecutor(jobs) as pool:
        try:
            yield from pool.map(partial(_some, play), tasks)
        finally:
            pool.shutdown(cancel_futures=True)


def run_many(play: Play, first: int, count: int, jobs: int, console: Console) -> Played:
    """Run seeds up to the first that fails."""
    end = first + count
    tasks = [range(seed, min(seed + AT_ONCE, end)) for seed in range(first, end, AT_ONCE)]
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn(), TextColumn("left"))
    seen, done = Counter[str](), 0
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        bar = progress.add_task("", total=count)
        for played in _played(play, tasks, jobs):
            seen.update(played.seen)
            done += played.count
            progress.update(bar, completed=done)
            if played.failed is not None:
                return Played(seen, done, played.failed)
    return Played(seen, done, None)


def main(module: str, play: Play, steps: int, first: int) -> None:
    """Run the command line for a model with ``steps`` steps a run.  The exit status is 1 if a seed fails."""
    asked = argparse.ArgumentParser(prog=f"python -m {module}")
    asked.add_argument("--seed", type=int, default=first, help="the first one")
    asked.add_argument("--seeds", type=int, default=100_000)
    asked.add_argument("--jobs", type=int, default=2, help="processes")
    given = asked.parse_args()
    console = Console(soft_wrap=True, highlight=False, markup=False)
    played = run_many(play, given.seed, given.seeds, given.jobs, console)
    console.print(f"{played.count:,} seeds from {given.seed} on: {dict(played.seen)}")
    if played.failed is None:
        console.print("no differences")
        return
    console.print(f"seed {played.failed} FAILS; it is made shorter")
    left = shrunk(play, played.failed, steps)
    told: list[str] = []
    try:
        play(played.failed, left, told.append)
        console.print("it went well this time: it depends on more than its seed")
    except Exception:  # noqa: BLE001 - shown
        console.print(traceback.format_exc())
    console.print(f"{steps - len(left)} of {steps} steps are needed:", *told, sep="\n  ")
    console.print(f"python -m {module} --seed {played.failed} --seeds 1")
    sys.exit(1)
