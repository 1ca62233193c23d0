"""A bound on log lines that clients cause: CLIENT_LINES_PER_SECOND of each level; the next line counts dropped lines.

Each malformed message of a client causes a line, and a client can send some 20,000 a second; without a bound a stranger
could fill the log's disk.  Lines that the store itself causes have no bound, because each is about a different event.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from time import monotonic
from typing import Final

from columnar.limits import CLIENT_LINES_PER_SECOND

OF_CLIENTS: Final = ("columnar.wire.", "waitress")  # loggers whose lines a client causes


class ClientLineRate(logging.Filter):
    """The filter of a handler.  Any thread may log; the filter's own lock guards its state."""

    def __init__(self, now_s: Callable[[], float] = monotonic) -> None:
        super().__init__()
        self._now_s = now_s
        self._lock = threading.Lock()
        self._lines: dict[int, tuple[int, int]] = {}  # by level: (second of the last line, lines in that second)
        self._unlogged: dict[int, int] = {}  # dropped lines by level, since the last line

    def filter(self, record: logging.LogRecord) -> bool:
        if not record.name.startswith(OF_CLIENTS):
            return True
        level, second = record.levelno, int(self._now_s())
        with self._lock:
            last, lines = self._lines.get(level, (second, 0))
            lines = lines if last == second else 0
            if lines >= CLIENT_LINES_PER_SECOND:
                self._unlogged[level] = self._unlogged.get(level, 0) + 1
                return False
            self._lines[level] = (second, lines + 1)
            unlogged = self._unlogged.pop(level, 0)
        if unlogged:
            record.msg, record.args = f"{record.getMessage()}; {unlogged} more before it", None
        return True
