"""Comments of records into a wiki: each one with its author, its times, its state, and the comment that it answers.

A comment that is here already, by ``CommentRecord.key``, gets a later edit or removal of the source.  The others are
added in their order, so a page without comments gets the numbers of the source; on another page they stand below those
that are here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain

from wikka_port.comments.comment_rows import REMOVED, Comment
from wikka_port.comments.refusals import CommentRefused
from wikka_port.comments.stored_comments import NewComment, StoredComments
from wikka_port.exchange.page_source import comment_record
from wikka_port.exchange.records import CommentRecord, RecordedPage
from wikka_port.rights.rules import PageRights


def _anybody(_name: str, _rights: PageRights) -> None:
    """Allow the comment: a command is run by the operator of the wiki."""


@dataclass(slots=True)
class CommentReport:
    stored: int = 0
    already: int = 0
    refused: list[str] = field(default_factory=list)  # lines for a person

    def count(self, *, stored: int = 0, already: int = 0) -> None:
        self.stored += stored
        self.already += already


class CommentImport:
    """Brings in the comments of one page after another.  Raises StoreUnavailable."""

    def __init__(self, comments: StoredComments, report: CommentReport | None = None) -> None:
        self.report = report or CommentReport()
        self._comments = comments

    def bring_in(self, page: RecordedPage) -> None:
        found = page.comments()
        first = next(found, None)
        if first is not None:
            try:
                self._bring_page(page.record.name, chain((first,), found))
            except CommentRefused as refused:
                self.report.refused.append(f"{page.record.name}: {refused}")

    def _bring_page(self, name: str, found: Iterator[CommentRecord]) -> None:
        """Bring in a page's comments.  Raises CommentRefused; the comments before are here then."""
        place = self._comments.find_commented(name)
        there = {comment_record(one).key: one for one in self._comments.every(place.history, place.head)}
        numbers: dict[int, int] = {}  # of the source -> here
        for one in found:
            stored = there.get(one.key)
            if stored is None:
                numbers[one.number] = self._add(name, one, numbers.get(one.parent, 0))
                self.report.count(stored=1)
                continue
            numbers[one.number] = stored.number
            self.report.count(already=1)
            if _followed(stored, one) != stored:
                self._comments.change(name, b"", stored.number, partial(_followed, one=one), allow=_anybody)

    def _add(self, page: str, one: CommentRecord, parent: int) -> int:
        new = NewComment(
            text=one.text,
            author=one.author,
            signed=one.signed,
            form=f"record {one.time_ms} {one.number} {one.origin} {one.author}",
            markup=one.markup,
            parent=parent,
            time_ms=one.time_ms,
            state=one.state,
            edited_ms=one.edited_ms,
            removed_by=one.removed_by,
            origin=one.origin,
        )
        return self._comments.add(page, b"", new, allow=_anybody).number


def _followed(stored: Comment, one: CommentRecord) -> Comment:
    """Return the stored comment after the edit or the removal that the source has and the store has not."""
    if one.edited_ms > stored.edited_ms:
        stored = replace(stored, text=one.text, edited_ms=one.edited_ms)
    if one.state == REMOVED and stored.is_visible:
        stored = replace(stored, state=REMOVED, removed_by=one.removed_by)
    return stored
