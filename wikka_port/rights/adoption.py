"""Files that wait for a page which is saved by now, since a crash came in between, or the store did not answer.

A save makes what waits for its page the page's files right after it (``handlers.waiting_files``).  If that fails, the
loop of the sweep does it (``files.sweeping``): within a minute of such a save, after a process began, and each hour.

A file becomes the page's only if the store proves that its owner has saved the page:
    noted      the owner's save named its revision before it was committed, and this revision is the page's, whatever
               the page is called by now, unless another page has its former name
    unnoted    the first revision is signed with the account that owns the file.  So it is if the file came while the
               page was saved, or an older program saved it

The author of that revision then acts as a visitor with the rights of this moment, from the network of the save.  A
file whose name the page has by now, or whose author lost his right, or whose owner nothing proves, goes on waiting:
the page of files has a button for its owner, and after WAITING_MS it ends.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from wikka_port import schema
from wikka_port.accounts.directory import Directory
from wikka_port.accounts.sessions import visitor_of
from wikka_port.editing.kept_drafts import owner_of_account
from wikka_port.files.file_rows import COMMIT_MS, NotedSave, Upload
from wikka_port.files.refusals import FileRefused
from wikka_port.files.waiting import WaitingRow
from wikka_port.limits import REASON_CHARS_MAX
from wikka_port.markup.links import redirect_target
from wikka_port.moving.mover import By
from wikka_port.names import page_key
from wikka_port.page_rows import Revision, is_there
from wikka_port.pages import Wiki, clock_ms
from wikka_port.rights.access import PageAccess
from wikka_port.rights.guarded_waiting import GuardedWaiting
from wikka_port.rights.judging import NotAllowed
from wikka_port.rights.rules import Privilege
from wikka_port.store import StoreUnavailable
from wikka_port.visitors import Visitor, unregistered

log = logging.getLogger(__name__)
FIRST_WITHIN: Final = 200  # revisions of a page that are read for its first one
ROWS_STEP: Final = 200  # rows of waiting uploads whose pages are looked up together


@dataclass(frozen=True, slots=True)
class Proved:
    """The author of the page for which files wait."""

    author: Visitor
    page: str  # its present name
    history: bytes


class Adoption:
    """Thread-safe, and safe beside saves and other adoptions: a waiting upload is taken once."""

    def __init__(self, wiki: Wiki, clock: Callable[[], int] = clock_ms) -> None:
        self._wiki = wiki
        self._waiting = wiki.files.waiting
        self._clock = clock

    def run(self) -> int:
        """Adopt what can be; return the number of files.  Raises StoreUnavailable.

        O(what waits), and a few calls for each owner and page that is saved.
        """
        adopted, found = 0, self._waiting.rows()
        while step := list(islice(found, ROWS_STEP)):
            keys = sorted({one.page for one in step})
            pages = self._wiki.rows.rows(schema.PAGES, keys, [schema.VERSIONCOUNT])
            for one in step:
                self._waiting.forget_old_saves(one)
                if one.places and (one.saves or is_there(pages.get(one.page, {}))):
                    adopted += self._tried(one)
        if adopted:
            log.info("%d files that waited for pages which are saved are theirs", adopted)
        return adopted

    def _tried(self, row: WaitingRow) -> int:
        """Adopt what a row names; damage of one row, which an operator finds in the log, holds up no other."""
        try:
            return self._adopt(row)
        except StoreUnavailable:
            raise
        except Exception:
            log.exception("files that wait for a page cannot be its files: uploads %r", row.row)
            return 0

    def _adopt(self, row: WaitingRow) -> int:
        found = self._waiting.at(row.places, [row.owner])
        uploads = [one for one in found if not self._is_taken(one)]
        if len(uploads) < len(found):
            self._waiting.unfinished.set()  # the process that has taken one may have fallen: the loop looks again
        proved = self._proved(row, uploads[0].page) if uploads else None
        if proved is None:
            return 0
        access = PageAccess(self._wiki, proved.author)
        guarded = GuardedWaiting(self._wiki.files, access, proved.page, [row.owner], _by(proved.author))
        try:
            access.require(proved.page, Privilege.WRITE)
            refused = guarded.adopt_uploads(uploads, proved.history)
        except NotAllowed as why:
            log.debug("files that wait for %s go on waiting: %s", proved.page, why)
            return 0
        self._waiting.forget_saves(uploads[0].page, [row.owner])
        return len(uploads) - len(refused)

    def _is_taken(self, one: Upload) -> bool:
        """Return whether a request that runs may make the upload the page's at this moment."""
        return bool(one.writer) and self._clock() - one.time_ms < COMMIT_MS

    # --- proofs ------------------------------------------------------------------------------------

    def _proved(self, row: WaitingRow, page: str) -> Proved | None:
        noted = (self._noted(page, save) for save in row.saves)
        return next((one for one in noted if one is not None), None) or self._unnoted(page, row.owner)

    def _noted(self, page: str, save: NotedSave) -> Proved | None:
        """Return the author if the noted revision is one of the page for which the files wait."""
        head, history = save.head, save.head.history
        try:
            name = self._wiki.files.committing.find_page(page, history).name
        except FileRefused:  # the save failed, or the page was deleted since, or moves at this moment
            return None
        found = self._wiki.revision(name, head.number, head.token.decode(errors="replace"))
        author = None if found is None else self._author(found, save.network)
        return None if author is None else Proved(author, name, history)

    def _unnoted(self, page: str, owner: str) -> Proved | None:
        """Return the author if the page's first revision is signed with the account ``owner``."""
        now = self._wiki.page(page)
        if now is None or now.hidden or redirect_target(now.body, markup=now.markup) is not None:
            return None
        found: Sequence[Revision] = self._wiki.revisions(page, limit=FIRST_WITHIN)
        if not 0 < len(found) < FIRST_WITHIN or found[-1].signed not in schema.OF_ACCOUNTS:
            return None
        author = self._author(found[-1], "") if owner_of_account(found[-1].author) == owner else None
        return None if author is None else Proved(author, now.name, now.history or page_key(now.name))

    def _author(self, revision: Revision, network: str) -> Visitor | None:
        """Return the author of a revision as a visitor with the rights of now, or None if there is no such account.

        The first address of a network stands for the author's, so that a block of the network counts.
        """
        address = network.partition("/")[0]
        if revision.signed == "visitor":
            return replace(unregistered(""), signature=revision.author, address=address)
        if revision.signed not in schema.OF_ACCOUNTS:
            return None
        account = Directory(self._wiki.rows, self._clock).account(revision.author)
        if account is None:
            return None
        return replace(visitor_of(account, ""), by_key=revision.signed == "key", address=address)


def _by(author: Visitor) -> Callable[[str], By]:
    return lambda note: By(author.signature, author.signed, note[:REASON_CHARS_MAX])
