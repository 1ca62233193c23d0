"""Lists for people: changes filtered (no minor edits, one author's only) and grouped by day; names by letter; pages."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Protocol, TypeVar
from zoneinfo import ZoneInfo

from wikka_port.limits import MINOR_STEPS
from wikka_port.listings import RecentChange
from wikka_port.local_time import local_time
from wikka_port.rights.guarded import GuardedWiki

T = TypeVar("T")


def some_changes(
    wiki: GuardedWiki, wanted: Callable[[RecentChange], bool], *, before: str = "", limit: int
) -> tuple[list[RecentChange], str]:
    """Return the newest changes that are ``wanted``, and the token to continue with.

    At most MINOR_STEPS times ``limit`` changes are read, so a list may be short and continue; no list has more than
    twice ``limit``.
    """
    found: list[RecentChange] = []
    token = before
    for _ in range(MINOR_STEPS):
        items, token = wiki.changes(before=token, limit=limit)
        found += [item for item in items if wanted(item)]
        if len(found) >= limit or not token:
            break
    return found, token


def changes(wiki: GuardedWiki, *, minor: bool, before: str = "", limit: int) -> tuple[list[RecentChange], str]:
    """Return the newest changes, without minor ones unless ``minor``, and the token to continue with."""
    if minor:
        return wiki.changes(before=before, limit=limit)
    return some_changes(wiki, lambda change: not change.minor, before=before, limit=limit)


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
