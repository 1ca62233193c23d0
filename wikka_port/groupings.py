"""How lists are cut for people (pure): changes by day, names by letter, a long list by pages.

Knows nothing of HTML.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Protocol, TypeVar
from zoneinfo import ZoneInfo

from wikka_port.local_time import local_time

T = TypeVar("T")


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
