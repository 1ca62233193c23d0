"""Requests by time, however many there are: sorted runs on disk, merged.

A run has RUN_REQUESTS and is sorted in memory.  At most OPEN_RUNS are merged at once; more are first merged to longer
ones.  Any disorder is repaired, and requests of one time keep their order.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Final

from .lines import Request, format_line, parse_line

RUN_REQUESTS: Final = 250_000
OPEN_RUNS: Final = 64
_TIME: Final = attrgetter("time_us")


def in_time_order(
    requests: Iterable[Request], folder: Path, *, run: int = RUN_REQUESTS, fan_in: int = OPEN_RUNS
) -> Iterator[Request]:
    """Yield the requests by time.  Runs go into ``folder``, which the caller removes; memory is that of one run."""
    rest = iter(requests)
    first = sorted(islice(rest, run), key=_TIME)
    runs: list[Path] = []
    while second := sorted(islice(rest, run), key=_TIME):
        if not runs:
            runs.append(_written(folder / "run-0", first))
            first = []
        runs.append(_written(folder / f"run-{len(runs)}", second))
    if not runs:
        yield from first
        return
    level = 0
    while len(runs) > fan_in:
        level += 1
        merged: list[Path] = []
        for at in range(0, len(runs), fan_in):
            group = runs[at : at + fan_in]
            merged.append(_written(folder / f"merged-{level}-{len(merged)}", _merged(group)))
            for path in group:
                path.unlink()
        runs = merged
    yield from _merged(runs)


def _merged(runs: Iterable[Path]) -> Iterator[Request]:
    return heapq.merge(*map(_read, runs), key=_TIME)  # of equal ones those of the earlier run come first


def _read(path: Path) -> Iterator[Request]:
    with path.open(encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        for line in file:
            yield parse_line(line)


def _written(path: Path, requests: Iterable[Request]) -> Path:
    with path.open("w", encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        file.writelines(format_line(request) + "\n" for request in requests)
    return path
