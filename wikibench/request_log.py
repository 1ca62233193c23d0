"""A line for each request of a replay, in a gzip file of its own for each process that sends.

    columns  intended_s, sent_s, ended_s   seconds from the begin of the replay
             response_ms, service_ms       from the intended start, and from the send, to the last byte
             kind, outcome, bytes, warm_up (1: not counted in the report), url, why

An edit has two lines, form and save.  Requests that a lost worker had are in no file.
"""

from __future__ import annotations

import csv
import gzip
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Final, Self, TextIO

from .errors import PlanError
from .latency import Sample
from .limits import REQUEST_LINES

COLUMNS: Final = (
    *("intended_s", "sent_s", "ended_s", "response_ms", "service_ms"),
    *("kind", "outcome", "bytes", "warm_up", "url", "why"),
)
LEVEL: Final = 1  # of gzip: a higher level takes the time that requests need


def require_free(folder: Path) -> None:
    """Make the folder.  Raises PlanError if it has requests of an earlier replay."""
    folder.mkdir(parents=True, exist_ok=True)
    if (earlier := next(folder.glob("requests-*.csv.gz"), None)) is not None:
        raise PlanError(f"{earlier} is of an earlier replay: give --requests another folder, or remove it")


def request_log(folder: Path | None, number: int) -> AbstractContextManager[RequestLog | None]:
    """Return the log of process ``number``; of None if no folder is given."""
    return nullcontext() if folder is None else RequestLog.created(folder, number)


class RequestLog:
    """The file of one process.  A line costs the process 5 to 15 us."""

    def __init__(self, path: Path, file: TextIO, most_lines: int = REQUEST_LINES) -> None:
        self._path = path
        self._file = file
        self._rows = csv.writer(file)
        self._left = most_lines
        self._left_out = 0

    @classmethod
    def created(cls, folder: Path, number: int, most_lines: int = REQUEST_LINES) -> Self:
        """Make ``requests-NUMBER.csv.gz``.  Raises OSError; FileExistsError if it exists."""
        path = folder / f"requests-{number}.csv.gz"
        log = cls(path, gzip.open(path, "xt", LEVEL, "utf-8", "replace", ""), most_lines)  # noqa: SIM115  __exit__ closes it
        log._rows.writerow(COLUMNS)
        return log

    def add(self, sample: Sample, *, is_warm_up: bool) -> None:
        """Add a line, or count it as left out once the file has ``most_lines``."""
        if not self._left:
            self._left_out += 1
            return
        self._left -= 1
        moments = (round(one, 6) for one in (sample.intended_s, sample.sent_s, sample.ended_s))
        times = sample.response_us / 1000, sample.service_us / 1000
        about = sample.kind, sample.outcome, sample.received_bytes, int(is_warm_up), sample.url, sample.why
        self._rows.writerow((*moments, *times, *about))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        if self._left_out:
            sys.stderr.write(f"{self._path}: full; {self._left_out:,} requests are not in it\n")
