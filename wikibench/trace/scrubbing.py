"""Traces that can be handed on: without what an address can say of a visitor (pure).

    host, counter, visitor   dropped
    query parameters         dropped, but those that are allowed by name
    texts of edits           dropped: the mark is ``save``
    rare pages               addresses that fewer than so many visitors asked for get a name made with a key; on demand
                             all do.  A secret link, a search, a page of a person is rare
    times                    moved by whole weeks, into the week of FIRST_WEEK_US: hours and weekdays stay

Invariants:
    I1. A page has one new name, and two pages have two; without the key nobody can find the old name.
    I2. An address that keeps its name is in ``common``: at least ``rare`` visitors asked for it.
    I3. The number of requests, their kinds, their statuses and the gaps between them stay.

Knows nothing of files; the key comes from the caller, who throws it away.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from wikibench.addresses.paths import Layout, address_path

from .lines import MICROS, SAVE, Request
from .sampling import PAGE_COUNTERS

FIRST_WEEK_US: Final = 978_307_200 * MICROS  # 1 January 2001, a Monday
WEEK_US: Final = 7 * 86_400 * MICROS
NAME_LETTERS: Final = 12
_LAYOUT: Final = Layout()
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"


def address_of(request: Request, allowed: frozenset[str]) -> str:
    """Return path and allowed parameters of a request; of an edit the address of its page."""
    path, _, query = (_LAYOUT.page(request.url) if request.is_save else address_path(request.url)).partition("?")
    if not query or not allowed:
        return path
    kept = [part for part in query.split("&") if part.partition("=")[0] in allowed]
    return f"{path}?{'&'.join(kept)}" if kept else path


class Askers:
    """The visitors of each address, up to ``rare`` of them; without visitors, the requests.

    At most ``most`` addresses are counted.  If there are more, the least asked for lose their counter, and are rare.
    """

    def __init__(self, rare: int, most: int = PAGE_COUNTERS) -> None:
        self._rare = rare
        self._most = most
        self._common: set[str] = set()
        self._seen: dict[str, set[str]] = {}
        self._count = 0

    def add_request(self, address: str, visitor: str) -> None:
        if address in self._common:
            return
        seen = self._seen.get(address)
        if seen is None:
            if len(self._seen) >= self._most:
                fewest = min(map(len, self._seen.values()))
                self._seen = {name: askers for name, askers in self._seen.items() if len(askers) > fewest}
            seen = self._seen[address] = set()
        self._count += 1
        seen.add(visitor or f"#{self._count}")
        if len(seen) >= self._rare:
            del self._seen[address]
            self._common.add(address)

    @property
    def common(self) -> frozenset[str]:
        return frozenset(self._common)


@dataclass(frozen=True, slots=True)
class Scrub:
    """The change of each request."""

    key: bytes
    common: frozenset[str]  # addresses that keep their names
    allowed: frozenset[str] = frozenset()  # parameters
    shift_us: int = 0

    def request_of(self, request: Request) -> Request:
        """Return the scrubbed request."""
        address = address_of(request, self.allowed)
        if address not in self.common:
            address = f"/{self.name_of(address)}"
        kept = ";".join(f"{name}={value}" for name in ("s", "m") if (value := _plain(request.attribute(name))))
        flag = SAVE if request.is_save else request.flag
        return Request(request.time_us + self.shift_us, address, flag, None, kept)

    def name_of(self, address: str) -> str:
        """Return a name of NAME_LETTERS letters: two of a million pages have the same with a chance of 1 in 200,000."""
        number = int.from_bytes(hmac.digest(self.key, address.encode("utf-8", "surrogateescape"), "sha256")[:12], "big")
        letters = []
        for _ in range(NAME_LETTERS):
            number, letter = divmod(number, len(_LETTERS))
            letters.append(_LETTERS[letter])
        return "".join(letters).capitalize()


def _plain(value: str) -> str:
    """Return the value of an attribute that we write ourselves; a foreign trace could have anything in it."""
    return value if value.isalnum() and len(value) <= 7 and value.isascii() else ""


def weeks_to_shift(first_us: int) -> int:
    """Return by how many weeks a trace is moved that begins at ``first_us``."""
    return (FIRST_WEEK_US - first_us) // WEEK_US + (1 if (FIRST_WEEK_US - first_us) % WEEK_US else 0)


def safe_parameter(name: str) -> str:
    """Return the name of a parameter as addresses have it."""
    return quote(name, safe="")
