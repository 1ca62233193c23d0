"""(pure) Rows of comments: tables, keys, records, and the order of writes of a change.

    table      row                              families   serves
    pages      (there)  cell ``comment:head``   comment    number of comments, with the page's row; the last change
    deleted    (there)  the same                comment
    comments   history key, number (7)          c s        comments of a page, the oldest first

A comment belongs to a page's history, as its revisions and files do.  So a page that is renamed, deleted or undeleted
takes its comments along without a step of their own: ``moving`` copies the cell of the row.

    comment:head   ``CommentsHead``   "NUMBER:COUNT:OF:AT:TOKEN": the newest number, the number of shown comments, and
                                      the last change: of which comment, when, and its token
    comment:named  JSON list          the accounts, by folded names, that a change mentions and its former text did not;
                                      put with the head of an addition, and of another change that mentions any
    c:...          ``Comment``        the comment; ``c:op`` is the change that wrote these cells, "AT:TOKEN"
    s:AT:TOKEN     the comment as a change would make it (``pack``), until the change is applied

The protocol of a change (an addition, an edit, a removal; one call of the store each):
    1. read     pages[md5]; the last change that ``comment:head`` names is applied (4), so that all are
    2. stage    comments[history, number] s:AT:TOKEN is put.  An addition takes the number after the newest one
    3. commit   pages[md5] comment:head from its former value to the new one.  On Columnar a further condition is that
                ``acl:revision`` and ``meta:versioncount`` are as they were read.  On a plain HBase it is one
                ``checkAndPut``, after which ``meta:versioncount`` is read again: if a move has marked the page, the
                commit is repeated at its new row
    4. apply    the cells c:... are put with the timestamp AT, then s:AT:TOKEN is deleted
The cell of step 3 decides.  AT rises with each change of a page, so a late repetition of step 4 changes nothing.

The remains of a crash:
    after 2  a staged cell that ``comment:head`` does not name: no reader sees it, and the sweep removes it
    after 3  a change that is not applied: readers take the staged cell that ``comment:head`` names; the next change of
             the page's comments, the sweep or ``wikka check`` applies it
    in 4     the staged cell of a change that is applied: readers ignore it, and the sweep removes it

Invariants:
    C1. Each number from 1 to NUMBER has one comment: its row has the cells c:..., or ``comment:head`` names the row
        and it has the staged cell.  So a part of a list is one get of known rows, at any number of comments.
    C2. All committed changes but the one that ``comment:head`` names are applied.
    C3. An addition of a form is committed once: its token is made from the form's id, and rows since the form was
        made are searched for it before each attempt (SENT_TWICE rows at most).
    C4. COUNT is the number of comments whose state is "shown".

Knows nothing of the store, and of who may do what (``rights.guarded_comments``).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final

from wikka_port import schema
from wikka_port.schema import KEY_BYTES, TOKEN_CHARS, TableSpec

COMMENTS: Final = b"comments"
TABLES: Final = (TableSpec(COMMENTS, {"c": {"max_versions": 1}, "s": {"max_versions": 1}}, {}),)
COMMENT_FAMILY: Final = b"comment"
COMMENTS_HEAD: Final = b"comment:head"  # in ``pages`` and ``deleted``
COMMENTS_NAMED: Final = b"comment:named"  # there, too
CELLS_FAMILY: Final = b"c"
STAGED_FAMILY: Final = b"s"
STAGED: Final = b"s:"
OP: Final = b"c:op"
TOKEN: Final = b"c:token"
AUTHOR: Final = b"c:author"
SIGNED: Final = b"c:signed"
COMMENT_STATE: Final = b"c:state"

NUMBER_CHARS: Final = 7
NUMBER_MAX: Final = 10**NUMBER_CHARS - 1
DEPTH_MAX: Final = 10
SENT_TWICE: Final = 200  # comments that are searched for one that a form sent before
EDITABLE_MS: Final = 15 * 60 * 1000  # from the time of a comment, for its author
GRACE_MS: Final = 24 * 3600 * 1000  # a change takes seconds; one that was staged longer ago has crashed

VISIBLE, WAITING, REMOVED = "shown", "held", "deleted"
STATES: Final = (VISIBLE, WAITING, REMOVED)
PLAIN: Final = "plain"  # the format of a text without markup: comments of a WikkaWiki
RESTORED: Final = "restored"  # in the place of who removed a comment
BY_AUTHOR, BY_OWNER = "author", "owner"  # who removed a comment; administrators count as the page's owner

_HEAD: Final = re.compile(rb"([0-9]{1,7}):([0-9]{1,7}):([0-9]{1,7}):([0-9]{1,15}):([0-9a-f]{%d})" % TOKEN_CHARS)
_OP: Final = re.compile(rb"([0-9]{1,15}):[0-9a-f]{%d}" % TOKEN_CHARS)


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment of a page; the fields are cells of its row."""

    number: int
    time_ms: Annotated[int, b"c:time"]
    author: Annotated[str, AUTHOR]
    signed: Annotated[str, SIGNED]  # the kind of the author's name, as of a revision
    text: Annotated[str, b"c:text"]
    path: Annotated[str, b"c:path"]  # numbers of the comments that it stands under, and its own; 7 digits each
    token: Annotated[str, TOKEN]  # of the form that added it
    markup: Annotated[str, b"c:format"] = ""
    parent: Annotated[int, b"c:parent"] = 0  # the comment that it answers; 0: none
    state: Annotated[str, COMMENT_STATE] = VISIBLE
    edited_ms: Annotated[int, b"c:edited"] = 0  # the time of the last edit; 0: never
    browser: Annotated[str, b"c:browser"] = ""  # of an author without an account (``editing.kept_drafts``)
    removed_by: Annotated[str, b"c:removed"] = ""
    origin: Annotated[str, b"c:origin"] = ""  # of an import
    op: Annotated[bytes, OP] = b""

    @property
    def depth(self) -> int:
        """The number of comments on the way to it, with it: 1 if it answers none."""
        return len(self.path) // NUMBER_CHARS

    @property
    def is_visible(self) -> bool:
        return self.state == VISIBLE

    @property
    def is_of_account(self) -> bool:
        return self.signed in schema.OF_ACCOUNTS


