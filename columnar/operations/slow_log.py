"""Slow requests, with a log line for each: method, table, region, row, duration, number of cells, cause of its waits.

The wire measures the time (``wire.service.Service.was_slow``), so a request that is not slow costs one comparison; a
service provides the request's subject.  Time counts from the handler's start to its answer, including the wait for the
fsync.

Owned by the loop.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from time import time as wall_s
from typing import Final

from columnar.errors import abbreviate, printable
from columnar.limits import SLOW_REQUESTS_KEPT
from columnar.model.measures import RequestTime, SlowRequest
from columnar.operations.descriptions import Descriptions
from columnar.operations.scanner_table import ScannerTable
from columnar.operations.scanners import Scanner

_log = logging.getLogger("columnar.slow")

LINES_PER_SECOND: Final = 8  # one slow fsync makes all requests slow that wait for it
FILTER_LOGGED_BYTES: Final = 200
MUCH_READ: Final = 1_000  # cells of one call; a filter that reads more, and READ_RATIO times its result, is logged
READ_RATIO: Final = 10


@dataclass(frozen=True, slots=True)
class Subject:
    """The subject of a request; fields that the request does not name are None or empty."""

    table: bytes | None = None
    row: bytes | None = None
    scanner_id: int | None = None
    answered: tuple[int, int, bytes] | None = None  # rows, cells, the last row; None: the answer has no rows
    filter_string: bytes | None = None  # of a scan without a scanner
    counts: tuple[tuple[str, int], ...] = ()  # lengths of lists in the request, by their names


class SlowLog:
    def __init__(
        self,
        descriptions: Descriptions,
        scanners: ScannerTable,
        limit_ms: int,
        now_s: Callable[[], float] = monotonic,
    ) -> None:
        self.limit_s = limit_ms / 1_000
        self.count = 0
        self.recent: deque[SlowRequest] = deque(maxlen=SLOW_REQUESTS_KEPT)  # the last ones logged, oldest first
        self._descriptions = descriptions
        self._scanners = scanners
        self._now = now_s
        self._second = -1  # in which the last line was written
        self._lines = 0  # in that second
        self._unlogged = 0  # since the last line

    def note(self, method: str, peer: str, time: RequestTime, subject: Callable[[], Subject]) -> None:
        """Count a slow request, and log it unless this second has LINES_PER_SECOND; ``subject`` is called to log."""
        self.count += 1
        second = int(self._now())
        if second != self._second:
            self._second, self._lines = second, 0
        if self._lines >= LINES_PER_SECOND:
            self._unlogged += 1
            return
        self._lines += 1
        about = " ".join([*self._about(subject()), *_time_words(time)])
        took_ms = round(time.took_s * 1_000)
        unlogged, self._unlogged = self._unlogged, 0
        before = f"; {unlogged} more before it" if unlogged else ""
        self.recent.append(SlowRequest(round(wall_s() * 1_000), took_ms, method, f"{about}; peer={peer}".lstrip("; ")))
        _log.warning("slow request: %s took %d ms%s; peer=%s%s", method, took_ms, about and f" {about}", peer, before)

    def _about(self, subject: Subject) -> list[str]:
        words = []
        scanned = self._scanner(subject.scanner_id) if subject.scanner_id is not None else None
        table, row, answered = scanned.table if scanned else subject.table, subject.row, subject.answered
        if table is not None:
            words.append(f"table={abbreviate(table)}")
            words += self._region_of(table, answered[2] if scanned and answered and answered[0] else row)
        if row is not None:
            words.append(f"row={abbreviate(row)}")
        if answered is not None:
            words.append(f"rows={answered[0]} cells={answered[1]}")
        if scanned:
            words.append(f"cells_read={scanned.cells_read}")
        words += _filter_words(subject, scanned)
        words += [f"{name}={count}" for name, count in subject.counts]
        return words

    def table_of(self, subject: Subject) -> bytes | None:
        scanned = self._scanner(subject.scanner_id) if subject.scanner_id is not None else None
        return scanned.table if scanned else subject.table

    def _scanner(self, scanner_id: int) -> Scanner | None:
        return self._scanners.find(scanner_id)

    def _region_of(self, table: bytes, row: bytes | None) -> list[str]:
        served = self._descriptions.find(table)
        if served is None or (row is None and len(served.regions) > 1):
            return []
        return [f"region={served.holding(row or b'').encoded}"]


def _time_words(time: RequestTime) -> list[str]:
    """Return how long the request was worked on, and what it waited for."""
    words = [f"reply_bytes={time.reply_bytes}", f"worked_ms={round((time.took_s - time.waited_s) * 1_000)}"]
    if time.waited_for:
        words += [f"waited_ms={round(time.waited_s * 1_000)}", f"waited_for={time.waited_for}"]
    return words


def _filter_words(subject: Subject, scanned: Scanner | None) -> list[str]:
    """Return the filter for the log line if it reads much and returns little, otherwise nothing."""
    text, cells = subject.filter_string, subject.answered[1] if subject.answered else 0
    if scanned is not None:
        read = scanned.cells_read - scanned.cells_read_before
        text = scanned.spec.filter_string if read >= MUCH_READ and read >= READ_RATIO * cells else None
    if text is None:
        return []
    cut = "..." if len(text) > FILTER_LOGGED_BYTES else ""
    return [f"filter={printable(text[:FILTER_LOGGED_BYTES])}{cut}"]
