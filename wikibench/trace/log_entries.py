"""Entries of access logs, whatever their format, and the texts of their times (pure).

Invariants:
    I1. An Entry has nothing of a line but time, method, target, host and status: no address, user or agent, because a
        trace has no place for them.  A visitor is in it only if ``number_visitors`` was called, and as the number that
        was given for the address.

Knows nothing of formats: ``line_formats`` and ``json_formats`` make entries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Final, Protocol

MICROS: Final = 1_000_000
TIMES_KEPT: Final = 4_096  # texts of times that are remembered: lines of a second have the same
UNREADABLE: Final = "unreadable line"
NO_REQUEST: Final = "no request in the line"
COMMENT: Final = "comment"
UNITS_US: Final = {"s": 1_000_000.0, "ms": 1_000.0, "us": 1.0, "ns": 0.001}
MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class FormatError(ValueError):
    """A format that cannot be used; the text says what can."""


@dataclass(slots=True)
class Entry:
    """A request of a log."""

    time_us: int  # of its start
    is_whole: bool  # the log has whole seconds
    method: str
    target: str  # path and query, or an address
    status: int
    host: str = ""
    before_us: int = 0  # from the start to the logged time; taken off ``time_us`` already
    visitor: str = ""


class LogFormat(Protocol):
    """The interface of a format."""

    name: str

    def parse(self, line: str) -> Entry | str:
        """Return the entry of a line, or the reason why it has none."""

    def number_visitors(self, visitor_of: Callable[[str], str]) -> bool:
        """Give entries the visitor that ``visitor_of`` says for an address.  Return False if lines have no address."""


SECOND_DIGITS: Final = 11  # seconds since 1970 have no more before the year 5138


def clf_time(text: str) -> int:
    """Return the microseconds of ``10/Oct/2000:13:55:36 -0700``, with a fraction of the second or without."""
    day, month, rest = text.split("/", 2)
    year, hour, minute, second = rest.partition(" ")[0].split(":")
    whole, _, fraction = second.partition(".")
    zone = rest.partition(" ")[2] or "+0000"
    offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[3:5])) * (-1 if zone[0] == "-" else 1)
    at = datetime(
        int(year), MONTHS.index(month) + 1, int(day), int(hour), int(minute), int(whole), tzinfo=timezone(offset)
    )
    return int(at.timestamp()) * MICROS + _fraction_us(fraction)


def iso_time(text: str) -> int:
    """Return the microseconds of an ISO time; UTC if it has no zone."""
    head, dot, rest = text.partition(".")
    digits = rest[: len(rest) - len(rest.lstrip("0123456789"))] if dot else ""
    moment = datetime.fromisoformat(head + rest[len(digits) :] if dot else text)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return int(moment.timestamp()) * MICROS + _fraction_us(digits)


def epoch_time(text: str) -> int:
    """Return the microseconds of a number of seconds, milliseconds, microseconds or nanoseconds since 1970."""
    whole, _, fraction = text.partition(".")
    unit: int = 10 ** (max(len(whole.lstrip("-")) - 10, 0) // 3 * 3)  # of this century, seconds have ten digits
    micros: int = int(whole) * MICROS // unit
    return micros + _fraction_us(fraction) // unit


def _fraction_us(digits: str) -> int:
    return int(digits[:6].ljust(6, "0")) if digits else 0


def _is_whole(text: str, time_us: int) -> bool:
    """Return whether the log has whole seconds: milliseconds since 1970 may end in 000 by chance."""
    return time_us % MICROS == 0 and "." not in text and not (text.isdecimal() and len(text) > SECOND_DIGITS)


def any_time(text: str) -> int:
    """Return the microseconds of a time in any of the three forms."""
    if "/" in text:
        return clf_time(text.strip("[]"))
    return iso_time(text) if "-" in text[1:] or ":" in text else epoch_time(text)


class Times:
    """A reader of texts of times, which remembers the last ones."""

    __slots__ = ("_known", "_read")

    def __init__(self, read: Callable[[str], int]) -> None:
        self._read = read
        self._known: dict[str, tuple[int, bool]] = {}

    def at(self, text: str) -> tuple[int, bool]:
        found = self._known.get(text)
        if found is None:
            if len(self._known) >= TIMES_KEPT:
                self._known.clear()
            time_us = self._read(text)
            found = self._known[text] = (time_us, _is_whole(text, time_us))
        return found
