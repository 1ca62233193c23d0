"""Lists for people: changes filtered, grouped by day and folded by page; names by letter; pages."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, Protocol, TypeVar
from zoneinfo import ZoneInfo

from wikka_port.limits import MINOR_STEPS
from wikka_port.listings import RecentChange
from wikka_port.local_time import local_time
from wikka_port.rights.guarded import GuardedWiki
from wikka_port.schema import folded

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SomeChanges:
    changes: list[RecentChange]
    token: str  # to continue with; "": there are no more
    newest: dict[str, int]  # the newest revision of each page that was met, if the list began with the newest change


def some_changes(
    wiki: GuardedWiki, wanted: Callable[[RecentChange], bool], *, before: str = "", limit: int
) -> SomeChanges:
    """Return the newest changes that are ``wanted``.

    At most MINOR_STEPS times ``limit`` changes that may be read are searched, and no more after a step that stopped
    before it had so many (``rights.readable_lists``).  So a list may be short and continue; none has more than twice
    ``limit``.
    """
    found: list[RecentChange] = []
    newest: dict[str, int] = {}
    token = before
    for _ in range(MINOR_STEPS):
        items, token = wiki.changes(before=token, limit=limit)
        found += [item for item in items if wanted(item)]
        for item in items:
            newest.setdefault(item.name, item.number)
        if len(found) >= limit or len(items) < limit or not token:
            break
    return SomeChanges(found, token, {} if before else newest)


@dataclass(frozen=True, slots=True)
class ChangeFilter:
    """A selection of changes; every change passes its default values."""

    author: str = ""
    begins: str = ""  # of the page's name, without case
    only_new: bool = False
    minor: bool = True
    least: int = 0  # characters by which a page grew or shrank; a change of unknown size has none

    def passes(self, change: RecentChange) -> bool:
        return (
            (not self.author or change.author == self.author)
            and folded(change.name).startswith(folded(self.begins))
            and (change.is_new or not self.only_new)
            and (self.minor or not change.minor)
            and abs(change.grown or 0) >= self.least
        )


EVERY_CHANGE: Final = ChangeFilter()


def changes(wiki: GuardedWiki, wanted: ChangeFilter = EVERY_CHANGE, *, before: str = "", limit: int) -> SomeChanges:
    """Return the newest changes that pass the filter."""
    if wanted != EVERY_CHANGE:
        return some_changes(wiki, wanted.passes, before=before, limit=limit)
    found, token = wiki.changes(before=before, limit=limit)
    newest = {one.name: one.number for one in reversed(found)}
    return SomeChanges(found, token, {} if before else newest)


@dataclass(frozen=True, slots=True)
class PageChanges:
    """The changes of one page in a list, newest first."""

    changes: Sequence[RecentChange]

    @property
    def newest(self) -> RecentChange:
        return self.changes[0]

    @property
    def oldest(self) -> RecentChange:
        return self.changes[-1]

    def newest_of_others(self, name: str) -> int:
        """Return the time of the newest change that the account ``name`` did not make, or -1."""
        return next((one.time_ms for one in self.changes if one.author != name), -1)

    @property
    def authors(self) -> list[RecentChange]:
        """A change of each author, in the order of the newest ones."""
        return list({(one.author, one.signed): one for one in reversed(self.changes)}.values())[::-1]

    @property
    def grown(self) -> int | None:
        known = [one.grown for one in self.changes if one.grown is not None]
        return sum(known) if len(known) == len(self.changes) else None


def folded_by_page(found: Iterable[RecentChange]) -> list[PageChanges]:
    """Return the changes of each page together, in the order of the newest ones."""
    pages: dict[str, list[RecentChange]] = {}
    for change in found:
        pages.setdefault(change.name, []).append(change)
    return [PageChanges(one) for one in pages.values()]


def days_folded(
    found: Iterable[RecentChange], zone: ZoneInfo | None = None, *, fold: bool = True
) -> list[tuple[str, list[PageChanges]]]:
    """Return pairs of an ISO day in the reader's zone and its changes, those of one page together if ``fold``."""
    days = by_day(found, zone)
    return [(day, folded_by_page(one) if fold else [PageChanges([change]) for change in one]) for day, one in days]


class Timed(Protocol):
    @property
    def time_ms(self) -> int: ...


Change = TypeVar("Change", bound=Timed)


def by_day(changes: Iterable[Change], zone: ZoneInfo | None = None) -> list[tuple[str, list[Change]]]:
    """Return pairs of an ISO day in the reader's zone and its changes, in the order given."""
    days = groupby(changes, lambda change: local_time(change.time_ms, zone)[:10])
    return [(day, list(group)) for day, group in days]


def letter(name: str) -> str:
    """Return the first letter of ``name`` as a capital without accents, or ``#`` if it begins with no letter."""
    first = unicodedata.normalize("NFD", name[:1])[:1].upper()[:1]
    return first if first.isalpha() else "#"


def by_letter(names: Iterable[str]) -> list[tuple[str, list[str]]]:
    return [(first, list(group)) for first, group in groupby(names, letter)]


def page_of(items: Sequence[T], rows: int) -> tuple[Sequence[T], bool]:
    """Return the first ``rows`` items, and whether there are more; the caller reads ``rows + 1`` items."""
    return items[:rows], len(items) > rows
