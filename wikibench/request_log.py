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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TextIO

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


@contextmanager
def request_log(folder: Path | None, number: int, most_lines: int = REQUEST_LINES) -> Iterator[RequestLog | None]:
    """Make ``requests-NUMBER.csv.gz`` for process ``number``; None if no folder is given.

    Raises OSError; FileExistsError if the file exists.
    """
    if folder is None:
        yield None
        return
    path = folder / f"requests-{number}.csv.gz"
    with gzip.open(path, "xt", LEVEL, "utf-8", "replace", "") as file:
        log = RequestLog(file, most_lines)
        yield log
    if log.left_out:
        sys.stderr.write(f"{path}: full; {log.left_out:,} requests are not in it\n")


class RequestLog:
    """The lines of one process.  A line costs the process 5 to 15 us."""

    def __init__(self, file: TextIO, most_lines: int) -> None:
        self._rows = csv.writer(file)
        self._rows.writerow(COLUMNS)
        self._left = most_lines
        self.left_out = 0

    def add(self, sample: Sample, *, is_warm_up: bool) -> None:
        """Add a line, or count it as left out once the file has ``most_lines``."""
        if not self._left:
            self.left_out += 1
            return
        self._left -= 1
        moments = (round(one, 6) for one in (sample.intended_s, sample.sent_s, sample.ended_s))
        times = sample.response_us / 1000, sample.service_us / 1000
        about = sample.kind, sample.outcome, sample.received_bytes, int(is_warm_up), sample.url, sample.why
        self._rows.writerow((*moments, *times, *about))
