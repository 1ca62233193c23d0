"""The wiki as one visitor may see it: the only interface through which handlers and actions reach pages and lists.

The object ``access`` decides (``rights.access``).  Methods for one page raise NotAllowed if the visitor may not read
it.  Lists (``readable_lists``) and their counts leave out the pages that he may not read.  A handler cannot call a
method of ``Wiki`` that this class lacks: the method has to be added here, with its rule.

An object serves one request.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import cache
from typing import Any

from wikka_port.accounts.deactivation import Edits
from wikka_port.accounts.directory import Directory
from wikka_port.accounts.tables import user_row
from wikka_port.editing.kept_drafts import Drafts
from wikka_port.editing.suggestions import Suggestions
from wikka_port.files.file_rows import CurrentFile
from wikka_port.names import normalise
from wikka_port.notices.mentions import mentioned
from wikka_port.notices.watching import TooManyWatches
from wikka_port.page_rows import Page, Revision
from wikka_port.pages import Conflict, Saved, StoredPage, StoreUnavailable, Wiki, clock_ms
from wikka_port.rights.access import PageAccess
from wikka_port.rights.followed_changes import Followed
from wikka_port.rights.guarded_comments import GuardedComments
from wikka_port.rights.guarded_files import GuardedFiles, ReadableUses
from wikka_port.rights.guarded_notices import GuardedNotices
from wikka_port.rights.moving import GuardedMoves
from wikka_port.rights.readable_lists import ReadableLists
from wikka_port.rights.rules import PageRights, Privilege
from wikka_port.rights.stored import StoredRights
from wikka_port.schema import Head
from wikka_port.security import network_of
from wikka_port.visitors import Visitor


class GuardedWiki(ReadableLists):
    __slots__ = ("_wiki", "followed", "visitor")

    def __init__(
        self, wiki: Wiki, visitor: Visitor, before_expensive_read: Callable[[], object] = lambda: None
    ) -> None:
        secret = cache(lambda: Directory(wiki.rows, clock_ms).secret)  # read once, if at all
        super().__init__(wiki, PageAccess(wiki, visitor), before_expensive_read, secret)
        self.visitor = visitor
        self.followed = Followed(wiki, self.access, before_expensive_read)
        self._wiki = wiki

    def for_visitor(self, visitor: Visitor, before_expensive_read: Callable[[], object] | None = None) -> GuardedWiki:
        before = self._before_expensive_read if before_expensive_read is None else before_expensive_read
        return GuardedWiki(self._wiki, visitor, before)

    # --- one page ----------------------------------------------------------------------------------

    def page(self, name: str) -> Page | None:
        """Return the page, or None if there is none.  Raises NotAllowed."""
        return self.stored_page(name).page

    def stored_page(self, name: str) -> StoredPage:
        """Return the page with its row.  Raises NotAllowed."""
        stored = self._wiki.stored_page(name)
        self.access.record_page(name, stored.page)
        return stored

    def existing(self, names: Collection[str]) -> frozenset[str]:
        """Return those of the ``names`` that are pages.

        No right is checked: names in a text are not hidden from a visitor who may read the text.
        """
        return self._wiki.existing(names)

    def files_of(self, names: Collection[str]) -> dict[str, Mapping[str, CurrentFile]]:
        """Return the files of those of the ``names`` that are pages and may be read, with one call for all."""
        found = self._wiki.files_of(names)
        readable = self.access.readable_of({name: rights for name, (rights, _) in found.items()})
        return {name: files for name, (_, files) in found.items() if name in readable}

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

    def save(
        self,
        name: str,
        body: str,
        *,
        author: str,
        note: str = "",
        base: int,
        owners: Collection[str] = (),
        **given: Any,
    ) -> Saved:
        """Save as ``Wiki.save`` does, if the visitor may write the page at the moment of the save.

        ``owners`` are those whose files the page gets afterwards, if any wait for it.

        A new page belongs to the visitor, if he is signed in.  Raises NotAllowed, with nothing saved.  After a conflict
        it raises Conflict, with the present text, only if the visitor may read that text, else NotAllowed.
        """
        normal = normalise(name)

        def allow(rights: PageRights, exists: bool) -> None:
            self.access.require_of(normal, rights, exists, Privilege.WRITE)

        if base == 0 and self.visitor.is_active:
            given.setdefault("owner", self.visitor.name)
        given.setdefault("notify", self.visitor.name or "")
        if "@" in body:
            stored = given.get("stored") or self._wiki.stored_page(normal)
            given.setdefault("mentions", mentioned(body, stored.page.body if stored.page else ""))
        waiting, noted = self._wiki.files.waiting, list[bool]()

        def note_save(head: Head) -> None:
            noted.append(waiting.note_save(normal, owners, head, network_of(self.visitor.address)))

        if owners:
            given["before_save"] = note_save
        try:
            saved = self._wiki.save(name, body, author=author, note=note, base=base, allow=allow, **given)
        except Conflict as conflict:
            if conflict.current is not None:
                self.access.record_page(normal, conflict.current)
            raise
        finally:
            if any(noted):
                waiting.unfinished.set()  # not before: the loop of the sweep would look for files of no saved page
        if self.visitor.is_active and self.visitor.settings.watch:
            self._watch_saved(normal)
        return saved

    def _watch_saved(self, name: str) -> None:
        """Watch the page that the visitor has saved.  A failure is no failure of the save, which is on disk."""
        with suppress(StoreUnavailable, TooManyWatches):
            page = self._wiki.stored_page(name).page
            if page is not None:
                self.notices.watch(page, self.visitor.settings)

    def settle(self, sequence: str, timeout_s: float = 2.0) -> bool:
        return self._wiki.settle(sequence, timeout_s)

    def is_up(self) -> bool:
        return self._wiki.is_up()

    @property
    def moves(self) -> GuardedMoves:
        """Renaming, deleting and undeleting; each call checks its right."""
        return GuardedMoves(self._wiki, self.visitor, self.access.decide)

    def drafts(self, name: str) -> Drafts:
        """Return the drafts.  Raises NotAllowed unless the visitor may write the page at this moment."""
        self.access.require(name, Privilege.WRITE)
        return self._wiki.drafts

    def suggestions(self, name: str) -> Suggestions:
        """Return the suggestions.  Raises NotAllowed unless the visitor may read the page.

        The handler of suggestions decides which of them the visitor sees.
        """
        self.access.require(name, Privilege.READ)
        return self._wiki.suggestions

    @property
    def reviews(self) -> Suggestions:
        """Return the edits and comments under review, for handlers that show them to their author or call ``require``.

        An author sees the text that he sent himself, whatever the page's rights are by now.
        """
        return self._wiki.suggestions

    def files(self, name: str, owners: Collection[str] = ()) -> GuardedFiles:
        """Return the files of a page.  Raises NotAllowed unless the visitor may read the page.

        Its methods that change files check the right to write the page in the step that commits.  ``owners`` are those
        of the request's drafts, for a page that may not be saved yet.
        """
        name = normalise(name)
        self.access.require(name, Privilege.READ)
        uses = ReadableUses(self._wiki, self.access, self.files_of, self._before_expensive_read, self.places)
        return GuardedFiles(self._wiki.files, self.access, self.visitor, name, uses, owners)

    def comments_of(self, page: Page, browsers: Collection[str] = ()) -> GuardedComments:
        """Return the comments of a page just read.  Raises NotAllowed unless the visitor may read them."""
        self.access.require_of(page.name, page.rights, True, Privilege.COMMENT_READ)
        return GuardedComments(self._wiki.comments, self.access, self.visitor, page, browsers)

    @property
    def notices(self) -> GuardedNotices:
        """The notices and watches of the visitor, who must be signed in."""
        assert self.visitor.name is not None, "only an account has an inbox"
        return GuardedNotices(self._wiki.notices, self.access, user_row(self.visitor.name), self._before_expensive_read)

    def unread(self) -> int:
        """Count the visitor's unread notices; costs no call if there is none (``Visitor.news_after_ms``)."""
        after_ms = self.visitor.news_after_ms
        return self.notices.unread(after_ms) if self.visitor.name is not None and after_ms >= 0 else 0

    def waiting(self, name: str) -> int:
        """Count the suggested changes of a page for a signed-in visitor who may write it; for others return 0.

        Like ``can``, it judges the page as read in this request.  It costs a call of the store, except if everybody
        may write the page and so needs no suggestion.  Returns 0 while the store is unavailable.
        """
        if not self.visitor.is_active:
            return 0
        name = normalise(name)
        if not self.access.can(name).write or not self.access.is_there(name):
            return 0
        try:
            if self.access.everybody_may(name, Privilege.WRITE):
                return 0
            return len(self._wiki.suggestions.of(name))
        except StoreUnavailable:  # the page itself was read, and can be shown without the count
            return 0

    # --- rights ------------------------------------------------------------------------------------

    @property
    def rights(self) -> StoredRights:
        """The stored rights, for handlers that show or change them; call ``require`` before."""
        return self._wiki.rights

    @property
    def edits(self) -> Edits:
        """The edits of all pages, to be signed anew when an account ends, even on pages hidden from this visitor."""
        return self._wiki
