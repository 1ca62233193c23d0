"""Lists of names without the pages that the visitor may not read, in parts of bounded work.

A list reads on until its part has the requested number of names; after LISTED_QUICK names read it calls
``before_expensive_read``, and after LISTED_SCANNED it stops: the part is short, and its token leads to the next one.
So nothing is lost to somebody who goes on, and no request reads the whole index of a wiki whose pages are hidden from
its visitor.  The token of a name that may not be read is sealed (``sealed_places``).  For a visitor who may read all
pages nothing is filtered, and nothing more is read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from wikka_port.limits import LISTED_QUICK, LISTED_SCANNED, LISTED_STEP
from wikka_port.listings import Listings
from wikka_port.names import page_key
from wikka_port.rights.access import PageAccess
from wikka_port.schema import name_row
from wikka_port.sealed_places import SealedPlaces

_NAMES: Final = "names"  # kinds of lists (``sealed_places``)
_ORPHANED: Final = "orphaned"
_LINKS: Final = "links"


class NameParts:
    __slots__ = ("_before_expensive_read", "_lists", "access", "places")

    def __init__(
        self,
        lists: Listings,
        access: PageAccess,
        before_expensive_read: Callable[[], object],
        secret: Callable[[], bytes],
    ) -> None:
        """Call ``before_expensive_read``, which may raise, before a long read for one list; ``secret`` seals places."""
        self.access = access
        self.places = SealedPlaces(secret)
        self._lists = lists
        self._before_expensive_read = before_expensive_read

    def names(self, *, start: str = "", prefix: str = "", limit: int = 500) -> list[str]:
        """Return names, alphabetical; fewer than there are if LISTED_SCANNED were read (``names_part``)."""
        return self._names(start, prefix, limit)[0]

    def names_part(self, *, start: str = "", prefix: str = "", limit: int) -> tuple[list[str], str]:
        """Return names from ``start`` on, alphabetical, and the ``start`` of the next part, "" at the end.

        ``start`` may be any text.  A part may have few names, or none, though others follow.
        """
        found, stopped = self._names(start, prefix, limit + 1)
        if len(found) > limit:
            return found[:limit], found[limit]
        return found, self.places.sealed(_NAMES, stopped) if stopped else ""

    def _names(self, start: str, prefix: str, limit: int) -> tuple[list[str], str]:
        stopped = self.places.opened(_NAMES, start)

        def fetch(last: str, number: int) -> list[str]:
            if not last:
                return self._lists.names(start=start if stopped is None else "", prefix=prefix, limit=number)
            found = self._lists.names(start=last, prefix=prefix, limit=number + 1)
            return found[1:] if found[:1] == [last] else found[:number]

        return self._gathered(fetch, stopped or "", limit)

    def orphaned_part(self, *, after: str = "", limit: int = 200) -> tuple[list[str], str]:
        """Return pages to which none links, alphabetical, and the ``after`` of the next part, "" at the end."""

        def fetch(last: str, number: int) -> list[str]:
            return self._lists.orphaned(after=last, limit=number)

        return self._part(_ORPHANED, self._gathered(fetch, self._after(_ORPHANED, after), limit + 1), limit)

    def backlinks(self, name: str, *, limit: int) -> list[str]:
        """Return pages that link to ``name``; fewer than there are if LISTED_SCANNED were read (``backlinks_part``)."""
        return self.backlinks_part(name, limit=limit)[0]

    def backlinks_part(self, name: str, *, after: str = "", limit: int) -> tuple[list[str], str]:
        """Return readable pages that link to ``name``, and the ``after`` of the next part, "" at the end.

        They are in the order of keys; if one part has all of them, alphabetical.  Raises NotAllowed if ``name`` may not
        be read.
        """
        name = self.access.check_readable(name)

        def fetch(last: str, number: int) -> list[str]:
            found = self._lists.backlinks(name, after=last, limit=number)
            return sorted(found, key=page_key)  # a complete list comes in alphabetical order

        begin = self._after(_LINKS, after)
        found, onward = self._part(_LINKS, self._gathered(fetch, begin, limit + 1), limit)
        return (found if begin or onward else sorted(found, key=name_row)), onward

    # --- parts -------------------------------------------------------------------------------------

    def _gathered(self, fetch: Callable[[str, int], list[str]], after: str, limit: int) -> tuple[list[str], str]:
        """Return up to ``limit`` names after ``after`` that may be read.

        If the search stopped before it had so many, the name where it stopped comes with them, else "".
        ``fetch(after, n)`` returns up to n names after ``after``.
        """
        if self.access.sees_all():
            return fetch(after, limit), ""
        found: list[str] = []
        looked, step = 0, limit
        while True:
            names = fetch(after, step)
            kept = self.access.listed(names)
            found += [name for name in names if name in kept]
            looked += len(names)
            if len(found) >= limit or len(names) < step:
                return found[:limit], ""
            after, step = names[-1], LISTED_STEP
            if looked >= max(limit, LISTED_SCANNED):
                return found, after
            if looked > LISTED_QUICK:
                self._before_expensive_read()

    def _part(self, kind: str, gathered: tuple[list[str], str], limit: int) -> tuple[list[str], str]:
        """Return up to ``limit`` of the names that ``_gathered`` found, and the token of the next part."""
        found, stopped = gathered
        if len(found) > limit:
            return found[:limit], found[limit - 1]
        return found, self.places.sealed(kind, stopped) if stopped else ""

    def _after(self, kind: str, given: str) -> str:
        """Return the name in a token, or the one that somebody typed."""
        opened = self.places.opened(kind, given)
        return given if opened is None else opened
