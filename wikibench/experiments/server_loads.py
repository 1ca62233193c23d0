"""A step of a load: runs a command, and meanwhile reads how the calls spread over the servers of a store.

``python -m wikibench.experiments.server_loads --metrics URL --out FILE -- COMMAND ...`` ends with the command's status.
FILE has the samples, and for both halves of the command's time: the load of the busiest server over the mean at the
end of the half, and after how many seconds it was balanced for good.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from .system import METRICS_BYTES, metrics_in

CALLS: Final = "columnar_requests_total"
MOVES: Final = "columnar_moves_total"
EVERY_S: Final = 2.0
WINDOW: Final = 5  # samples, over which a load is a mean
BALANCED: Final = 1.5  # the busiest server has at most so many times the mean
MOST_SAMPLES: Final = 10_000
_OPENER: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True, slots=True)
class Sample:
    at_s: float  # since the command began
    calls: dict[str, float]  # by server, since the sample before
    moves: float


def busiest_over_mean(samples: Sequence[Sample], servers: int) -> float | None:
    """(pure) Return the calls of the busiest server over the mean of all; None without calls."""
    sums: dict[str, float] = {}
    for sample in samples:
        for server, calls in sample.calls.items():
            sums[server] = sums.get(server, 0.0) + calls
    total = sum(sums.values())
    return max(sums.values()) * max(servers, len(sums)) / total if total else None


def half_of(samples: Sequence[Sample], servers: int) -> dict[str, Any]:
    """(pure) Return the figures of one half of the time."""
    windows = [samples[max(0, at + 1 - WINDOW) : at + 1] for at in range(len(samples))]
    loads = [busiest_over_mean(window, servers) for window in windows]
    known = [(sample.at_s, load) for sample, load in zip(samples, loads, strict=True) if load is not None]
    last_bad = max((at for at, (_, load) in enumerate(known) if load > BALANCED), default=-1)
    is_balanced = 0 <= last_bad + 1 < len(known)
    return {
        "busiest_over_mean": fmean(load for _, load in known[-WINDOW:]) if known else None,
        "balanced_after_s": round(known[last_bad + 1][0] - samples[0].at_s, 1) if is_balanced else None,
        "moves": sum(sample.moves for sample in samples),
    }


class Sampler(threading.Thread):
    """Reads the counters every EVERY_S until ``stop``; a reading that fails is left out, and the next has its calls."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self.samples: list[Sample] = []
        self._url = url
        self._ended = threading.Event()

    def run(self) -> None:
        began_s = time.monotonic()
        calls, moves = dict[str, float](), 0.0
        is_first = True
        while len(self.samples) < MOST_SAMPLES:
            with suppress(OSError, KeyError, ValueError):
                with _OPENER.open(self._url, timeout=10) as answer:
                    text = answer.read(METRICS_BYTES).decode("utf-8", "replace")
                now, moved = metrics_in(text, CALLS, "server"), sum(_moves(text))
                if not is_first:
                    grown = {server: max(count - calls.get(server, 0.0), 0.0) for server, count in now.items()}
                    self.samples.append(Sample(round(time.monotonic() - began_s, 2), grown, moved - moves))
                calls, moves, is_first = now, moved, False
            if self._ended.wait(EVERY_S):
                return

    def stop(self) -> None:
        self._ended.set()
        self.join()


def _moves(text: str) -> list[float]:
    try:
        return list(metrics_in(text, MOVES).values())
    except KeyError:  # none yet
        return []


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--metrics", required=True, metavar="URL", help="the store's metrics in Prometheus' text")
    parser.add_argument("--servers", required=True, type=int, help="how many servers there are")
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args(arguments)
    sampler = Sampler(given.metrics)
    sampler.start()
    try:
        status = subprocess.run(given.command[given.command[:1] == ["--"] :], check=False).returncode
    finally:
        sampler.stop()
    samples = sampler.samples
    middle_s = samples[-1].at_s / 2 if samples else 0.0
    halves = [[one for one in samples if one.at_s <= middle_s], [one for one in samples if one.at_s > middle_s]]
    found = {
        "before": half_of(halves[0], given.servers),
        "after": half_of(halves[1], given.servers),
        "samples": [asdict(one) for one in samples],
    }
    given.out.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main())
