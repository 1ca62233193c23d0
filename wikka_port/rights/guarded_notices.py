"""The notices and watches of the visitor: the entry point of ``notices`` for handlers.

A notice of moves counts and names only those of its pages that the visitor may read: deleted ones by the rights that
they had, and former names by those that the page would have under them.

The rights to the page of a notice are read whenever it is shown or counted, for comments those to read comments.  A
notice of a page that the visitor may no longer read, that was deleted, or whose revision or comment is hidden is left
out, of numbers too.  A watch of such a page is listed by the name that it had when the watch began.

An object serves one request.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from wikka_port.accounts.settings import Settings
from wikka_port.comments.recent_comments import beginning_of
from wikka_port.editing.kept_drafts import owner_of_account
from wikka_port.editing.suggestions import ACCEPTED, REFUSED, Suggestion
from wikka_port.limits import LISTED_QUICK, LISTED_STEP, NOTICES_COUNTED, NOTICES_SCANNED
from wikka_port.moving.journal import DELETE, RENAME, UNDELETE
from wikka_port.names import page_key
from wikka_port.notices.notice_rows import COMMENT, MOVED, REVIEW, Notice, Watch, below_target, page_target, targets_of
from wikka_port.notices.stored_notices import MovedPage, Noticed, NoticedChange, NoticedMove, StoredNotices
from wikka_port.page_rows import Page
from wikka_port.pages import StoreUnavailable
from wikka_port.rights.access import PageAccess
from wikka_port.rights.rules import PageRights, Privilege
from wikka_port.schema import OF_ACCOUNTS, folded

Moves = Mapping[bytes, Sequence[NoticedMove]]  # by place of the notice
_MOVED: Final[Mapping[str, str]] = {RENAME: "renamed", DELETE: "deleted", UNDELETE: "restored"}


@dataclass(frozen=True, slots=True)
class ListedNotice:
    """A notice as it is shown."""

    notice: Notice
    page: str  # the present name
    change: NoticedChange
    is_unread: bool = False

    @property
    def time_ms(self) -> int:
        return self.notice.time_ms

    @property
    def place(self) -> str:
        return self.notice.place.decode()

    @property
    def kind(self) -> str:
        """``edit``, ``new``, ``comment``, ``review``, or of moves ``renamed``, ``deleted``, ``restored``, ``moved``."""
        kinds = {one.kind for one in self.change.moves}
        return _MOVED[kinds.pop()] if len(kinds) == 1 else self.notice.kind

    @property
    def beginning(self) -> str:
        """The beginning of the comment, the note of the edit, the reason of a move, or the words of who decided."""
        comment = self.change.comment
        return self.change.note if comment is None else beginning_of(comment.text)


@dataclass(frozen=True, slots=True)
class ListedWatch:
    watch: Watch
    name: str  # the present name if the visitor may read the page


class GuardedNotices:
    """Every method may raise StoreUnavailable."""

    def __init__(
        self,
        notices: StoredNotices,
        access: PageAccess,
        account: bytes,
        before_expensive_read: Callable[[], object] = lambda: None,
    ) -> None:
        """``account`` is the folded name of the visitor's account."""
        self._notices = notices
        self._access = access
        self._account = account
        self._before_expensive_read = before_expensive_read

    # --- the inbox ---------------------------------------------------------------------------------

    def part(self, *, after_ms: int, before: str = "", limit: int) -> tuple[list[ListedNotice], str]:
        """Return notices after the place ``before``, and the place to continue with; "" at the end.

        Notices later than ``after_ms`` are unread; -1: none is.  At most NOTICES_SCANNED rows are read.
        """
        found: list[ListedNotice] = []
        place, looked = before.encode(errors="replace"), 0
        while looked < NOTICES_SCANNED:
            notices, more = self._notices.part(self._account, before=place, limit=LISTED_STEP if looked else limit)
            found += self.listed(notices, after_ms)
            if len(found) > limit or (len(found) == limit and more):
                return found[:limit], found[limit - 1].place
            if not more or not notices:
                return found, ""
            place = notices[-1].place
            looked += len(notices)
            if looked > LISTED_QUICK:
                self._before_expensive_read()
        return found, place.decode()

    def unread(self, after_ms: int) -> int:
        """Count the unread notices that the inbox shows; NOTICES_COUNTED + 1 stands for more.

        Returns 0 while the store is unavailable.  Costs no call if ``after_ms`` is -1.
        """
        if after_ms < 0:
            return 0
        try:
            notices = self._notices.unread(self._account, after_ms)
            visible = self._visible_of(notices) if notices else []
        except StoreUnavailable:  # the page itself was read, and can be shown without the number
            return 0
        return min(len(visible), NOTICES_COUNTED + 1)

    def listed(self, notices: Collection[Notice], after_ms: int = -1) -> list[ListedNotice]:
        """Return those of the notices that the visitor may read, as ``part`` does."""
        if not notices:
            return []
        noticed = self._notices.noticed(notices, owner_of_account(self._account.decode()))
        moves = self._readable_moves(noticed)
        readable = self._readable_of(notices, noticed, moves)
        changes = self._notices.changes_of(readable, noticed.pages) | self._beside_changes(readable, noticed, moves)
        return [
            ListedNotice(one, _page_name(one, noticed, changes[one.place]), changes[one.place], is_unread)
            for one in readable
            if one.place in changes
            for is_unread in (0 <= after_ms < one.time_ms,)
        ]

    def _visible_of(self, notices: Collection[Notice]) -> list[Notice]:
        noticed = self._notices.noticed(notices, owner_of_account(self._account.decode()))
        readable = self._readable_of(notices, noticed, self._readable_moves(noticed))
        return self._notices.visible_of(readable, noticed.pages)

    def _readable_of(self, notices: Collection[Notice], noticed: Noticed, moves: Moves) -> list[Notice]:
        pages = noticed.pages
        rights = {page.name: page.rights for page in pages.values()}
        pages_read = self._access.readable_of(rights)
        comments_read = pages_read
        if any(one.kind == COMMENT for one in notices):
            comments_read = self._access.readable_of(rights, Privilege.COMMENT_READ)

        def may_read(one: Notice) -> bool:
            if one.kind == MOVED:
                return bool(moves[one.place])
            if one.kind == REVIEW:
                return self._is_decided(noticed.reviews.get(one.review))
            names = comments_read if one.kind == COMMENT else pages_read
            return one.history in pages and pages[one.history].name in names

        return [one for one in notices if may_read(one)]

    def _is_decided(self, one: Suggestion | None) -> bool:
        """Return whether the text is the account's, and somebody has decided on it; it needs no right to its page."""
        if one is None or one.signed not in OF_ACCOUNTS or folded(one.who).encode() != self._account:
            return False
        return one.review is not None and one.review.state in (ACCEPTED, REFUSED)

    def _readable_moves(self, noticed: Noticed) -> Moves:
        """Return by place of the notice the moves of pages that the visitor may read."""
        each = [(place, one) for place, moves in noticed.moves.items() for one in moves]
        may = self._may_read_each([(one.page.name, one.page.rights) for _, one in each])
        readable: dict[bytes, list[NoticedMove]] = {place: [] for place in noticed.moves}
        for (place, one), is_readable in zip(each, may, strict=True):
            if is_readable:
                readable[place].append(one)
        return readable

    def _may_read_each(self, pages: Sequence[tuple[str, PageRights]]) -> list[bool]:
        """Return for each page whether the visitor may read it; several deleted pages may have had one name."""
        rounds: list[dict[str, PageRights]] = []
        of_round = []
        for name, rights in pages:
            number = next((n for n, one in enumerate(rounds) if one.get(name, rights) == rights), len(rounds))
            if number == len(rounds):
                rounds.append({})
            rounds[number][name] = rights
            of_round.append(number)
        readable = [self._access.readable_of(one) for one in rounds]
        return [name in readable[number] for (name, _), number in zip(pages, of_round, strict=True)]

    def _beside_changes(
        self, readable: Collection[Notice], noticed: Noticed, moves: Moves
    ) -> dict[bytes, NoticedChange]:
        """Return what the notices of moves and of decisions are about, by place."""
        found = {}
        for notice in readable:
            if notice.kind == MOVED:
                found[notice.place] = self._moved(moves[notice.place])
            elif notice.kind == REVIEW:
                review = noticed.reviews[notice.review].review
                assert review is not None, "it is readable"
                found[notice.place] = NoticedChange("", "", review.said, review=review)
        return found

    def _moved(self, moves: Sequence[NoticedMove]) -> NoticedChange:
        """Return the moves with those former names under which the visitor could read the pages."""
        former = self._may_read_each([(one.move.source, one.page.rights) for one in moves])
        move = moves[0].move
        pages = [
            MovedPage(one.move.kind, one.page.name, one.move.source if is_seen else "")
            for one, is_seen in zip(moves, former, strict=True)
        ]
        return NoticedChange(move.by, move.signed, move.reason, moves=pages)

    def mark_read(self, until_ms: int) -> None:
        self._notices.mark_read(self._account, until_ms)

    def remove(self, place: str) -> None:
        self._notices.remove(self._account, place.encode(errors="replace"))

    def clear(self, until: str) -> None:
        """Remove all notices from the place ``until`` on, the newest that the visitor saw."""
        self._notices.clear(self._account, until.encode(errors="replace"))

    # --- watches -----------------------------------------------------------------------------------

    def watches(self) -> list[ListedWatch]:
        """Return all watches, pages first."""
        watches = self._notices.watching.of(self._account)
        pages = self._notices.pages_of([(one.history, one.name) for one in watches if not one.is_below])
        readable = self._access.readable_of({page.name: page.rights for page in pages.values()})
        return [
            ListedWatch(one, pages[one.history].name)
            if one.history in pages and pages[one.history].name in readable
            else ListedWatch(one, one.name)
            for one in watches
        ]

    def watched(self, page: Page) -> set[bytes]:
        """Return those targets by which the visitor watches the page; one call."""
        return self._notices.watching.watched(self._account, targets_of(history_of(page), page.name))

    def is_watched(self, page: Page, stamp: bytes) -> bool:
        """Return whether the visitor watches the page, or a page above it; False while the store is unavailable.

        Costs no call while the account's watches are kept (``Watching.kept``).
        """
        try:
            targets = self._notices.watching.kept(self._account, stamp)
        except StoreUnavailable:  # the page itself was read, and can be shown without it
            return False
        return bool(targets) and not targets.isdisjoint(targets_of(history_of(page), page.name))

    def watch(self, page: Page, settings: Settings) -> None:
        """Watch a page that was read in this request.  Raises TooManyWatches."""
        self._notices.watching.begin(self._account, page_target(history_of(page)), page.name, settings)

    def watch_below(self, name: str, settings: Settings) -> None:
        """Watch all pages below a name, and the page of the name; "" is the whole wiki.  Raises TooManyWatches."""
        self._notices.watching.begin(self._account, below_target(name), name.strip("/"), settings)

    def unwatch(self, target: bytes) -> None:
        self._notices.watching.end(self._account, target)

    def take_settings(self, settings: Settings) -> None:
        self._notices.watching.take_settings(self._account, settings)


def _page_name(notice: Notice, noticed: Noticed, change: NoticedChange) -> str:
    """Return the present name of the page, of several moved ones that of the first."""
    if change.moves:
        return change.moves[0].name
    return notice.page if change.review is not None else noticed.pages[notice.history].name


def history_of(page: Page) -> bytes:
    """Return the key under which the revisions of a page lie."""
    return page.history or page_key(page.name)
