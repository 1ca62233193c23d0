"""Lines that a serving process writes to standard error and standard output, without waiting for their readers.

    line -> queue of LOG_QUEUE_BYTES -> thread -> the descriptor

    a server's line -> immediately also to its ``last_lines``, to explain a death of the server

A reader that stalls (a pipe of journald or docker, ``Popen(stderr=PIPE)``) stalls only the thread.  If the queue has no
room, lines are dropped and counted: the next written line begins with the number of lines dropped before it, and
``dropped`` returns the total.

Invariants:
    L1. A caller waits for the descriptor only in ``flush``, and only for the time that the caller passes.
    L2. Lines are written in the order in which they were queued, each whole or not at all.
    L3. After a fork, the child writes its own lines and none of its parent's.
"""

from __future__ import annotations

import atexit
import logging
import os
import select
import sys
import threading
from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import Any, Final

from columnar.limits import LOG_LINE_BYTES, LOG_QUEUE_BYTES
from columnar.runtime.last_lines import LastLines
from columnar.runtime.log_rate import ClientLineRate
from columnar.runtime.standard_streams import open_closed_streams

STDOUT: Final = 1
STDERR: Final = 2
END_S: Final = 1.0  # how long an ending process waits for a reader of its last lines
_CHUNK_BYTES: Final = 64 * 1024  # of one write
_log = logging.getLogger("columnar")


class LineQueue:
    def __init__(
        self,
        descriptor: int,
        bound_bytes: int = LOG_QUEUE_BYTES,
        write: Callable[[int, bytes], int] = os.write,
    ) -> None:
        self._descriptor = descriptor
        self._bound_bytes = bound_bytes
        self._write = write
        self.dropped = 0  # lines, since the start
        self._begin()

    def _begin(self) -> None:
        """Set the state of an empty queue without a thread, at the start and after a fork."""
        self._changed = threading.Condition()  # reentrant: a signal handler may log while its thread adds a line
        self._lines: deque[bytes] = deque()
        self._buffered_bytes = 0  # of the lines that wait or are being written
        self._unsaid = 0  # lines dropped since the last accepted line
        self._thread: threading.Thread | None = None
        self._last: LastLines | None = None

    def keep_last(self, last: LastLines) -> None:
        """Add each line to ``last``, too, from now on, even lines that the queue drops."""
        with self._changed:
            self._last = last

    def write_line(self, text: str) -> None:
        """Queue one line, given without a line end."""
        line = text.encode(errors="backslashreplace")
        if len(line) > LOG_LINE_BYTES:
            line = line[:LOG_LINE_BYTES] + b"... (%d bytes)" % len(line)
        with self._changed:
            if self._last is not None:
                self._last.add_line(line)
            if self._buffered_bytes and self._buffered_bytes + len(line) > self._bound_bytes:
                self.dropped += 1
                self._unsaid += 1
                return
            if self._unsaid:
                line = b"(%d lines dropped: nobody read them) " % self._unsaid + line
                self._unsaid = 0
            line += b"\n"
            self._lines.append(line)
            self._buffered_bytes += len(line)
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name=f"log {self._descriptor}", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def flush(self, within_s: float) -> bool:
        """Wait until all lines are written.  Returns False if some are unwritten after ``within_s``."""
        ends_s = monotonic() + within_s
        with self._changed:
            while self._buffered_bytes:
                left_s = ends_s - monotonic()
                if left_s <= 0:
                    return False
                self._changed.wait(left_s)
        return True

    def _serve(self) -> None:
        while True:
            with self._changed:
                while not self._lines:
                    self._changed.wait()
                chunk = [self._lines.popleft()]
                size = len(chunk[0])
                while self._lines and size + len(self._lines[0]) <= _CHUNK_BYTES:
                    chunk.append(self._lines.popleft())
                    size += len(chunk[-1])
            is_written = self._written(b"".join(chunk))
            with self._changed:
                if not is_written:
                    self.dropped += len(chunk)
                self._buffered_bytes -= size
                self._changed.notify_all()

    def _written(self, data: bytes) -> bool:
        """Write the data.  Returns False if the descriptor is unusable, as a pipe whose reader has ended."""
        while data:
            try:
                data = data[self._write(self._descriptor, data) :]
            except BlockingIOError:  # a process that shares the pipe made it non-blocking
                select.select([], [self._descriptor], [], 1.0)
            except OSError:
                return False
        return True

    def begin_again(self) -> None:
        """Reset the queue in a child of a fork: the thread, and perhaps the lock's holder, exist only in the parent."""
        self.dropped = 0
        self._begin()


