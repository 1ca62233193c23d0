"""(pure) The types of the API's parameters and bodies, by which it reads, checks and describes them.

Times are milliseconds since 1970, UTC.  ``etag`` is the entity tag of the operation's answer, for ``If-Match``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, get_args

from msgspec import Meta, Struct

from wikka_port.accounts.api_keys import SCOPES
from wikka_port.comments.comment_rows import REMOVED, VISIBLE, WAITING, Comment
from wikka_port.listings import ChangeKind, RecentChange
from wikka_port.names import MAX_NAME_BYTES
from wikka_port.notices.notice_rows import COMMENT, PLACE_CHARS
from wikka_port.page_rows import Page, Revision
from wikka_port.rights.guarded_notices import ListedNotice, ListedWatch
from wikka_port.schema import OF_ACCOUNTS
from wikka_port.sealed_places import SEALED_CHARS

LIMIT_MAX: Final = 500  # of items in one answer
_PAGE: Final = "The name of a page."

PageName = Annotated[str, Meta(min_length=1, max_length=MAX_NAME_BYTES, description=_PAGE)]
Limit = Annotated[int, Meta(ge=1, le=LIMIT_MAX, description="Items in the answer at most.")]
Milliseconds = Annotated[int, Meta(ge=0, description="Milliseconds since 1970, UTC.")]
Format = Literal["wikka", "markdown"]
Signed = Literal["account", "key", "visitor", "wiki", ""]
Reason = Annotated[str, Meta(max_length=500, description="A reason, for the journal.")]
Language = Annotated[str, Meta(max_length=40, description='A code as "de"; "" where none was chosen.')]
Sure = Annotated[bool, Meta(description="That it is to be erased for good; without it nothing is.")]
Why = Annotated[str, Meta(max_length=500, description="Why it is erased, for the audit.")]


class Parameters(Struct, forbid_unknown_fields=True, frozen=True):
    """The parameters of a query."""


class Body(Struct, forbid_unknown_fields=True, frozen=True):
    """The body of a request."""


class Record(Struct, frozen=True, kw_only=True):
    """The body of an answer."""


# --- parameters --------------------------------------------------------------------------------


class NoParameters(Parameters, frozen=True):
    pass


class OfPage(Parameters, frozen=True):
    name: PageName


class DeletedPage(Parameters, frozen=True):
    name: PageName
    reason: Reason = ""


class SomeNames(Parameters, frozen=True):
    prefix: Annotated[str, Meta(max_length=MAX_NAME_BYTES, description="How the names begin.")] = ""
    start: Annotated[str, Meta(max_length=SEALED_CHARS, description="`next` of the preceding answer, or a name.")] = ""
    limit: Limit = 100


class SomeRevisions(Parameters, frozen=True):
    name: PageName
    below: Annotated[int, Meta(ge=1, le=10**10 - 1, description="Only revisions before this number.")] | None = None
    limit: Limit = 50


class OneRevision(Parameters, frozen=True):
    name: PageName
    number: Annotated[int, Meta(ge=1, le=10**10 - 1, description="The number of the revision.")]


class SomeBacklinks(Parameters, frozen=True):
    name: PageName
    after: Annotated[str, Meta(max_length=SEALED_CHARS, description="`next` of the preceding answer.")] = ""
    file: Annotated[str, Meta(max_length=200, description="A file of the page: the pages that use it.")] = ""
    limit: Limit = 100


class Words(Parameters, frozen=True):
    q: Annotated[str, Meta(max_length=300, description="What is searched, as on the page of searches.")]
    page: Annotated[int, Meta(ge=1, le=50, description="The page of results.")] = 1


class Since(Parameters, frozen=True):
    since: Annotated[
        str, Meta(max_length=SEALED_CHARS, description="`next` of the preceding answer; without it, a day.")
    ] = ""
    limit: Limit = 100


class ErasedRevision(Parameters, frozen=True):
    name: PageName
    number: Annotated[int, Meta(ge=1, le=10**10 - 1, description="The number of the revision, not of the newest one.")]
    sure: Sure = False
    reason: Why = ""


class SomeComments(Parameters, frozen=True):
    name: PageName
    part: Annotated[int, Meta(ge=1, le=10**5, description="Of 100 comments each, the oldest first.")] = 1


class OneComment(Parameters, frozen=True):
    name: PageName
    number: Annotated[int, Meta(ge=1, le=10**7 - 1, description="The number of the comment.")]


class NewWatch(Parameters, frozen=True):
    name: Annotated[str, Meta(max_length=MAX_NAME_BYTES, description='A page; "" with `below` is the whole wiki.')]
    below: Annotated[bool, Meta(description="All pages below the name, and the page of the name.")] = False


class OneWatch(Parameters, frozen=True):
    id: Annotated[str, Meta(min_length=1, max_length=2 * MAX_NAME_BYTES, description="The `id` of a watch.")]


NoticeId = Annotated[
    str, Meta(max_length=PLACE_CHARS, pattern="^[0-9]{13}[0-9a-f]{16}$", description="The `id` of a notice.")
]


class SomeNotices(Parameters, frozen=True):
    before: NoticeId | None = None
    limit: Limit = 50


class OneNotice(Parameters, frozen=True):
    id: NoticeId


class NoticesUntil(Parameters, frozen=True):
    until: NoticeId


# --- bodies of requests ------------------------------------------------------------------------


class NewText(Body, frozen=True):
    text: str
    note: str = ""
    format: Format | None = None
    language: Language | None = None
    minor: bool = False


class NewName(Body, frozen=True):
    to: PageName
    redirect: bool = True
    links: bool = False
    subpages: bool = False
    reason: Reason = ""


class NewComment(Body, frozen=True):
    text: Annotated[str, Meta(min_length=1)]
    answers: Annotated[int, Meta(ge=1, le=10**7 - 1, description="The number of the comment.")] | None = None
    id: Annotated[str, Meta(max_length=64, description="Of your making: what comes twice with it is added once.")] = ""


class CommentText(Body, frozen=True):
    text: Annotated[str, Meta(min_length=1)]


class ReadUntil(Body, frozen=True):
    until: NoticeId  # and all earlier ones


Entries = Annotated[str, Meta(max_length=5_000, description="Entries of a list, one a line; null: the page has none.")]


class NewRights(Body, frozen=True):
    owner: Annotated[str, Meta(max_length=MAX_NAME_BYTES)]
    read: Entries | None = None
    write: Entries | None = None
    comment_read: Entries | None = None
    comment_post: Entries | None = None


# --- answers -----------------------------------------------------------------------------------


class RevisionRecord(Record, frozen=True):
    name: str
    number: int
    time: Milliseconds
    author: str
    signed: Signed  # what the author's name rests on
    note: str
    minor: bool
    format: str
    language: str
    text: str | None = None

    @classmethod
    def of(cls, one: Revision) -> RevisionRecord:
        return cls(**_fields_of(one))


class PageRecord(RevisionRecord, frozen=True):
    text: str
    etag: str

    @classmethod
    def of(cls, one: Revision) -> PageRecord:
        assert isinstance(one, Page)
        return cls(**_fields_of(one), etag=page_etag(one))


class TextUnderReview(Record, frozen=True):
    """A text that antispam keeps until an administrator has looked at it; nothing of it is published yet."""

    page: str
    id: str
    url: Annotated[str, Meta(description="The page that shows its author what became of it.")]
    reasons: list[str]


class PageNames(Record, frozen=True):
    names: list[str]
    next: str | None = None


class Revisions(Record, frozen=True):
    revisions: list[RevisionRecord]
    next: int | None = None


class Moved(Record, frozen=True):
    name: str
    job: (
        Annotated[str, Meta(description="Of the work on links and subpages: /-/moves?job=; null: there is none.")]
        | None
    )


class Deleted(Record, frozen=True):
    name: str


class ChangeRecord(Record, frozen=True):
    kind: Annotated[
        ChangeKind,
        Meta(
            description="`edit`: a revision; `renamed`: `former` is `name` now; `deleted`: no page, or none that the "
            "caller may read; `restored`: a deleted page is back."
        ),
    ]
    name: str
    former: Annotated[
        str | None, Meta(description="The name before; null: not renamed, or the caller may not read a page of it.")
    ]
    number: Annotated[int, Meta(description="Of the revision; of a moved page that of its newest one.")]
    time: Milliseconds
    author: str
    signed: str
    note: Annotated[str, Meta(description="Of the revision, or the reason of the move.")]
    new: bool
    minor: bool
    grown: Annotated[int | None, Meta(description="Characters more than before; null: unknown, of an older version.")]

    @classmethod
    def of(cls, one: RecentChange) -> ChangeRecord:
        return cls(
            kind=one.kind,
            name=one.name,
            former=one.former or None,
            number=one.number,
            time=one.time_ms,
            author=one.author,
            signed=one.signed,
            note=one.note,
            new=one.is_new,
            minor=one.minor,
            grown=one.grown,
        )


class Changes(Record, frozen=True):
    changes: list[ChangeRecord]
    next: str
    more: Annotated[bool, Meta(description="Whether `next` leads to further changes already.")]


class HitRecord(Record, frozen=True):
    name: str
    time: Milliseconds
    author: str
    passage: str
    section: str | None = None
    kind: Annotated[str, Meta(description="`page`, `comment` or `file`; `name` is the page that has it.")] = "page"
    comment: Annotated[int | None, Meta(description="The number of a comment.")] = None
    file: Annotated[str | None, Meta(description="The name of a file.")] = None


class Found(Record, frozen=True):
    hits: list[HitRecord]
    count: int
    more: Annotated[bool, Meta(description="Whether there are more than `count` results.")]
    instead: Annotated[str, Meta(description="A word that was searched instead of one that no page has.")]


class Rights(Record, frozen=True):
    name: str
    owner: str
    read: str | None
    write: str | None
    comment_read: str | None
    comment_post: str | None
    etag: str


class CommentRecord(Record, frozen=True):
    number: int
    time: Milliseconds
    author: str
    signed: str
    text: Annotated[str, Meta(description='"" of a removed comment.')]
    format: str
    answers: int | None
    state: Literal["shown", "held", "deleted"]
    edited: Milliseconds | None
    etag: str

    @classmethod
    def of(cls, one: Comment, page_format: str) -> CommentRecord:
        return cls(
            number=one.number,
            time=one.time_ms,
            author=one.author,
            signed=one.signed,
            text=one.text if one.is_visible else "",
            format=one.markup or page_format,
            answers=one.parent or None,
            state=_STATES[one.state],
            edited=one.edited_ms or None,
            etag=comment_etag(one),
        )


def comment_etag(one: Comment) -> str:
    """Return the state of a comment, as far as everybody may know it: of a removed one not the text."""
    shown = f"{one.number} {one.edited_ms} {one.state} {one.text if one.is_visible else ''}"
    return f'"{one.number}.{hashlib.sha256(shown.encode("utf-8", "replace")).hexdigest()[:16]}"'


class Comments(Record, frozen=True):
    comments: list[CommentRecord]
    count: Annotated[int, Meta(description="Of all parts, without removed ones.")]
    parts: int


class WatchRecord(Record, frozen=True):
    id: str
    name: Annotated[str, Meta(description='"" is the whole wiki.')]
    below: bool
    since: Milliseconds

    @classmethod
    def of(cls, one: ListedWatch) -> WatchRecord:
        watch = one.watch
        target = watch.target.decode(errors="replace")
        return cls(id=target, name=one.name, below=watch.is_below, since=watch.since_ms)


class Watches(Record, frozen=True):
    watches: list[WatchRecord]


NoticeKind = Literal["edit", "new", "comment", "renamed", "deleted", "restored", "moved", "accepted", "refused"]


class NoticeRecord(Record, frozen=True):
    id: str
    kind: NoticeKind
    page: Annotated[str, Meta(description="Of several moved pages the first.")]
    number: Annotated[int, Meta(description="Of the revision or the comment; of moved pages how many; else 0.")]
    time: Milliseconds
    author: Annotated[str, Meta(description="Empty if it is about a decision on a text under review.")]
    signed: str
    text: Annotated[str, Meta(description="The note of the edit, how the comment begins, or the reason.")]
    mention: Annotated[bool, Meta(description="Whether the change names the account.")]
    unread: bool

    @classmethod
    def of(cls, one: ListedNotice) -> NoticeRecord:
        notice = one.notice
        number = notice.comment if notice.kind == COMMENT else notice.head.number
        return cls(
            id=one.place,
            kind=_kind_of(one),
            page=one.page,
            number=len(one.change.moves) or number,
            time=one.time_ms,
            author=one.change.author,
            signed=one.change.signed,
            text=one.beginning,
            mention=bool(notice.mention),
            unread=one.is_unread,
        )


class Inbox(Record, frozen=True):
    notices: list[NoticeRecord]
    next: str | None
    unread: Annotated[int, Meta(description="Unread notices; 100 stands for more than 99.")]


class Me(Record, frozen=True):
    name: str | None
    scopes: list[str]
    administrator: bool


class Problem(Record, frozen=True, omit_defaults=True):
    """Problem details (RFC 9457); ``current`` is the present page when a precondition has failed."""

    title: str
    status: int
    detail: str
    current: PageRecord | None = None


_STATES: Final[Mapping[str, Literal["shown", "held", "deleted"]]] = {
    VISIBLE: "shown",
    WAITING: "held",
    REMOVED: "deleted",
}


def _fields_of(one: Revision) -> dict[str, Any]:
    return {
        "name": one.name,
        "number": one.number,
        "time": one.time_ms,
        "author": one.author,
        "signed": one.signed if one.signed in (*OF_ACCOUNTS, "visitor", "wiki") else "",
        "note": one.note,
        "minor": one.minor,
        "format": one.markup,
        "language": one.language,
        "text": one.body,
    }


def page_etag(page: Revision) -> str:
    return f'"{page.number}.{page.token}"'


_KINDS: Final[Mapping[str, NoticeKind]] = {one: one for one in get_args(NoticeKind)}


def _kind_of(one: ListedNotice) -> NoticeKind:
    return _KINDS[one.change.review.state if one.change.review is not None else one.kind]


assert tuple(SCOPES) == ("read", "write", "admin", "feed")
