"""The wiki as one visitor may see it: the only interface through which handlers and actions reach pages and lists.

Its ``access`` decides (``rights.access``).  Methods for one page raise NotAllowed if the visitor may not read it; lists
(``readable_lists``) leave out what he may not read, and so do their counts.  A method that ``Wiki`` has and this class
lacks cannot be called by a handler: it has to be added here, with its rule.

An object serves one request.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from wikka_port.accounts.deactivation import Edits
from wikka_port.editing.kept_drafts import Drafts
from wikka_port.editing.suggestions import Suggestions
from wikka_port.names import normalise
from wikka_port.page_rows import Page, Revision
from wikka_port.pages import Conflict, Saved, StoredPage, StoreUnavailable, Wiki
from wikka_port.rights.access import PageAccess
from wikka_port.rights.moving import GuardedMoves
from wikka_port.rights.readable_lists import ReadableLists
from wikka_port.rights.rules import PageRights, Privilege
from wikka_port.rights.stored import StoredRights
from wikka_port.visitors import Visitor


class GuardedWiki(ReadableLists):
    __slots__ = ("_wiki", "visitor")

    def __init__(
        self, wiki: Wiki, visitor: Visitor, before_expensive_read: Callable[[], object] = lambda: None
    ) -> None:
        super().__init__(wiki, PageAccess(wiki, visitor), before_expensive_read)
        self.visitor = visitor
        self._wiki = wiki

    def for_visitor(self, visitor: Visitor, before_expensive_read: Callable[[], object] | None = None) -> GuardedWiki:
        before = self._before_expensive_read if before_expensive_read is None else before_expensive_read
        return GuardedWiki(self._wiki, visitor, before)

    # --- one page ----------------------------------------------------------------------------------

    def page(self, name: str) -> Page | None:
        """Raises NotAllowed."""
        return self.stored_page(name).page

    def stored_page(self, name: str) -> StoredPage:
        """Raises NotAllowed."""
        stored = self._wiki.stored_page(name)
        self.access.record_page(name, stored.page)
        return stored

    def existing(self, names: Collection[str]) -> frozenset[str]:
        """Names in a text that one may read are not hidden from its reader: no right is checked."""
        return self._wiki.existing(names)

    def revision(self, name: str, number: int, token: str = "") -> Revision | None:
        return self._wiki.revision(self.access.check_readable(name), number, token)

    def source(self, name: str, number: int | None = None) -> str | None:
        return self._wiki.source(self.access.check_readable(name), number)

    def revision_at(self, name: str, time_ms: int) -> Revision | None:
        return self._wiki.revision_at(self.access.check_readable(name), time_ms)

    def revisions(
        self, name: str, *, below: int | None = None, limit: int = 50, bodies: bool = False
    ) -> list[Revision]:
        return self._wiki.revisions(self.access.check_readable(name), below=below, limit=limit, bodies=bodies)

    def save(self, name: str, body: str, *, author: str, note: str = "", base: int, **given: Any) -> Saved:
        """As ``Wiki.save``, if the visitor may write the page at the moment of the save.

        A page that begins belongs to the visitor, if he is signed in.  Raises NotAllowed, with nothing written; a
        Conflict has the present text only where he may read it.
        """
        normal = normalise(name)

        def allow(rights: PageRights, exists: bool) -> None:
            self.access.require_of(normal, rights, exists, Privilege.WRITE)

        if base == 0 and self.visitor.is_active:
            given.setdefault("owner", self.visitor.name)
        try:
            return self._wiki.save(name, body, author=author, note=note, base=base, allow=allow, **given)
        except Conflict as conflict:
            if conflict.current is not None:
                self.access.record_page(normal, conflict.current)
            raise

    def settle(self, sequence: str, timeout_s: float = 2.0) -> bool:
        return self._wiki.settle(sequence, timeout_s)

    def is_up(self) -> bool:
        return self._wiki.is_up()

    @property
    def moves(self) -> GuardedMoves:
        """Rename, delete, bring back: each checks its right."""
        return GuardedMoves(self._wiki, self.visitor, self.access.decide)

    def drafts(self, name: str) -> Drafts:
        """For who may write the page at this moment.  Raises NotAllowed."""
        self.access.require(name, Privilege.WRITE)
        return self._wiki.drafts

    def suggestions(self, name: str) -> Suggestions:
        """For who may read the page: who sees which of them is judged by their handler.  Raises NotAllowed."""
        self.access.require(name, Privilege.READ)
        return self._wiki.suggestions

    def waiting(self, name: str) -> int:
        """Count the suggested changes of a page, for who is signed in and may write it; 0 for others.

        As ``can``, of the page as it was read in this request.  It costs a call of the store, and none where everybody
        may write the page: no suggestion is needed there.  0 while the store is unavailable.
        """
        name = normalise(name)
        if not self.visitor.is_active or not self.access.can(name).write or not self.access.is_there(name):
            return 0
        try:
            if self.access.everybody_may(name, Privilege.WRITE):
                return 0
            return len(self._wiki.suggestions.of(name))
        except StoreUnavailable:  # the page is there, and it alone was requested
            return 0

    # --- rights ------------------------------------------------------------------------------------

    @property
    def rights(self) -> StoredRights:
        """For handlers that show or change rights, after ``require``."""
        return self._wiki.rights

    @property
    def edits(self) -> Edits:
        """For an account that ends: its edits are renamed wherever they are, also if this visitor may not read them."""
        return self._wiki
