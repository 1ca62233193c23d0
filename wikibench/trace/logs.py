"""Access logs to requests: which lines are page views, and when in its second each began (pure).

    GET, HEAD       a view; with status 404 a view of a page that is not there (``missing``)
    POST            an edit, if its address matches ``saves``
    dropped         everything else, counted by reason: other methods, files that pages are made of, redirects (the
                    request that follows one is in the log too), refused ones (4xx but 404), lines without a request

Most logs have whole seconds.  Replayed as logged, all requests of a second would come at once, and the wiki would look
many times as slow as it was; so k requests of a second get k random moments of it, in their order.

Invariants:
    I1. Each line is kept or counted under one reason (``Tally``).
    I2. The lines of one second keep their order, also if lines of other seconds stand between them, as in the log of a
        server that notes the begin of a request at its end: lines wait for others of their second until the log is
        OPEN_S further, and at most SECOND_LINES of them.

Knows nothing of files, and of formats only that they give entries.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from gauge.arrivals import Uniform, in_order
from wikibench.addresses.mapping import Map
from wikibench.addresses.paths import address_path, name_path
from wikibench.limits import BAD_LINES_KEPT

from .lines import HEAD, MISSING, SAVE, VIEW, Request
from .log_entries import COMMENT, MICROS, NO_REQUEST, UNREADABLE, Entry, LogFormat

SECOND_LINES: Final = 100_000  # that wait for others of their second; a second with more is spread in several groups
OPEN_S: Final = 60  # a request of more seconds is rare
STATIC: Final = re.compile(
    r"\.(?:css|js|mjs|map|png|jpe?g|gif|svg|ico|webp|avif|woff2?|ttf|eot|otf)(?:\?|$)", re.IGNORECASE
)
_STATIC: Final = "a file that pages are made of (--keep static)"
KEEPABLE: Final = ("static", "redirects", "refused")


@dataclass(frozen=True, slots=True)
class Selection:
    """``views`` restricts the views to addresses that match; ``saves`` makes edits of POSTs to those that match."""

    views: re.Pattern[str] | None = None
    saves: re.Pattern[str] | None = None
    keep: frozenset[str] = frozenset()  # of KEEPABLE
    is_plain: bool = False  # without attributes
    site: Map | None = None  # says what is a view and a save, in place of ``views`` and ``saves``

    def request_of(self, entry: Entry) -> Request | str:
        """Return the request of an entry, or the reason why it is dropped."""
        target, status = entry.target, entry.status
        if self.site is not None:
            return self._mapped(self.site, entry)
        if not target.startswith("/"):
            if "://" not in target:
                return NO_REQUEST
        elif entry.host:
            target = f"http://{entry.host}{target}"
        if entry.method == "POST":
            if self.saves is None or not self.saves.search(entry.target):
                return "a POST that is no save (--save)"
            flag = SAVE
        elif entry.method in ("GET", "HEAD"):
            if self.views is not None and not self.views.search(entry.target):
                return "an address that --view does not match"
            if "static" not in self.keep and STATIC.search(entry.target):
                return _STATIC
            flag = MISSING if status == 404 else VIEW
        else:
            return "another method than GET, HEAD and POST"
        if status >= 300 and (reason := self._refusal(entry, flag)) is not None:
            return reason
        return Request(entry.time_us, target, flag, None, "" if self.is_plain else _attributes(entry))

    def _mapped(self, site: Map, entry: Entry) -> Request | str:
        """Return the request of an entry under the canonical name of its page."""
        kind, title = site.kind_of(entry.method, address_path(entry.target))
        if kind == "static" and "static" in self.keep:
            url, flag = address_path(entry.target), VIEW
        elif kind == "static":
            return _STATIC
        elif kind == "other" or not title:
            return "an address that is neither a view nor a save by --map"
        else:
            url, flag = f"/{name_path(title)}", SAVE if kind == "save" else MISSING if entry.status == 404 else VIEW
        reason = self._refusal(entry, flag)
        attributes = "" if self.is_plain else _attributes(entry)
        return reason or Request(entry.time_us, url, flag, None, attributes)

    def _refusal(self, entry: Entry, flag: str) -> str | None:
        """Return the reason why the answer of a request drops it, if it does."""
        if 300 <= entry.status < 400 and entry.status != 304 and "redirects" not in self.keep and flag != SAVE:
            return "a redirect, whose target is in the log too (--keep redirects)"
        if 400 <= entry.status < 500 and flag != MISSING and "refused" not in self.keep:
            return "refused by the server, 4xx (--keep refused)"
        return None


def _attributes(entry: Entry) -> str:
    """Return the attributes of a line, as ``lines`` has them."""
    found = f"v={entry.visitor};" if entry.visitor else ""
    if entry.status:
        found += f"s={entry.status};"
    if entry.method == "HEAD":
        found += f"{HEAD};"
    return found[:-1]


@dataclass(slots=True)
class Tally:
    """The lines of a log that were read."""

    lines: int = 0
    kept: int = 0
    whole_seconds: int = 0  # of those kept
    dropped: Counter[str] = field(default_factory=Counter)
    first_bad: list[tuple[int, str]] = field(default_factory=list)  # the first unreadable lines, with their numbers
    note: Callable[[int, str, str], None] | None = None  # takes number, reason and text of each line that is dropped

    @property
    def unreadable(self) -> int:
        return self.dropped[UNREADABLE]

    def keep(self, *, is_whole: bool) -> None:
        self.lines += 1
        self.kept += 1
        self.whole_seconds += is_whole

    def drop(self, reason: str, line: str) -> None:
        self.lines += 1
        self.dropped[reason] += 1
        if reason == UNREADABLE and len(self.first_bad) < BAD_LINES_KEPT:
            self.first_bad.append((self.lines, line.rstrip("\n")))
        if self.note is not None:
            self.note(self.lines, reason, line.rstrip("\r\n"))

    def check(self) -> None:
        """Raise AssertionError if I1 is broken."""
        assert self.lines == self.kept + self.dropped.total()


def requests_of(
    lines: Iterable[str], log_format: LogFormat, selection: Selection, tally: Tally, rng: Uniform | None
) -> Iterator[Request]:
    """Yield the requests of a log, and count all lines in ``tally``.

    ``rng`` gives the moments within whole seconds; without it they stay as logged, and requests come in the order of
    the lines.
    """
    kept = _kept(lines, log_format, selection, tally)
    return (request for request, _ in kept) if rng is None else _within_seconds(kept, rng)


def _kept(
    lines: Iterable[str], log_format: LogFormat, selection: Selection, tally: Tally
) -> Iterator[tuple[Request, int | None]]:
    """Yield each request with its logged second, or None if its log has fractions."""
    for line in lines:
        entry = log_format.parse(line) if not line.isspace() else COMMENT
        found = selection.request_of(entry) if isinstance(entry, Entry) else entry
        if isinstance(found, str):
            tally.drop(found, line)
            continue
        assert isinstance(entry, Entry)
        tally.keep(is_whole=entry.is_whole)
        yield found, (entry.time_us + entry.before_us) // MICROS if entry.is_whole else None


def _within_seconds(kept: Iterable[tuple[Request, int | None]], rng: Uniform) -> Iterator[Request]:
    waiting: dict[int, list[Request]] = {}  # by second
    count, latest = 0, -(1 << 62)
    for request, second in kept:
        if second is None:
            yield request
            continue
        group = waiting.get(second)
        if group is None:
            group = waiting[second] = []
        group.append(request)
        count += 1
        if second > latest:
            latest = second
            for done in sorted(one for one in waiting if one < latest - OPEN_S):
                count -= len(waiting[done])
                yield from _spread(waiting.pop(done), rng)
        if count >= SECOND_LINES:
            first = min(waiting)
            count -= len(waiting[first])
            yield from _spread(waiting.pop(first), rng)
    for second in sorted(waiting):
        yield from _spread(waiting[second], rng)


def _spread(group: list[Request], rng: Uniform) -> Iterator[Request]:
    for request, at_s in zip(group, in_order(rng, len(group), 1.0), strict=True):
        at_us = request.time_us + min(int(at_s * MICROS), MICROS - 1)
        yield Request(at_us, request.url, request.flag, None, request.attributes)
