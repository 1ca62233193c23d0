"""The log of a process, and lines that it writes to standard error and standard output, without waiting for a reader.

    record -> form (text, JSON, journal entry) -> bounded queue -> thread -> standard error, log file or journal
                 \\-- a server's record, as text --> immediately also to its ``last_lines``, to explain its death

``line_queue`` has the promises of a queue, ``log_settings`` the choices, ``log_file`` and ``journal`` the places.
Lines that wait are written at the end of the process: at an orderly end, at an uncaught exception (which is a line of
the log) and before each ``os._exit`` (``flush``).  The end waits while lines are taken, for END_S at most, and for
STALLED_S while none is: a busy disk or processor takes them late, a pipe that nobody reads never.  ``kill -9`` loses
them.
"""

from __future__ import annotations

import atexit
import errno
import logging
import os
import sys
import threading
from collections.abc import Iterable
from time import monotonic
from types import TracebackType
from typing import Any, Final

from columnar.runtime.journal import JournalEntry, JournalSocket, is_journal
from columnar.runtime.last_lines import LastLines
from columnar.runtime.line_queue import Descriptor, LineQueue
from columnar.runtime.log_file import LogFile
from columnar.runtime.log_format import Form, JsonLine, OneLine, Speaker
from columnar.runtime.log_rate import ClientLineRate
from columnar.runtime.log_settings import AUTO, JOURNAL, JSON, STDERR, TEXT, LogSettings, parse_changes, parse_levels
from columnar.runtime.standard_streams import open_closed_streams

_OUT: Final = 1
_ERR: Final = 2
_MAY_PASS: Final = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
END_S: Final = 10.0  # how long an ending process waits for its last lines
STALLED_S: Final = 5.0  # of these, while none is taken
LATE_S: Final = 1.0  # for lines that came after these
_log = logging.getLogger("columnar")


class _ProcessLog:
    """The places of this process's lines besides standard error."""

    def __init__(self) -> None:
        self.last: LastLines | None = None
        self.queued: QueuedLines | None = None  # once the log begins
        self._levels_before: dict[str, int] = {}  # of the loggers that have a level of their own

    def keep_last(self, last: LastLines | None) -> None:
        self.last = last

    def take_levels(self, levels: Iterable[str]) -> None:
        """Set the levels of single loggers; a logger that had one and has none now gets its earlier level again."""
        wanted = parse_levels(levels)
        for name in self._levels_before.keys() - wanted.keys():
            logging.getLogger(name).setLevel(self._levels_before.pop(name))
        for name, level in wanted.items():
            logger = logging.getLogger(name)
            self._levels_before.setdefault(name, logger.level)
            logger.setLevel(level)

    def levels(self) -> dict[str, str]:
        """Return the levels of the loggers that have one of their own."""
        return {name: logging.getLevelName(logging.getLogger(name).level) for name in sorted(self._levels_before)}

    def begin_queue(self, queued: QueuedLines) -> None:
        self.queued = queued


_process: Final = _ProcessLog()


class QueuedLines(logging.Handler):
    """The log handler: it adds each record to a queue, in the form of the queue's sink."""

    def __init__(self, queue: LineQueue, form: Form, process: str = "", file: LogFile | None = None) -> None:
        """``process`` is its name in the text of last lines; ``file`` the queue's sink if that is a file."""
        super().__init__()
        self.file = file
        self.queue = queue
        self._form = form
        self._text = OneLine(process)
        queue.name_dropped_by(self._dropped_line)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line, said = self._form.encode(record), record
        except Exception as error:  # noqa: BLE001 - the caller continues; its mistake is a line of its own
            said = _record(
                "%s:%d: a log line cannot be written: %s: %s",
                *(record.pathname, record.lineno, type(error).__name__, error),
            )
            line = self._form.encode(said)
        if _process.last is not None:
            _process.last.add_line(self._text.encode(said)[:-1])
        self.queue.add_line(line)

    def _dropped_line(self, count: int) -> bytes:
        text = "%d log lines were dropped before this one: nobody read them, or they could not be written"
        return self._form.encode(_record(text, count))

    def flush(self) -> None:
        """Wait for the lines; called by ``logging.shutdown``, after this module's ``flush``."""
        self.queue.flush(LATE_S)


def _record(text: str, *values: Any) -> logging.LogRecord:
    return logging.LogRecord("columnar.log", logging.WARNING, __file__, 0, text, values, None)


_out: Final = LineQueue(Descriptor(_OUT))
_err: Final = LineQueue(Descriptor(_ERR))


def _queues() -> list[LineQueue]:
    queued = _process.queued
    return [_out, _err] if queued is None or queued.queue is _err else [_out, _err, queued.queue]


def _begin_again() -> None:
    _process.keep_last(None)
    for queue in _queues():
        queue.begin_again()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_again)


def dropped() -> int:
    """Return the number of this process's lines that were dropped."""
    return sum(queue.dropped for queue in _queues())


