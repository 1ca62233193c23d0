"""Lists for people: without minor edits or those of others, by day, by letter, by pages."""

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
    """With ``minor`` all of them."""
    if minor:
        return wiki.changes(before=before, limit=limit)
    return some_changes(wiki, lambda change: not change.minor, before=before, limit=limit)


class Timed(Protocol):
    @property
    def time_ms(self) -> int: ...


Change = TypeVar("Change", bound=Timed)


def by_day(changes: Iterable[Change], zone: ZoneInfo | None = None) -> list[tuple[str, list[Change]]]:
    """(ISO day of the reader, its changes), in the order given."""
    days = groupby(changes, lambda change: local_time(change.time_ms, zone)[:10])
    return [(day, list(group)) for day, group in days]


def letter(name: str) -> str:
    """Under which letter ``name`` stands: its first, in capitals and without marks; ``#`` for what is none."""
    first = unicodedata.normalize("NFD", name[:1])[:1].upper()[:1]
    return first if first.isalpha() else "#"


def by_letter(names: Iterable[str]) -> list[tuple[str, list[str]]]:
    return [(first, list(group)) for first, group in groupby(names, letter)]


def page_of(items: Sequence[T], rows: int) -> tuple[Sequence[T], bool]:
    """Return the first ``rows`` of what was read with ``rows + 1``, and whether there are more."""
    return items[:rows], len(items) > rows
