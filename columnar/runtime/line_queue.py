"""A bounded queue of log lines, which one thread writes.

    line -> queue of LOG_QUEUE_BYTES -> thread -> sink: a descriptor, a file (``log_file``), the journal (``journal``)

A sink that stalls (a pipe whose reader stalls, a dead mount) stalls only the thread.  If the queue has no room, or the
sink cannot write, lines are dropped and counted: before the next accepted line there is a line with the number of those
dropped before it, and ``dropped`` has the total.

Invariants:
    L1. A caller waits for the sink only in ``flush``, and only for the times that the caller passes.
    L2. Lines are written in the order in which they were queued, each whole or not at all.
    L3. After a fork, the child writes its own lines and none of its parent's.
    L4. A line that is not written is counted once in ``dropped``.  The lines of the form "n lines dropped" that were
        written name it once; a line of that form that is lost itself passes its number on to the next one.

Knows nothing of records and levels.
"""

from __future__ import annotations

import math
import os
import select
import threading
from collections import deque
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Final, NamedTuple, Protocol

from columnar.limits import LOG_LINE_BYTES, LOG_QUEUE_BYTES

_CHUNK_BYTES: Final = 64 * 1024  # of one write


class Sink(Protocol):
    """A place of lines.  Only the queue's thread calls it."""

    def write_lines(self, lines: Sequence[bytes]) -> int:
        """Write the lines in order.  Returns how many of them, from the first one on, were written; never raises."""


class _Entry(NamedTuple):
    data: bytes
    dropped: int = 0  # of a line that says how many lines were dropped: their number


def cut(line: bytes) -> bytes:
    """Return the line, or its first LOG_LINE_BYTES and its size."""
    return line if len(line) <= LOG_LINE_BYTES else line[:LOG_LINE_BYTES] + b"... (%d bytes)" % len(line)


def _dropped_line(count: int) -> bytes:
    return b"(%d lines dropped: nobody read them)\n" % count


class LineQueue:
    def __init__(self, sink: Sink, bound_bytes: int = LOG_QUEUE_BYTES, now_s: Callable[[], float] = monotonic) -> None:
        self._sink = sink
        self._bound_bytes = bound_bytes
        self._now_s = now_s
        self.dropped = 0  # lines, since the start
        self._dropped_line: Callable[[int], bytes] = _dropped_line
        self._begin()

    def _begin(self) -> None:
        """Set the state of an empty queue without a thread, at the start and after a fork."""
        self._changed = threading.Condition()  # reentrant: a signal handler may log while its thread adds a line
        self._entries: deque[_Entry] = deque()
        self._buffered_bytes = 0  # of the lines that wait or are being written
        self._writes = 0  # calls of the sink that have returned
        self._unsaid = 0  # lines dropped since the last accepted line
        self._thread: threading.Thread | None = None

    def name_dropped_by(self, dropped_line: Callable[[int], bytes]) -> None:
        """Make the line with the number of dropped ones by ``dropped_line``, in the sink's form."""
        self._dropped_line = dropped_line

    def write_line(self, text: str) -> None:
        """Queue one line of text, given without a line end."""
        self.add_line(cut(text.encode(errors="backslashreplace")) + b"\n")

    def add_line(self, line: bytes) -> None:
        """Queue one line in the sink's form, or drop and count it if the queue has no room."""
        with self._changed:
            if self._buffered_bytes and self._buffered_bytes + len(line) > self._bound_bytes:
                self.dropped += 1
                self._unsaid += 1
                return
            if self._unsaid:
                self._append(_Entry(self._dropped_line(self._unsaid), self._unsaid))
                self._unsaid = 0
            self._append(_Entry(line))
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="log", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def _append(self, entry: _Entry) -> None:
        self._entries.append(entry)
        self._buffered_bytes += len(entry.data)

    def flush(self, within_s: float, stalled_s: float = math.inf) -> bool:
        """Wait until all lines are written or lost.

        Returns False if some are queued after ``within_s``, or if the sink has taken none for ``stalled_s``.
        """
        now_s = taken_s = self._now_s()
        ends_s = now_s + within_s
        with self._changed:
            writes = self._writes
            while self._buffered_bytes:
                now_s = self._now_s()
                if self._writes != writes:
                    writes, taken_s = self._writes, now_s
                left_s = min(ends_s, taken_s + stalled_s) - now_s
                if left_s <= 0:
                    return False
                self._changed.wait(left_s)
        return True

    def _serve(self) -> None:
        while True:
            with self._changed:
                while not self._entries:
                    self._changed.wait()
                chunk = [self._entries.popleft()]
                size = len(chunk[0].data)
                while self._entries and size + len(self._entries[0].data) <= _CHUNK_BYTES:
                    chunk.append(self._entries.popleft())
                    size += len(chunk[-1].data)
            written = self._sink.write_lines([entry.data for entry in chunk])
            with self._changed:
                for entry in chunk[written:]:
                    self.dropped += not entry.dropped
                    self._unsaid += entry.dropped or 1
                self._buffered_bytes -= size
                self._writes += 1
                self._changed.notify_all()

    def begin_again(self) -> None:
        """Reset the queue in a child of a fork: the thread, and perhaps the lock's holder, exist only in the parent."""
        self.dropped = 0
        self._begin()


def whole_lines(lines: Sequence[bytes], size_bytes: int) -> int:
    """(pure) Return how many of the lines, from the first one on, are whole in their first ``size_bytes``."""
    for number, line in enumerate(lines):
        size_bytes -= len(line)
        if size_bytes < 0:
            return number
    return len(lines)


class Descriptor:
    """The sink of an open descriptor, as standard error.  Its reader may stall or be gone."""

    def __init__(self, number: int, write: Callable[[int, bytes], int] = os.write) -> None:
        self._number = number
        self._write = write

    def write_lines(self, lines: Sequence[bytes]) -> int:
        data = b"".join(lines)
        size, left = len(data), data
        while left:
            try:
                left = left[self._write(self._number, left) :]
            except BlockingIOError:  # a process that shares the pipe made it non-blocking
                select.select([], [self._number], [], 1.0)
            except OSError:  # as of a pipe whose reader has ended
                return whole_lines(lines, size - len(left))
        return len(lines)
