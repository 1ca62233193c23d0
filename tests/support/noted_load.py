"""Replays by their commands against a server that notes each request: what proofs with real processes share.

A plan has even gaps and a path of its own for each request, so that the notes say which request came, when, and how
often.  A command runs in a session of its own, so that its processes are known when it has been killed.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.support.stopping_server import Notes, stopping_server
from wikibench.trace.lines import Request, format_line

ROOT: Final = Path(__file__).parents[2]
WIKIBENCH: Final = (sys.executable, "-m", "wikibench.cli")
NEVER_S: Final = 1e6
LONGEST_S: Final = 60.0  # of a command that should have ended
WINDOW_S: Final = 0.25
WHOLE: Final = 0.95  # of the planned requests of a window
STEP_S: Final = 0.02

Report = dict[str, Any]


@dataclass(frozen=True, slots=True)
class EvenPlan:
    """Requests at equal gaps: a trace, and the start of each path in seconds."""

    trace: Path
    rate: float
    starts_s: dict[str, float]

    @property
    def seconds(self) -> float:
        return len(self.starts_s) / self.rate


def even_plan(folder: Path, rate: float, seconds: float) -> EvenPlan:
    """Write the trace of a plan into ``folder``."""
    starts_s = {f"/Page_{number}": number / rate for number in range(round(rate * seconds))}
    lines = (format_line(Request(10**15 + round(at_s * 1e6), path)) for path, at_s in starts_s.items())
    trace = folder / "plan.trace"
    trace.write_text("\n".join((*lines, "")))
    return EvenPlan(trace, rate, starts_s)


def noting_server() -> AbstractContextManager[Notes]:
    """Run a server that answers at once; its notes are complete after the block."""
    return stopping_server(NEVER_S, NEVER_S, 0.0)


class Command:
    """A wikibench command in a session of its own, with its output in a file."""

    def __init__(self, file: Path, *words: object, before: Sequence[str] = ()) -> None:
        self._file = file
        command = [*before, *WIKIBENCH, *map(str, words)]
        with file.open("wb") as out:
            environment = {**os.environ, "PYTHONPATH": str(ROOT)}
            self.process = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def output(self) -> str:
        return self._file.read_text(errors="replace")

    def wait(self) -> int:
        """Wait for the end and return the status.  Raises TimeoutError."""
        try:
            return self.process.wait(LONGEST_S)
        except subprocess.TimeoutExpired as error:
            raise TimeoutError(f"{' '.join(map(str, error.cmd))} runs after {LONGEST_S:g} s: {self.output}") from error

    def processes(self) -> list[int]:
        """Return the processes of the session that run, also those of a command that has ended."""
        return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if self._is_of_session(pid)]

    def address(self) -> str:
        """Return where the controller waits for its workers."""
        pattern = r"wikibench worker (\S+:\d+)"
        wait_until(lambda: re.search(pattern, self.output) is not None or self.process.poll() is not None)
        found = re.search(pattern, self.output)
        if found is None:
            raise SystemExit(f"the controller does not listen: {self.output}")
        return found[1]

    def kill_all(self) -> None:
        for pid in self.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, 9)
        self.process.kill()
        self.process.wait()

    def _is_of_session(self, pid: int) -> bool:
        try:
            state, _, _, session, *_ = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return False
        return int(session) == self.pid and state != "Z"


@contextmanager
def command(file: Path, *words: object, before: Sequence[str] = ()) -> Iterator[Command]:
    """Start a command; no process of it is left after the block."""
    running = Command(file, *words, before=before)
    try:
        yield running
    finally:
        running.kill_all()


def wait_until(is_so: Callable[[], bool], most_s: float = LONGEST_S) -> float:
    """Return the seconds until ``is_so``.  Raises TimeoutError."""
    began_s = time.monotonic()
    while not is_so():
        if time.monotonic() - began_s > most_s:
            raise TimeoutError(f"not within {most_s:g} s")
        time.sleep(0.005)
    return time.monotonic() - began_s


def report_of(file: Path) -> Report:
    found: Report = json.loads(file.read_text())
    return found


def moments_of(notes: Notes, plan: EvenPlan) -> dict[str, float]:
    """Return the moment at which each request of the plan was first read."""
    found: dict[str, float] = {}
    for path, moment_s, _ in notes.read:
        if path in plan.starts_s:
            found.setdefault(path, moment_s)
    return found


def sent_twice(notes: Notes, plan: EvenPlan) -> list[str]:
    counts = Counter(path for path, _, _ in notes.read)
    return [path for path, count in counts.items() if count > 1 and path in plan.starts_s]


def whole_again_s(moments_s: Iterable[float], since_s: float, rate: float) -> float:
    """Return the seconds from a moment to the first window with the whole rate; infinity if there is none."""
    after_s = sorted(one - since_s for one in moments_s if one >= since_s)
    wanted, number = round(WHOLE * rate * WINDOW_S), 0
    while after_s and number * STEP_S + WINDOW_S <= after_s[-1] + 1 / rate:
        begin_s = number * STEP_S
        if sum(begin_s <= one < begin_s + WINDOW_S for one in after_s) >= wanted:
            return begin_s
        number += 1
    return float("inf")
