"""(pure) The forms of a log record: a line of text, and a line of JSON.

    text   2026-11-21 09:33:57,670 WARNING s1.7 columnar.slow: slow request: ... | Traceback ...
    json   {"time": "2026-11-21T08:33:57.670Z", "level": "WARNING", "logger": "columnar.slow", "message": "...",
            "role": "server", "server": "s1.7", "pid": 4711, "build": "0.1.0+337d94265ee8", "exception": "..."}

A record is one line always: a traceback is folded into the text's line, and JSON escapes line ends and every sign that
is not ASCII.  ``server`` and ``exception`` are left out where there is none.  A line has LOG_LINE_BYTES at most: text
is cut there; in JSON the message keeps its beginning, the exception its end, and ``cut_from_bytes`` has the size of the
whole line.

Knows nothing of the places of lines.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from columnar.limits import LOG_LINE_BYTES
from columnar.runtime.line_queue import cut

_KEPT: Final = LOG_LINE_BYTES // 16  # characters of a message or an exception that is cut; JSON may escape each by 6
_TRACEBACKS: Final = logging.Formatter()


class Form(Protocol):
    def encode(self, record: logging.LogRecord) -> bytes:
        """Return the record as a sink takes it.  Raises whatever the record's own values raise."""


@dataclass(frozen=True, slots=True)
class Speaker:
    """The process that logs."""

    role: str = ""  # standalone, node, server, trigger-worker
    server: str = ""  # the incarnation of a server, as s1.7, or the name of a node
    build: str = ""


def exception_text(record: logging.LogRecord) -> str:
    """Return the traceback and the stack of the record, or an empty text."""
    parts = [record.exc_text or ""]
    if record.exc_info and not record.exc_text:
        parts = [_TRACEBACKS.formatException(record.exc_info)]
    return "\n".join(part for part in (*parts, record.stack_info or "") if part)


class OneLine(logging.Formatter):
    """A record as one line of text: time, level, process, logger and message, including a traceback."""

    def __init__(self, process: str = "") -> None:
        """Pass the name of the process if several processes write to the same place."""
        super().__init__(f"%(asctime)s %(levelname)s {process and process + ' '}%(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        return " | ".join(line for line in super().format(record).splitlines() if line)

    def encode(self, record: logging.LogRecord) -> bytes:
        return cut(self.format(record).encode(errors="backslashreplace")) + b"\n"


class JsonLine:
    """A record as one line of JSON."""

    def __init__(self, speaker: Speaker) -> None:
        self._of_process = {"role": speaker.role, "server": speaker.server}
        self._build = speaker.build

    def encode(self, record: logging.LogRecord) -> bytes:
        message, exception = record.getMessage(), exception_text(record)
        line = self._line(record, message, exception)
        if len(line) > LOG_LINE_BYTES:
            line = self._line(record, message[:_KEPT], exception[-_KEPT:], cut_from_bytes=len(line))
        return line + b"\n"

    def _line(self, record: logging.LogRecord, message: str, exception: str, **more: Any) -> bytes:
        fields: dict[str, Any] = {
            "time": utc_text(record.created),
            "level": record.levelname,
            "logger": record.name,
            "message": message,
        }
        fields |= {name: value for name, value in self._of_process.items() if value}
        fields |= {"pid": record.process, "build": self._build}
        if exception:
            fields["exception"] = exception
        return json.dumps({**fields, **more}).encode()


def utc_text(time_s: float) -> str:
    """Return a time in RFC 3339, in UTC, to the millisecond."""
    return datetime.fromtimestamp(time_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
