"""The comments of a WikkaWiki, moved here with their threads, times and authors, and the deleted ones among them.

WikkaWiki stores a comment as HTML: the typed text with entities, and ``<br />`` before each line end (``nl2br``); it
never read markup in comments.  So the typed text is stored here as plain text, and shown as it was shown there.

``c:origin`` of a moved comment is "wikkawiki ID TIME".  By it a later run finds the comments that are here, adds those
that are newer, and removes those that were deleted in the source since.  A comment that was removed here stays removed.
A thread deeper than here is cut to this wiki's depth; the comment that each one answers stays the same.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from itertools import groupby
from typing import Final

from wikka_port.comments.comment_rows import BY_OWNER, PLAIN, REMOVED, VISIBLE, Comment
from wikka_port.comments.refusals import CommentRefused, NoPageToComment
from wikka_port.comments.stored_comments import NewComment, StoredComments
from wikka_port.names import normalise
from wikka_port.rights.rules import PageRights
from wikka_port.wikkawiki.comparison import Compared, record_digest
from wikka_port.wikkawiki.source_database import Source, quoted
from wikka_port.wikkawiki.source_pages import NO_AUTHOR, SourcePages, folded_tag, local_time_ms
from wikka_port.wikkawiki.stored_text import unescaped

_COLUMNS: Final = ("id", "page_tag", "time", "comment", "user", "parent", "status")
_BREAK: Final = re.compile(r"<br ?/?>(?=\r?\n|\r|$)")
_ORIGIN: Final = "wikkawiki "


@dataclass(frozen=True, slots=True)
class SourceComment:
    id: int
    page: str  # its name here
    time_ms: int
    author: str
    text: str
    parent: int  # id of the comment that it answers; 0: none
    is_deleted: bool

    @property
    def origin(self) -> str:
        return f"{_ORIGIN}{self.id} {self.time_ms}"


@dataclass(slots=True)
class CommentReport:
    """Outcome of a move of comments; each entry of a list is a line for a person."""

    outcomes: Counter[str] = field(default_factory=Counter)  # "added", "already", "removed" (there, since the last run)
    changed: list[str] = field(default_factory=list)  # removed or brought back here: they stay
    without_page: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


def typed_text(stored: str) -> str:
    """Return the text of a comment as somebody typed it."""
    return unescaped(_BREAK.sub("", stored)).replace("\r\n", "\n").replace("\r", "\n")


class CommentSource:
    """The comments of the source, page by page, in the order of their ids."""

    def __init__(self, source: Source, zone: tzinfo, pages: SourcePages, report: CommentReport) -> None:
        self._source = source
        self._zone = zone
        self._pages = pages
        self._report = report

    def __iter__(self) -> Iterator[tuple[str, list[SourceComment]]]:
        """Yield each page's name with its comments.  A page's comments are in memory."""
        names = self._page_names()
        for _, rows in groupby(self._rows(), lambda values: folded_tag(values["page_tag"])):
            pages: dict[str, list[SourceComment]] = {}
            for values in rows:
                comment = self._comment(names, values)
                if comment is not None:
                    pages.setdefault(comment.page, []).append(comment)
            yield from pages.items()

    def _page_names(self) -> dict[str, str]:
        """Return the names of pages by tag, and by folded tag."""
        names: dict[str, str] = {}
        for tag, name, _ in self._pages.owners():
            names[tag] = name
            names.setdefault(folded_tag(tag), name)
        return names

    def _rows(self) -> Iterator[Mapping[str, str]]:
        """Yield the comments by folded tag and id, since MySQL holds tags of another case equal."""
        if "comments" not in self._source.tables:
            return
        wanted = ", ".join(quoted(one) if self._source.has("comments", one) else "''" for one in _COLUMNS)
        table = quoted(self._source.tables["comments"])
        self._source.database.create_function("folded_tag", 1, folded_tag, deterministic=True)
        found = self._source.database.execute(f"SELECT {wanted} FROM {table} ORDER BY folded_tag(page_tag), id")
        for row in found:
            yield {column: "" if value is None else str(value) for column, value in zip(_COLUMNS, row, strict=True)}

    def _comment(self, names: Mapping[str, str], values: Mapping[str, str]) -> SourceComment | None:
        reads = unescaped if self._source.escapes_html else str
        tag = values["page_tag"]
        name = names.get(tag) or names.get(folded_tag(tag), "")
        if not name:
            self._report.without_page.append(f"{tag}: comment {values['id']}")
            return None
        parent = values["parent"]
        return SourceComment(
            id=int(values["id"] or 0),
            page=name,
            time_ms=local_time_ms(values["time"], self._zone) or 1,
            author=reads(values["user"]).strip() or NO_AUTHOR,
            text=typed_text(values["comment"]),
            parent=int(parent) if parent.isdigit() else 0,
            is_deleted=values["status"] == "deleted",
        )


def _anybody(_name: str, _rights: PageRights) -> None:
    """Allow everything: the command is run by the operator of the wiki."""


class CommentMove:
    """Moves comments; calling it again adds only what is newer."""

    def __init__(self, comments: StoredComments, accounts: Collection[str], report: CommentReport) -> None:
        """``accounts`` are the names whose signatures are theirs."""
        self.report = report
        self._comments = comments
        self._accounts = accounts

    def run(self, source: CommentSource) -> None:
        """Move all comments.  Raises StoreUnavailable."""
        for page, found in source:
            try:
                self._move_page(page, found)
            except NoPageToComment:
                self.report.without_page.append(f"{page}: {len(found):,} comments of a page that is not here")
            except CommentRefused as refused:
                self.report.refused.append(f"{page}: {refused}")

    def _move_page(self, page: str, found: list[SourceComment]) -> None:
        there = {one.origin: one for one in _moved(self._comments, page)}
        numbers = {_id_of(one): one.number for one in there.values()}
        for one in found:
            stored = there.get(one.origin)
            if stored is None:
                numbers[one.id] = self._add(page, one, numbers.get(one.parent, 0)).number
                self.report.outcomes["added"] += 1
                continue
            self.report.outcomes["already"] += 1
            if one.is_deleted != (stored.state == REMOVED):
                self._follow(page, one, stored)

    def _add(self, page: str, one: SourceComment, parent: int) -> Comment:
        new = NewComment(
            text=one.text,
            author=one.author,
            signed="account" if one.author in self._accounts else "",
            form=one.origin,
            markup=PLAIN,
            parent=parent,
            time_ms=one.time_ms,
            state=REMOVED if one.is_deleted else VISIBLE,
            origin=one.origin,
        )
        return self._comments.add(page, b"", new, allow=_anybody)

    def _follow(self, page: str, one: SourceComment, stored: Comment) -> None:
        """Remove a comment that was deleted in the source since; one that was removed or restored here stays."""
        if not one.is_deleted or stored.removed_by or stored.edited_ms:
            self.report.changed.append(f"{page}: comment {stored.number}")
            return

        def removed(comment: Comment) -> Comment:
            return replace(comment, state=REMOVED, removed_by=BY_OWNER)

        self._comments.change(page, b"", stored.number, removed, allow=_anybody)
        self.report.outcomes["removed"] += 1


def compare_comments(comments: StoredComments, source: CommentSource, report: CommentReport) -> Compared:
    """Compare all comments of all pages; those that were changed here, or have no page, are left out."""
    compared = Compared("comments")
    changed = set(report.changed)
    for page, found in source:
        try:
            there = {one.origin: one for one in _moved(comments, page)}
        except CommentRefused:
            compared.leave_out(len(found))
            continue
        ids = {one.number: _id_of(one) for one in there.values()}
        kept = [
            one
            for one in found
            if one.origin not in there or f"{page}: comment {there[one.origin].number}" not in changed
        ]
        compared.leave_out(len(found) - len(kept))
        known = {one.id for one in found}
        ours = [there[one.origin] for one in kept if one.origin in there]
        compared.add(
            page,
            [_digest(page, one.id, one, one.parent if one.parent in known else 0) for one in kept],
            [_digest(page, _id_of(one), _as_source(page, one), ids.get(one.parent, 0)) for one in ours],
        )
    return compared


def _digest(page: str, number: int, one: SourceComment, parent: int) -> bytes:
    return record_digest(page, number, one.time_ms, one.author, one.text, parent, int(one.is_deleted))


def _as_source(page: str, one: Comment) -> SourceComment:
    return SourceComment(_id_of(one), page, one.time_ms, one.author, one.text, 0, one.state == REMOVED)


def _moved(comments: StoredComments, page: str) -> list[Comment]:
    """Return the comments of a page that a move has brought.  Raises NoPageToComment."""
    place = comments.find_commented(normalise(page))
    return [one for one in comments.every(place.history, place.head) if one.origin.startswith(_ORIGIN)]


def _id_of(one: Comment) -> int:
    return int(one.origin.split(" ")[1])
