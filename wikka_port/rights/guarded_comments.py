"""The comments of one page within one visitor's rights: the entry point of ``comments`` for handlers and actions.

COMMENT_READ of the page is checked when the object is made (``GuardedWiki.comments_of``); without it nothing of the
comments is available, not even their number.  A change checks its right in the step that commits, with the rights that
this step itself finds in the page's row:

    add                          COMMENT_POST
    edit                         COMMENT_POST, by the author, for EDITABLE_MS
    remove, and bring back what  COMMENT_POST, by the author; DELETE, by the page's owner and administrators, who also
    the author removed           bring back what they removed

The author of a comment is the account that signed it; without an account, the browser that sent it.

An object serves one request.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from wikka_port.comments.comment_rows import (
    BY_AUTHOR,
    BY_OWNER,
    EDITABLE_MS,
    REMOVED,
    RESTORED,
    VISIBLE,
    Comment,
    CommentsHead,
)
from wikka_port.comments.refusals import AlreadySent, CommentRefused, NoSuchComment, TooLate
from wikka_port.comments.stored_comments import Edit, NewComment, StoredComments
from wikka_port.comments.threads import Part, visible
from wikka_port.names import page_key
from wikka_port.page_rows import Page
from wikka_port.rights.access import PageAccess
from wikka_port.rights.blocks import Block
from wikka_port.rights.rules import PageRights, Privilege
from wikka_port.schema import KEY_BYTES
from wikka_port.texts import N_, _
from wikka_port.visitors import Visitor

Check = Callable[[Comment], None]  # raises if the comment is not in the state that its change begins from
NOT_YOURS = N_("Only its author can change a comment.")


class NotYours(CommentRefused):
    def __init__(self) -> None:
        super().__init__(_(NOT_YOURS))


def _any_state(_comment: Comment) -> None:
    """Accept every state: a form shows what it changes."""


class GuardedComments:
    """Methods raise what those of ``StoredComments`` raise, and NotAllowed."""

    def __init__(
        self,
        comments: StoredComments,
        access: PageAccess,
        visitor: Visitor,
        page: Page,
        browsers: Collection[str],
        changed: bytes = b"",
    ) -> None:
        """``browsers`` are the owners of drafts as which the request's browser is known (``editing.edit_forms``).

        ``changed`` is the history whose comments changes are about, if it is not that of the page.
        """
        self.page = page.name
        self.head: CommentsHead = page.comments
        self.history = page.history or page_key(page.name)
        self._changed = changed or self.history
        self._page = page
        self._comments = comments
        self._access = access
        self._visitor = visitor
        self._browsers = browsers

    # --- reading -----------------------------------------------------------------------------------

    def part(self, *, order: str, part: int = 1, after: str = "", at: int = 0) -> Part:
        """Return a part of the list, without comments that the visitor may not see.

        The part has the comment ``at``, if that is given.
        """
        found = self._comments.part(self.history, self.head, order=order, part=part, after=after, at=at)
        kept = found.comments if self.moderates else visible(found.comments, order)
        return replace(found, comments=kept)

    def comment_at(self, number: int) -> Comment:
        """Return a comment that the visitor may see.  Raises NoSuchComment."""
        found = self._comments.comment_at(self.history, number, self.head)
        if found is None or not (found.is_visible or self.moderates or self.is_author(found)):
            raise NoSuchComment
        return found

    # --- what the visitor may do -------------------------------------------------------------------

    @property
    def can_post(self) -> bool:
        return bool(self._access.decision(self.page, Privilege.COMMENT_POST))

    @property
    def block(self) -> Block | None:
        """The block that keeps the visitor from writing comments, or None."""
        return self._access.decision(self.page, Privilege.COMMENT_POST).block

    @property
    def moderates(self) -> bool:
        """Whether the visitor is the page's owner or an administrator."""
        return bool(self._access.decision(self.page, Privilege.DELETE))

    def is_author(self, comment: Comment) -> bool:
        if comment.is_of_account:
            return self._visitor.name == comment.author
        return bool(comment.browser) and comment.browser in self._browsers

    def can_edit(self, comment: Comment, now_ms: int) -> bool:
        return comment.is_visible and self.can_post and self._edit_refusal(comment, now_ms) is None

    def can_remove(self, comment: Comment) -> bool:
        return comment.is_visible and (self.moderates or (self.is_author(comment) and self.can_post))

    def can_restore(self, comment: Comment) -> bool:
        by_author = self.is_author(comment) and comment.removed_by == BY_AUTHOR and self.can_post
        return comment.state == REMOVED and (self.moderates or by_author)

    def _edit_refusal(self, comment: Comment, now_ms: int) -> CommentRefused | None:
        if not self.is_author(comment):
            return NotYours()
        return TooLate(EDITABLE_MS // 60_000) if now_ms - comment.time_ms >= EDITABLE_MS else None

    def require_edit(self, number: int, now_ms: int) -> Comment:
        """Return the visitor's own comment, which he may change.  Raises NotYours, TooLate, NoSuchComment."""
        comment = self.comment_at(number)
        refused = self._edit_refusal(comment, now_ms) if comment.is_visible else NoSuchComment()
        if refused is not None:
            raise refused
        return comment

    def require_post(self) -> None:
        """Raise NotAllowed unless the visitor may write comments; each change checks its right again."""
        self._access.require(self.page, Privilege.COMMENT_POST)

    def of_form(self, history: bytes) -> GuardedComments:
        """Return the comments that a form changes; ``history`` is the key in the form.

        If the page was renamed since, its page is found by the history, and ``page`` is its name once a change is done.
        Only changes follow the key, since their commit judges the rights of the page that it finds.  The key comes from
        the visitor, and may be that of any page: what is read stays that of the page whose rights were judged.
        """
        changed = history if len(history) == KEY_BYTES else b""
        return GuardedComments(self._comments, self._access, self._visitor, self._page, self._browsers, changed)

    @property
    def is_of_other_page(self) -> bool:
        """Whether changes are about comments of a page that has left this name."""
        return self._changed != self.history

    # --- writing -----------------------------------------------------------------------------------

    def _allow(self, name: str, rights: PageRights) -> None:
        self._access.require_of(name, rights, True, Privilege.COMMENT_POST)
        self.page = name

    def _allow_owner(self, name: str, rights: PageRights) -> None:
        self._access.require_of(name, rights, True, Privilege.DELETE)
        self.page = name

    def add(self, new: NewComment) -> Comment:
        """Add a comment, once for each form.  Raises AlreadySent if the form has added one of another text."""
        made = self._comments.add(self.page, self._changed, new, allow=self._allow)
        if made.text != new.text:
            raise AlreadySent(made.number)
        return made

    def edit(self, number: int, text: str, now_ms: int, check: Check = _any_state) -> None:
        """Replace the text of the visitor's own comment.

        Raises NotYours, TooLate, NoSuchComment, and what ``check`` raises for a comment of another text.
        """

        def edited(comment: Comment) -> Comment:
            if not comment.is_visible:
                raise NoSuchComment
            if comment.text == text:
                return comment
            refused = self._edit_refusal(comment, now_ms)
            if refused is not None:
                raise refused
            check(comment)
            return replace(comment, text=text, edited_ms=now_ms)

        self._comments.change(self.page, self._changed, number, edited, allow=self._allow)

    def remove(self, number: int, check: Check = _any_state) -> Comment | None:
        """Remove a comment; its answers stay.  Return it if that changed the comment of somebody else.

        Raises NotYours, NoSuchComment, and what ``check`` raises for a comment that is not removed yet.
        """

        def removed(comment: Comment) -> Comment:
            if comment.state == REMOVED:
                return comment
            self._check_author(comment)
            check(comment)
            return replace(comment, state=REMOVED, removed_by=BY_OWNER if self.moderates else BY_AUTHOR)

        return self._change_state(number, removed)

    def restore(self, number: int) -> Comment | None:
        """Bring back a removed comment; return it as ``remove`` does.  Raises NotYours, NoSuchComment."""

        def restored(comment: Comment) -> Comment:
            if comment.is_visible:
                return comment
            self._check_author(comment)
            if not self.moderates and comment.removed_by != BY_AUTHOR:
                raise NotYours
            return replace(comment, state=VISIBLE, removed_by=RESTORED)

        return self._change_state(number, restored)

    def _check_author(self, comment: Comment) -> None:
        if not (self.moderates or self.is_author(comment)):
            raise NotYours

    def _change_state(self, number: int, change: Edit) -> Comment | None:
        allow = self._allow_owner if self.moderates else self._allow
        changed = self._comments.change(self.page, self._changed, number, change, allow=allow)
        return None if changed is None or self.is_author(changed) else changed
