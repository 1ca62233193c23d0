"""(pure) What a reader requests of a change stream, and how far its regions were read: values between servers.

Knows nothing of logs, links and clients.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Final
from zlib import crc32

from columnar.errors import IllegalArgument

NOW: Final = "now"
BEGINNING: Final = "beginning"
STREAM_REPLY_BYTES: Final = 1024 * 1024  # of events in one reply, but for its last event
MOST_PARTS: Final = 1_024
MOST_COLUMNS: Final = 100
MOST_CONDITIONS: Final = 100
LATEST_START_MS: Final = 253_402_300_799_999  # the end of the year 9999
MOST_WAIT_MS: Final = 60_000


@dataclass(frozen=True, slots=True)
class StreamRange:
    """``flows.position.Range`` as a message carries it."""

    start: bytes
    p: tuple[int, int, int] | None
    x: bytes | None


@dataclass(frozen=True, slots=True)
class StreamSpec:
    """The changes that a reader wants."""

    columns: tuple[bytes, ...] = ()  # ``family`` or ``family:qualifier``; empty: all
    where: tuple[str, ...] = ()  # conditions on the row after the change (``condition_text``)
    start_row: bytes = b""
    stop_row: bytes = b""  # empty: to the last row
    part: int = 0
    parts: int = 1  # rows are cut into so many parts by ``part_of``
    before: bool = False  # images of the wanted families before and after the change
    after: bool = False
    consolidates: bool = False  # changes of a row within a reply become one (``streams.consolidation``)
    begins_again: bool = False  # where the log was trimmed: forget the rows and read them again, instead of an error

    def has_row(self, row: bytes) -> bool:
        return (
            row >= self.start_row
            and (not self.stop_row or row < self.stop_row)
            and (self.parts == 1 or part_of(row, self.parts) == self.part)
        )

    def overlaps(self, start: bytes, stop: bytes) -> bool:
        """Return whether rows ``start <= row < stop`` (empty: to the last row) may be wanted."""
        return (not stop or stop > self.start_row) and (not self.stop_row or start < self.stop_row)

    @property
    def has_images(self) -> bool:
        return self.before or self.after or bool(self.where)


@dataclass(frozen=True, slots=True)
class StreamCounts:
    """The work of a process for readers of change streams, since its start."""

    waiting: int  # requests that wait for changes of regions here, now
    replies: int
    sent_bytes: int  # of events in replies
    events: int  # that were read from the logs and rows of regions here; replies may share them


ALL_CHANGES: Final = StreamSpec()


def spec_digest(spec: StreamSpec) -> bytes:
    """Return what names the changes of the spec, apart from the form of their events."""
    wanted = (sorted(spec.columns), sorted(spec.where), spec.start_row, spec.stop_row)
    return sha256(repr(wanted).encode()).digest()[:8]


def part_of(row: bytes, parts: int) -> int:
    """Return the part of the row: its CRC-32 (of zlib) modulo ``parts``."""
    return crc32(row) % parts


def checked_start(start: str) -> str:
    """Return the start.  Raises IllegalArgument unless it is ``now``, ``beginning`` or a time in ms since 1970."""
    if start in (NOW, BEGINNING):
        return start
    is_number = start.isascii() and start.isdigit() and len(start) <= len(str(LATEST_START_MS))
    if not is_number or int(start) > LATEST_START_MS:
        raise IllegalArgument(
            f"a stream begins at 'now', 'beginning' or a time in ms since 1970, not at '{start[:40]}'"
        )
    return start


def checked_spec(spec: StreamSpec) -> StreamSpec:
    """Return the spec.  Raises IllegalArgument, with the remedy."""
    if not 1 <= spec.parts <= MOST_PARTS or not 0 <= spec.part < spec.parts:
        raise IllegalArgument(f"part {spec.part} of {spec.parts}: parts are 1 to {MOST_PARTS}, counted from 0")
    if len(spec.columns) > MOST_COLUMNS:
        raise IllegalArgument(f"a change stream has at most {MOST_COLUMNS} columns; name their families")
    if len(spec.where) > MOST_CONDITIONS:
        raise IllegalArgument(f"a change stream has at most {MOST_CONDITIONS} conditions; test the rest in the reader")
    if spec.stop_row and spec.stop_row <= spec.start_row:
        raise IllegalArgument("the rows of a change stream end before they begin: swap startRow and stopRow")
    return spec