_queues: Final = {number: LineQueue(number) for number in (STDOUT, STDERR)}


def _begin_again() -> None:
    for queue in _queues.values():
        queue.begin_again()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_again)


def dropped() -> int:
    """Return the number of this process's lines that were dropped."""
    return sum(queue.dropped for queue in _queues.values())


def keep_last_lines(last: LastLines) -> None:
    """Keep the last lines of standard error, and the dump of a crash, in ``last``; not in children after a fork."""
    last.dump_crashes()
    _queues[STDERR].keep_last(last)


def flush(within_s: float = END_S) -> None:
    """Wait until the last lines are written; call before the process ends."""
    ends_s = monotonic() + within_s
    for queue in _queues.values():
        queue.flush(max(0.0, ends_s - monotonic()))


atexit.register(flush)


def say(text: str) -> None:
    """Write lines to standard output, such as the ready line for which scripts wait."""
    for line in text.splitlines():
        _queues[STDOUT].write_line(line)


def complain(text: str) -> None:
    """Write lines to standard error for a person, not for the log, and wait for them, because the process then ends."""
    for line in text.splitlines():
        _queues[STDERR].write_line(line)
    flush()


class OneLine(logging.Formatter):
    """Formats a record as one line: time, level, logger and message, including a traceback."""

    def __init__(self, process: str = "") -> None:
        """Pass the name of the process if several processes write to the same standard error."""
        super().__init__(f"%(asctime)s %(levelname)s {process and process + ' '}%(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        return " | ".join(line for line in super().format(record).splitlines() if line)


class QueuedLines(logging.Handler):
    """The log handler that writes to the queue."""

    def __init__(self, queue: LineQueue) -> None:
        super().__init__()
        self._queue = queue

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record)
        except Exception as error:  # noqa: BLE001 - the caller continues; its mistake is a line of its own
            line = f"{record.pathname}:{record.lineno}: a log line cannot be written: {type(error).__name__}: {error}"
        self._queue.write_line(line)

    def flush(self) -> None:
        """Wait for the lines; called by ``logging.shutdown``."""
        self._queue.flush(END_S)


def log_to_stderr(level: str, process: str = "") -> None:
    """Log to standard error, including uncaught exceptions of threads and warnings."""
    open_closed_streams()
    handler = QueuedLines(_queues[STDERR])
    handler.setFormatter(OneLine(process))
    handler.addFilter(ClientLineRate())
    logging.basicConfig(level=level, handlers=[handler])
    logging.captureWarnings(True)
    threading.excepthook = _thread_ended
    sys.unraisablehook = _unraisable


def set_level(level: str) -> None:
    """Log lines of ``level`` and above from now on."""
    logging.getLogger().setLevel(level)


def _thread_ended(ended: threading.ExceptHookArgs) -> None:
    if ended.exc_type is not SystemExit:
        name = ended.thread.name if ended.thread is not None else "?"
        _log.error("thread %s ended by an error", name, exc_info=_info(ended))


def _unraisable(found: Any) -> None:
    _log.error("%s: %r", found.err_msg or "an error that nobody caught", found.object, exc_info=_info(found))


def _info(found: Any) -> Any:
    return (found.exc_type, found.exc_value, found.exc_traceback)