def pack(comment: Comment) -> bytes:
    """Return a comment as a staged cell has it: the cells as a JSON object, sorted by column."""
    cells = {column.decode(): value.decode() for column, value in schema.cells_of(comment).items()}
    return json.dumps(cells, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()


def unpack(cell: bytes) -> dict[bytes, bytes]:
    """Return the cells in a staged cell.  Raises ValueError if ``cell`` is none."""
    found = json.loads(cell)
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise ValueError(f"{cell[:80]!r} is no staged comment")
    return {column.encode(): value.encode() for column, value in found.items()}


def comment_of(number: int, cells: Mapping[bytes, bytes]) -> Comment:
    """Return the comment in the cells of its row.  Raises ValueError if a number is none."""
    return Comment(number, **schema.fields_in(Comment, cells))


# --- keys ----------------------------------------------------------------------------------------


def comment_row(history: bytes, number: int) -> bytes:
    assert len(history) == KEY_BYTES, "a key of a page"
    return history + b"%0*d" % (NUMBER_CHARS, number)


def parse_comment_row(row: bytes) -> tuple[bytes, int]:
    """Return history key and number.  Raises ValueError if ``row`` is no row of a comment."""
    number = row[KEY_BYTES:]
    if len(number) != NUMBER_CHARS or not number.isdigit():
        raise ValueError(f"{row[:80]!r} is no row of a comment")
    return row[:KEY_BYTES], int(number)


def is_comment_row(row: bytes) -> bool:
    number = row[KEY_BYTES:]
    return len(number) == NUMBER_CHARS and number.isdigit()


def own_part(number: int) -> str:
    return f"{number:0{NUMBER_CHARS}d}"


def path_under(parent: Comment | None, number: int) -> str:
    """Return the path of an answer.  An answer to a comment at DEPTH_MAX stands beside that comment."""
    if parent is None:
        return own_part(number)
    above = parent.path if parent.depth < DEPTH_MAX else parent.path[:-NUMBER_CHARS]
    return above + own_part(number)


# --- the last change, in the page's row ----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CommentsHead:
    """The comments of a page, as much of them as a page's view needs, and their last change."""

    number: int = 0  # of the newest comment, removed or not
    count: int = 0  # of the shown ones
    of: int = 0  # the comment that the last change made or changed
    at_ms: int = 0
    token: bytes = b""

    @property
    def op(self) -> bytes:
        return b"%d:%s" % (self.at_ms, self.token)

    def pack(self) -> bytes:
        return b"%d:%d:%d:%d:%s" % (self.number, self.count, self.of, self.at_ms, self.token)


NO_COMMENTS: Final = CommentsHead()


def parse_comments_head(cell: bytes) -> CommentsHead:
    """Return the head in a cell.  Raises ValueError if ``cell`` is none."""
    found = _HEAD.fullmatch(cell)
    if found is None:
        raise ValueError(f"{cell[:80]!r} says nothing of comments")
    number, count, of, at_ms, token = found.groups()
    return CommentsHead(int(number), int(count), int(of), int(at_ms), token)


def comments_in(cells: Mapping[bytes, bytes]) -> CommentsHead:
    """Return the head in a page's row; a damaged cell counts as none, and ``wikka check`` names it."""
    cell = cells.get(COMMENTS_HEAD)
    if cell is None:
        return NO_COMMENTS
    try:
        return parse_comments_head(cell)
    except ValueError:
        return NO_COMMENTS


def op_ms(op: bytes) -> int:
    """Return the time of a change, or 0 if ``op`` names none."""
    found = _OP.fullmatch(op)
    return int(found[1]) if found else 0


def staged_column(op: bytes) -> bytes:
    return STAGED + op


def committed_cells(number: int, cells: Mapping[bytes, bytes], head: CommentsHead) -> dict[bytes, bytes]:
    """Return the cells of a comment from its row; {} if the row has no committed comment.

    ``head`` may be older than the row: what the row says of a later change counts.
    """
    staged = cells.get(staged_column(head.op)) if number == head.of else None
    if staged is not None and op_ms(cells.get(OP, b"")) < head.at_ms:
        return unpack(staged)
    return {column: value for column, value in cells.items() if not column.startswith(STAGED)}


def token_of_form(history: bytes, form: str) -> str:
    """Return the token of the comment that a form adds; the same form sent twice has the same."""
    return hashlib.sha1(b"add %s %s" % (history, form.encode()), usedforsecurity=False).hexdigest()[:TOKEN_CHARS]


def token_of_change(comment: Comment, at_ms: int) -> bytes:
    """Return the token of a change that leads to ``comment``."""
    digest = hashlib.sha1(b"%d %d " % (comment.number, at_ms) + pack(comment), usedforsecurity=False)
    return digest.hexdigest()[:TOKEN_CHARS].encode()
