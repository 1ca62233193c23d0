"""The lists of a wiki, and its counts, without the pages that the visitor may not read.

The filter is ``access.listed``.  Lists of ``listings`` without a method here are not available to visitors.  A list of
changes reads on, and stops, as those of names do (``name_parts``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from wikka_port.comments.recent_comments import ListedComment
from wikka_port.limits import (
    COMMENTED_PAGES_COUNTED,
    COMMENTS_SCANNED,
    LISTED_QUICK,
    LISTED_SCANNED,
    LISTED_STEP,
    RANDOM_TRIES,
    SEARCHED_NAMES,
)
from wikka_port.listings import RecentChange
from wikka_port.names import page_key
from wikka_port.rights.name_parts import NameParts
from wikka_port.rights.rules import Privilege
from wikka_port.schema import folded, name_row
from wikka_port.search import nearest
from wikka_port.search.found_documents import Rights
from wikka_port.search.query import Query
from wikka_port.search.searching import Results
from wikka_port.search.suggesting import HeadingOf

CHANGES: Final = "changes"  # kinds of lists (``sealed_places``)
_COMMENTS: Final = "comments"


class ReadableLists(NameParts):
    __slots__ = ()

    def _kept(self, found: list[str], limit: int) -> list[str]:
        kept = self.access.listed(found)
        return [name for name in found if name in kept][:limit]

    def owned(self, owner: str, *, limit: int) -> list[str]:
        return self._kept(self._lists.owned(owner, limit=limit), limit)

    def wanted(self, *, after: str = "", limit: int = 200) -> list[tuple[str, int]]:
        """Return wanted names with the number of readable pages that link to them; names without any are left out."""
        if self.access.sees_all():
            return self._lists.wanted(after=after, limit=limit)
        found: list[tuple[str, int]] = []
        looked = 0
        while len(found) < limit:
            items = self._lists.wanted(after=after, limit=LISTED_STEP)
            linking = self._lists.linking([name for name, _ in items])
            kept = self.access.listed(source for sources in linking.values() for source in sources)
            counts = ((name, sum(source in kept for source in linking.get(name, ()))) for name, _ in items)
            found += [(name, count) for name, count in counts if count]
            if len(items) < LISTED_STEP:
                break
            after = items[-1][0]
            looked += sum(map(len, linking.values()))
            if looked > LISTED_QUICK:
                self._before_expensive_read()
        return found[:limit]

    def most_wanted(self, *, limit: int = 200) -> list[tuple[str, int]]:
        if self.access.sees_all():
            return self._lists.most_wanted(limit=limit)
        return sorted(self.wanted(limit=SEARCHED_NAMES), key=lambda item: (-item[1], name_row(item[0])))[:limit]

    def initials(self, *, limit: int = 200) -> list[str]:
        if self.access.sees_all():
            return self._lists.initials(limit=limit)
        return sorted({folded(name)[:1] for step in self._all_names() for name in step})[:limit]

    def some_page(self, key: str) -> str | None:
        """Return some page that may be read, or None if none is found in RANDOM_TRIES attempts."""
        for _ in range(RANDOM_TRIES):
            name = self._lists.some_page(key)
            if name is None or self.access.listed([name]):
                return name
            key = page_key(name).decode() + "0"
        return None

    def search(self, query: Query, *, page: int = 1, pages: int = 0) -> Results:
        """Search only what may be read; counts and suggested spellings leave out everything else."""
        rights = Rights(
            None if self.access.sees_all() else self.access.listed,
            lambda names: self.access.listed(names, Privilege.COMMENT_READ),
        )
        found = self._lists.search(query, page=page, pages=pages, rights=rights)
        return found if found.count else replace(found, instead="", has_more=False)

    def languages(self) -> list[str]:
        """Return the languages of pages, also of unreadable ones; this list is never shown to visitors."""
        return self._lists.languages()

    def suggested(self, typed: str, *, most: int = 8) -> list[str]:
        return self._kept(self._lists.suggested(typed, most=most if self.access.sees_all() else LISTED_STEP), most)

    def suggested_headings(self, typed: str, *, most: int) -> list[HeadingOf]:
        readable = None if self.access.sees_all() else self.access.listed
        return self._lists.suggested_headings(typed, most=most, readable=readable)

    def nearest(self, name: str, *, pages: int) -> list[str]:
        return self._kept(self._lists.nearest(name, pages=pages), nearest.MOST)

    def search_titles(self, text: str, *, limit: int = 100) -> list[str]:
        return self._kept(
            self._lists.search_titles(text, limit=limit if self.access.sees_all() else SEARCHED_NAMES), limit
        )

    def count_pages(self) -> int:
        if self.access.sees_all():
            return self._lists.count_pages()
        return sum(map(len, self._all_names()))

    def count_few_pages(self, most: int) -> int | None:
        """Count the pages that may be read; None if the wiki has more than ``most``, some LISTED_STEP more or fewer."""
        count = 0
        for step, names in enumerate(self._all_names()):
            if step * LISTED_STEP >= most:
                return None
            count += len(names)
        return count

    def count_pages_roughly(self) -> int:
        """Count all pages, also unreadable ones; the number serves the ranking of results and is never shown."""
        return self._lists.count_pages_roughly()

    def count_changes(self) -> int:
        if self.access.sees_all():
            return self._lists.count_changes()
        count, token, kept = 0, "", dict[str, bool]()
        while True:
            items, token = self._lists.changes(before=token, limit=LISTED_STEP)
            unknown = {item.name for item in items} - kept.keys()
            kept |= dict.fromkeys(unknown, False) | dict.fromkeys(self.access.listed(unknown), True)
            count += sum(kept[item.name] for item in items)
            if not token:
                return count

    def _all_names(self) -> Iterator[set[str]]:
        """Yield the names of all pages that may be read, in steps."""
        start = ""
        while names := self._lists.names(start=start, limit=LISTED_STEP):
            yield self.access.listed(names[1:] if names[0] == start else names)
            if len(names) < LISTED_STEP:
                return
            start = names[-1]

    def recent_comments(self, *, user: str = "", before: str = "", limit: int = 50) -> tuple[list[ListedComment], str]:
        """Return the newest comments that may be read, or those of an account, and the token to continue with.

        The token is that of the last comment returned.  At most COMMENTS_SCANNED rows are read: then the list may be
        short though others follow, and the token is a sealed one.
        """
        found: list[ListedComment] = []
        token, looked = self._after(_COMMENTS, before), 0
        while looked < COMMENTS_SCANNED:
            step = self._lists.recent_comments(user=user, before=token, limit=LISTED_STEP if looked else limit)
            kept = self.access.listed((one.page for one in step.found), Privilege.COMMENT_READ)
            found += [one for one in step.found if one.page in kept]
            if len(found) > limit or (len(found) == limit and step.onward):
                return found[:limit], found[limit - 1].token
            if not step.onward:
                return found, ""
            token = step.onward
            looked += LISTED_STEP
            if looked > LISTED_QUICK:
                self._before_expensive_read()
        return found, self.places.sealed(_COMMENTS, token)

    def count_comments(self) -> tuple[int, bool]:
        """Count the comments that may be read, and say whether there may be more.

        The comments of COMMENTED_PAGES_COUNTED pages are counted, in the order of the keys of their histories.  Costs
        three calls for LISTED_STEP of them, for somebody who may read every page two.
        """
        total, token = 0, ""
        for looked in range(0, COMMENTED_PAGES_COUNTED, LISTED_STEP):
            if looked > LISTED_QUICK:
                self._before_expensive_read()
            counts, token = self._lists.comment_counts(after=token)
            kept = self.access.listed(counts, Privilege.COMMENT_READ)
            total += sum(counts[name] for name in kept)
            if not token:
                return total, False
        return total, True

    def changes(self, *, before: str = "", limit: int = 50) -> tuple[list[RecentChange], str]:
        """Return changes of readable pages, the newest first, and the token of the next part, "" at the end.

        The token is that of the last one shown, so that it reveals no other; a sealed one if LISTED_SCANNED were read.
        """
        before = self._after(CHANGES, before)
        if self.access.sees_all():
            return self._lists.changes(before=before, limit=limit)
        found: list[RecentChange] = []
        token, looked, step = before, 0, limit
        while True:
            items, onward = self._lists.changes(before=token, limit=step)
            kept = self.access.listed(item.name for item in items)
            shown = [place for place, item in enumerate(items) if item.name in kept]
            missing = limit - len(found)
            if len(shown) > missing or (len(shown) == missing and shown[-1:] != [len(items) - 1]):
                last = shown[missing - 1] + 1
                items, onward = self._lists.changes(before=token, limit=last)
                return found + [item for item in items if item.name in kept], onward
            found += [items[place] for place in shown]
            if len(found) == limit or not onward:
                return found, onward
            token, step = onward, LISTED_STEP
            looked += len(items)
            if looked >= max(limit, LISTED_SCANNED):
                return found, self.places.sealed(CHANGES, token)
            if looked > LISTED_QUICK:
                self._before_expensive_read()
