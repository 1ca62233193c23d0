"""The WikiBench trace format: lines to requests and back (pure).

    line     := [counter SP] time SP url SP flag LF
    counter  := decimal digits; rises through a trace, but the lines are NOT in the order of their times
    time     := epoch seconds with a fraction        1190146243.326
              | epoch milliseconds, 12 or more digits 1190146243326        (TraceBench)
              | ISO 8601, UTC unless it says else     2010-05-27T09:31:55.63 (traces of 2009 and 2010)
    url      := no blank in it; whole, or a path without its leading slash, or empty (TraceBench)
    flag     := mark (";" attribute)*
    mark     := "-"                  a page view
              | "save"               an edit
              | revision "|" body    an edit whose URL-encoded text TraceBench has filled in; it has no attributes
              | "missing"            a view of a page that does not exist: ours, 404 is then the right answer
    attribute:= "v=" visitor | "s=" status that the log had | "m=HEAD" a view without its body; all ours

    929840853 1190146243.326 http://en.wikipedia.org/wiki/Judge_Me_Tender -
    1190146243.326 /wiki/No_such_page missing;v=7f3a91c2;s=404;m=HEAD

Invariants:
    I1. ``parse_line(format_line(r)) == r`` for every request; times are exact to the microsecond.
    I2. A line that cannot be read is never skipped unless the caller gave a place to report it.
    I3. ``in_order`` neither loses nor invents a request; without a window its result is sorted and stable.

Knows nothing of files, of HTTP, or of what a path means to a wiki.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Final, NamedTuple

from wikibench.errors import TraceError

VIEW: Final = "-"
SAVE: Final = "save"
MISSING: Final = "missing"
HEAD: Final = "m=HEAD"
MILLISECOND_DIGITS: Final = 12  # 10^11 seconds is the year 5138, 10^11 ms is 1973: no trace is either
MICROS: Final = 1_000_000
_KINDS: Final = {VIEW: "view", MISSING: "missing"}
KINDS: Final = ("view", "save", "missing")


class Request(NamedTuple):
    """A line of a trace.  A tuple, because a frozen dataclass takes three times as long to make."""

    time_us: int
    url: str
    flag: str = VIEW  # the mark
    counter: int | None = None
    attributes: str = ""  # joined by semicolons, as in the line

    @property
    def kind(self) -> str:
        """Return ``view``, ``save`` or ``missing``."""
        return _KINDS.get(self.flag, "save")

    def attribute(self, name: str) -> str:
        """Return the value of ``v``, ``s`` or ``m``; empty if the line has none."""
        for part in self.attributes.split(";"):
            if part.startswith(name) and part[len(name) : len(name) + 1] == "=":
                return part[len(name) + 1 :]
        return ""

    @property
    def is_save(self) -> bool:
        return self.flag == SAVE or "|" in self.flag

    @property
    def is_head(self) -> bool:
        """Whether a view is to have no body."""
        return self.attributes != "" and not self.is_save and HEAD in self.attributes.split(";")

    @property
    def is_missing(self) -> bool:
        return self.flag == MISSING


def parse_line(line: str, number: int = 1) -> Request:
    """Return the request of one line.  Raises TraceError, which names line ``number``."""
    text = line.rstrip("\r\n")
    fields = text.split(" ")
    counter: int | None = None
    if len(fields) == 4:
        if not _is_digits(fields[0]):
            raise TraceError(number, text, f"the counter {fields[0]!r} is not a number")
        counter = int(fields.pop(0))
    if len(fields) != 3:
        raise TraceError(number, text, f"{len(fields)} fields where 3 or 4 are expected (counter time url flag)")
    time, url, flag = fields
    time_us = _time_us(time)
    if time_us is None:
        raise TraceError(number, text, f"the time {time!r} is neither epoch seconds, milliseconds nor ISO 8601")
    attributes = ""
    if flag not in (VIEW, SAVE, MISSING) and "|" not in flag:
        mark, _, attributes = flag.partition(";")
        if mark not in (VIEW, SAVE, MISSING):
            raise TraceError(number, text, f"the flag {flag!r} is none of -, save, missing, revision|body")
        flag = mark
    return Request(time_us, url, flag, counter, attributes)


def parse(lines: Iterable[str], on_bad: Callable[[TraceError], None] | None = None) -> Iterator[Request]:
    """Yield the requests of ``lines`` in file order; empty lines are skipped.

    The first bad line raises TraceError.  With ``on_bad`` each bad line is passed to it, and reading continues.
    """
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield parse_line(line, number)
        except TraceError as bad:
            if on_bad is None:
                raise
            on_bad(bad)


def format_line(request: Request) -> str:
    """Return the line of a request without a line end; its time has milliseconds, or microseconds if needed."""
    seconds, micros = divmod(request.time_us, MICROS)
    fraction = f"{micros // 1000:03d}" if micros % 1000 == 0 else f"{micros:06d}"
    head = "" if request.counter is None else f"{request.counter} "
    tail = f";{request.attributes}" if request.attributes else ""
    return f"{head}{seconds}.{fraction} {request.url} {request.flag}{tail}"


def in_order(
    requests: Iterable[Request], window: int | None = None, on_late: Callable[[], None] = lambda: None
) -> Iterator[Request]:
    """Yield the requests by time.

    Without ``window`` all requests are kept in memory and sorted. With ``window`` at most that many requests are kept,
    which repairs disorder up to that many lines. A request that is further out of place comes out late, and pacing then
    starts it at once; ``on_late`` is called for each.
    """
    if window is None:
        yield from sorted(requests, key=lambda request: request.time_us)
        return
    latest_us = 0
    buffered: list[tuple[int, int, Request]] = []
    for arrival, request in enumerate(requests):
        heapq.heappush(buffered, (request.time_us, arrival, request))
        if len(buffered) > window:
            first = heapq.heappop(buffered)[2]
            if first.time_us < latest_us:
                on_late()
            latest_us = max(latest_us, first.time_us)
            yield first
    while buffered:
        yield heapq.heappop(buffered)[2]


def _is_digits(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _time_us(text: str) -> int | None:
    whole, dot, fraction = text.partition(".")
    if _is_digits(whole):
        if not dot:
            return int(whole) * 1000 if len(whole) >= MILLISECOND_DIGITS else int(whole) * MICROS
        return int(whole) * MICROS + int(fraction[:6].ljust(6, "0")) if _is_digits(fraction) else None
    return _iso_us(whole, fraction, bool(dot))


def _iso_us(whole: str, fraction: str, has_fraction: bool) -> int | None:
    # the fraction is read separately because traces write it with two digits as well as with three
    zone = ""
    for mark in ("Z", "+", "-"):
        at = fraction.find(mark)
        if at >= 0:
            fraction, zone = fraction[:at], fraction[at:]
            break
    if has_fraction and not _is_digits(fraction):
        return None
    try:
        moment = datetime.fromisoformat(whole + zone)
    except ValueError:
        return None
    if "T" not in whole:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return int(moment.timestamp()) * MICROS + int(fraction[:6].ljust(6, "0") or "0")