def keep_last_lines(last: LastLines) -> None:
    """Keep the last lines of the log, and the dump of a crash, in ``last``; not in children after a fork."""
    last.dump_crashes()
    _process.keep_last(last)


def flush(within_s: float = END_S) -> None:
    """Wait until the last lines are written; call before the process ends."""
    ends_s = monotonic() + within_s
    for queue in _queues():
        queue.flush(max(0.0, ends_s - monotonic()), STALLED_S)


atexit.register(flush)


def say(text: str) -> None:
    """Write lines to standard output, such as the ready line for which scripts wait."""
    for line in text.splitlines():
        _out.write_line(line)


def complain(text: str) -> None:
    """Write lines to standard error for a person and wait for them, because the process then ends.

    A log file gets them, too, because its reader may have no other place to look.
    """
    for line in text.splitlines():
        _err.write_line(line)
        if _process.queued is not None and _process.queued.file is not None:
            _log.error("%s", line)
    flush()


def log_to_stderr(level: str) -> None:
    """Log to standard error as text, including uncaught exceptions and warnings."""
    begin_log(LogSettings(level, place=STDERR))


def begin_log(settings: LogSettings, speaker: Speaker | None = None, process: str = "") -> None:
    """Log as the settings say, including uncaught exceptions and warnings.  Raises OSError if no file can be made.

    ``process`` is the name of this process in lines of text, if several write to the same place.  A disk without room
    is no error: it may have some later.
    """
    open_closed_streams()
    handler = _handler(settings, speaker if speaker is not None else Speaker(), process)
    _process.begin_queue(handler)
    handler.addFilter(ClientLineRate())
    logging.basicConfig(level=settings.level, handlers=[handler])
    _process.take_levels(settings.levels)
    logging.captureWarnings(True)
    for module, name, hook in _HOOKS:
        setattr(module, name, hook)


def place_of(settings: LogSettings) -> str:
    """Return STDERR or JOURNAL for settings without a file."""
    if settings.place != AUTO:
        return settings.place
    return JOURNAL if settings.form == TEXT and is_journal(_ERR, os.environ) else STDERR


def _handler(settings: LogSettings, speaker: Speaker, process: str) -> QueuedLines:
    form: Form = JsonLine(speaker) if settings.form == JSON else OneLine(process)
    if settings.file:
        file = LogFile(settings.file, settings.file_bytes, settings.file_count, _err.write_line)
        try:
            file.open()
        except OSError as error:
            if error.errno not in _MAY_PASS:
                raise
        return QueuedLines(LineQueue(file), form, process, file)
    if place_of(settings) == JOURNAL:
        return QueuedLines(LineQueue(JournalSocket()), JournalEntry(speaker), process)
    return QueuedLines(_err, form, process)


def reopen_log() -> None:
    """Open the log file anew, if there is one, because it may have been renamed."""
    queued = _process.queued
    if queued is not None and queued.file is not None:
        queued.queue.add_line(b"")  # the write of no line compares the file with its name


def set_level(level: str) -> None:
    """Log lines of ``level`` and above from now on."""
    logging.getLogger().setLevel(level)


def set_levels(level: str, levels: Iterable[str]) -> None:
    """Log lines of ``level`` and above from now on, and those of single loggers by ``levels``.  Raises ValueError."""
    _process.take_levels(())  # first: one of the root, set while the process ran, would come back over ``level``
    set_level(level)
    _process.take_levels(levels)


def levels_of_loggers() -> dict[str, str]:
    """Return the levels of the loggers of this process that have one of their own."""
    return _process.levels()


def change_levels(changes: Iterable[str]) -> str:
    """Change levels of single loggers until the next ``set_levels``; return those in force, as ``changes`` has them.

    Raises ValueError, and then changes none.
    """
    _process.take_levels([f"{name}={level}" for name, level in parse_changes(changes, _process.levels()).items()])
    own = {"root": logging.getLevelName(logging.getLogger().level), **_process.levels()}
    return " ".join(f"{name}={level.lower()}" for name, level in own.items())


def _uncaught(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    """Log what ends the process; the interpreter then runs ``flush``."""
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, traceback)
    else:
        _log.critical("the process ends by an error that nobody caught", exc_info=(kind, error, traceback))


def _thread_ended(ended: threading.ExceptHookArgs) -> None:
    if ended.exc_type is not SystemExit:
        name = ended.thread.name if ended.thread is not None else "?"
        _log.error("thread %s ended by an error", name, exc_info=_info(ended))


def _unraisable(found: Any) -> None:
    _log.error("%s: %r", found.err_msg or "an error that nobody caught", found.object, exc_info=_info(found))


def _info(found: Any) -> Any:
    return (found.exc_type, found.exc_value, found.exc_traceback)


_HOOKS: Final = (
    (sys, "excepthook", _uncaught),
    (sys, "unraisablehook", _unraisable),
    (threading, "excepthook", _thread_ended),
)
