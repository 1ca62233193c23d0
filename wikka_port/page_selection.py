"""Pages selected by their names, owners, last authors, own lists and times of change, for administrators.

Names come from the index, all else from the rows of the pages themselves: a page is judged by what it is now, and a
name that the index still has of a page that is gone is left out.

Knows nothing of rights: callers have checked that the person administers the site.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from wikka_port.accounts.rows import Cells, Rows
from wikka_port.limits import JOB_PAGES_MAX, LISTED_STEP, PAGES_LISTED, PAGES_SCANNED
from wikka_port.names import page_key
from wikka_port.page_rows import head_of, is_stale, is_there, text_in, time_of
from wikka_port.rights.rules import FAMILY, LISTED, NO_OWNERS, Privilege, page_rights
from wikka_port.schema import (
    HEAD,
    OWNER,
    PAGES,
    REVISION_AUTHOR,
    REVISIONS,
    SIGNED,
    TIME,
    USER,
    VERSIONCOUNT,
    folded,
    revision_row,
)

NOBODY: Final = "(Nobody)"  # as an owner: pages that have none
OWN, NONE = "own", "none"  # of lists
_COLUMNS: Final = (FAMILY, OWNER, USER, SIGNED, TIME, VERSIONCOUNT, HEAD)


class Names(Protocol):
    def names(self, *, start: str = "", prefix: str = "", limit: int = 500) -> list[str]: ...


@dataclass(frozen=True, slots=True)
class SelectedPage:
    name: str
    owner: str  # "": none
    author: str  # of the newest revision
    signed: str  # the kind of the author's name (``schema``)
    time_ms: int
    lists: tuple[Privilege, ...]  # of its own


@dataclass(frozen=True, slots=True)
class PageFilter:
    """A field that is empty or 0 takes every page.  Case and accents of names do not count."""

    prefix: str = ""
    owner: str = ""  # or NOBODY
    author: str = ""  # of the newest revision
    lists: str = ""  # OWN: with a list of its own, NONE: without
    since_ms: int = 0  # changed at that time or later
    until_ms: int = 0  # changed before

    def takes(self, page: SelectedPage) -> bool:
        """Whether the page matches all but the prefix, by which names are read."""
        return (
            (not self.owner or _is_of(page.owner, self.owner))
            and (not self.author or folded(page.author) == folded(self.author))
            and (not self.lists or bool(page.lists) == (self.lists == OWN))
            and page.time_ms >= self.since_ms
            and (not self.until_ms or page.time_ms < self.until_ms)
        )

    @property
    def is_empty(self) -> bool:
        return self == PageFilter()


def _is_of(owner: str, wanted: str) -> bool:
    return not owner if wanted in NO_OWNERS else folded(owner) == folded(wanted)


def selected(
    rows: Rows,
    names: Names,
    wanted: PageFilter,
    *,
    start: str = "",
    most: int = PAGES_LISTED,
    reads: int = PAGES_SCANNED,
) -> tuple[list[SelectedPage], str]:
    """Return up to ``most`` pages by name, from the name ``start`` on, and the name to go on from, "" at the end.

    ``reads`` names are read at most, so a part may be short though others follow.  Raises StoreUnavailable.
    """
    found, looked = list[SelectedPage](), 0
    while True:
        step = names.names(start=start, prefix=wanted.prefix, limit=LISTED_STEP + 1)
        for name, page in zip(step, pages_named(rows, step[:LISTED_STEP]), strict=False):
            if len(found) == most or looked == reads:
                return found, name
            looked += 1
            if page is not None and wanted.takes(page):
                found.append(page)
        if len(step) <= LISTED_STEP:
            return found, ""
        start = step[LISTED_STEP]


def selected_of_all(rows: Rows, names: Names, wanted: PageFilter) -> tuple[list[SelectedPage], str]:
    """Return the pages of one job: those among the first JOB_PAGES_MAX names, and the name after these, or ""."""
    return selected(rows, names, wanted, most=JOB_PAGES_MAX, reads=JOB_PAGES_MAX)


def pages_named(rows: Rows, names: list[str]) -> Iterator[SelectedPage | None]:
    """Yield for each name its page, or None if there is none, with one call for all.  Raises StoreUnavailable."""
    found = rows.rows(PAGES, [page_key(name) for name in names], _COLUMNS)
    for name in names:
        cells = found.get(page_key(name), {})
        yield _page(name, cells, rows) if is_there(cells) else None


def _page(name: str, cells: Cells, rows: Rows) -> SelectedPage:
    newest, author = cells, text_in(cells, USER)
    if is_stale(cells):  # a save that a crash cut short: its revision has what the row lacks
        newest = rows.row(REVISIONS, revision_row(page_key(name), head_of(cells)), (TIME, SIGNED, REVISION_AUTHOR))
        author = text_in(newest, REVISION_AUTHOR)
    rights = page_rights(cells, cells.get(OWNER, b""))
    owner = "" if rights.owner in NO_OWNERS else rights.owner
    lists = tuple(one for one in LISTED if one in rights.lists)
    return SelectedPage(name, owner, author, text_in(newest, SIGNED), time_of(newest), lists)
