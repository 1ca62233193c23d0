"""(pure) Rows of watches and notices: tables, keys, records.

    table      row                                        families        serves
    watches    folded account, 00, target                 w               what an account watches; the source
    watchers   target, 00, folded account                 w               who watches a target (derived)
    inbox      folded account, 00, inverted ms (13), id   i (90 days)     an account's notices, the newest first
    outgoing   due ms (13), 00, folded account, 00, place o (10 days)     notices to be mailed (``mailing``)
    pages      (there)  ``meta:notify``                   meta            the save that watchers are notified of
    users      (there)  ``account:news``                  account         time of the account's newest notice

A target is "p" and the key of a page's history, or "b" and a folded name: "bdocs" is the page Docs with all pages below
it, "b" the whole wiki.  A history stays with its page, so a watch follows a rename
and an undeletion without a step of its own, and a deleted page's watch is silent.

``meta:notify`` is put with the commit of an edit that a person makes (``rights.guarded``): a JSON object with "by",
the folded name of the account that edited, "names", the accounts that it
mentions (``mentions``), and "head", "name", "time", "new" and "minor" of the revision.  Imports,
repairs, and the links that a rename rewrites put none.  The trigger ``wiki-notices`` (``fan_out``) follows this cell
and ``comment:head``.

The same trigger's function follows ``m:state`` and ``m:notified`` of ``moves`` for renames, deletions and undeletions
(``move_notices``), and ``at:review`` of ``suggestions`` for decisions on texts under review.

A notice says which change it is about, and nothing of its content: name, author, note and text are read, with the
rights, when it is shown (``stored_notices``).  Its id is made from page and change.  So a repeated delivery writes the
same rows, and an account that watches a page and the pages above has one notice of a change.

The remains of a crash:
    of the worker, in a fan-out    the trigger goes on behind its last checkpoint, and repeats FAN_OUT_STEP rows at most
    of a wiki that adds a watch    the watch is there or is not; the trigger derives ``watchers``
    of the end of an account       rows of an account that has ended: ``wikka check --repair`` removes them
On a plain HBase the process that saves fans out itself, after the commit: a crash in between loses the notices of this
change, and one while a watch is changed leaves ``watchers`` behind ``watches``, which ``wikka check`` finds.

Invariants:
    N1. A row of ``watchers`` follows from one row of ``watches`` and has its timestamp.
    N2. A change notifies an account at most once, and nobody of his own change.

Knows nothing of the store, and of who may read what.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Final

from wikka_port import schema
from wikka_port.limits import WATCHED_ABOVE
from wikka_port.schema import KEY_BYTES, TIME_MAX_MS, Head, TableSpec, folded, parse_head

WATCHES: Final = b"watches"
WATCHERS: Final = b"watchers"
INBOX: Final = b"inbox"
OUTGOING: Final = b"outgoing"
OUTGOING_S: Final = 10 * 24 * 3600
INBOX_S: Final = 90 * 24 * 3600  # a notice ends by itself
_MARKED: Final = {"DELETE_MARKERS": str(schema.MARKERS_MS)}
TABLES: Final = (
    TableSpec(WATCHES, {"w": {"max_versions": 1}}, {}),
    TableSpec(WATCHERS, {"w": {"max_versions": 1}}, _MARKED),
    TableSpec(OUTGOING, {"o": {"max_versions": 1, "time_to_live": OUTGOING_S}}, _MARKED),
    TableSpec(INBOX, {"i": {"max_versions": 1, "time_to_live": INBOX_S}}, _MARKED),
)
WATCH_FAMILY: Final = b"w"
SINCE: Final = b"w:since"
MINOR: Final = b"w:minor"
MAIL: Final = b"w:mail"
HOW: Final = b"o:how"
NOW, DAILY = b"now", b"daily"  # when a notice is mailed; b"": never
_DAY_MS: Final = 24 * 3600 * 1000
DIGEST_AFTER_MS: Final = 60_000  # after midnight: a notice of the last moment, which comes later, is in the same digest
NOTIFY: Final = schema.NOTIFY
MENTION: Final = b"i:mention"
YES: Final = b"1"

EDIT, NEW, COMMENT, MOVED, REVIEW = "edit", "new", "comment", "moved", "review"
MOVE_CHARS: Final = 16  # of the id of a move (``moving.journal``)
PAGE, BELOW = b"p", b"b"
_TIME_CHARS: Final = 13
ID_CHARS: Final = 16
PLACE_CHARS: Final = _TIME_CHARS + ID_CHARS


# --- watches -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Watch:
    target: bytes
    name: Annotated[str, b"w:name"]  # as it was when the watch began; "" for the whole wiki
    since_ms: Annotated[int, SINCE] = 0
    minor: Annotated[str, MINOR] = ""  # "1": of minor edits, too; from the account's settings
    mail: Annotated[str, MAIL] = ""  # "now" or "daily"; from the account's settings

    @property
    def is_below(self) -> bool:
        return self.target[:1] == BELOW

    @property
    def history(self) -> bytes:
        """The key of the watched page's history; b"" for a watch of all pages below a name."""
        return b"" if self.is_below else self.target[1:]


def page_target(history: bytes) -> bytes:
    assert len(history) == KEY_BYTES, "a key of a history"
    return PAGE + history


def below_target(name: str) -> bytes:
    """Return the target of a page and all pages below it; "" is the whole wiki."""
    return BELOW + folded(name.strip("/")).encode()


def targets_of(history: bytes, name: str) -> list[bytes]:
    """Return the targets whose watchers are notified of a change of the page; at most WATCHED_ABOVE are names."""
    parts = folded(name).split("/")[:WATCHED_ABOVE]
    above = ["/".join(parts[:number]) for number in range(len(parts) + 1)]
    return [page_target(history), *(BELOW + one.encode() for one in dict.fromkeys(above))]


def watch_row(account: bytes, target: bytes) -> bytes:
    return account + b"\0" + target


def rows_of_account(account: bytes) -> tuple[bytes, bytes]:
    """Return the range of an account's rows in ``watches`` or ``inbox``."""
    return account + b"\0", account + b"\x01"


def watcher_row(target: bytes, account: bytes) -> bytes:
    return target + b"\0" + account


def rows_of_target(target: bytes) -> tuple[bytes, bytes]:
    return target + b"\0", target + b"\x01"


def turned(row: bytes) -> bytes:
    """Return the row of ``watchers`` for one of ``watches``, or the reverse; b"" if ``row`` is neither."""
    first, zero, second = row.partition(b"\0")
    return second + zero + first if zero else b""


def watch_of(row: bytes, cells: Mapping[bytes, bytes]) -> Watch:
    return Watch(row.partition(b"\0")[2], **schema.fields_in(Watch, cells))


def watcher_cells(watch: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """Return the cells of ``watchers`` for a watch's cells; {} if there is no watch."""
    return {MINOR: watch.get(MINOR, b""), MAIL: watch.get(MAIL, b"")} if SINCE in watch else {}


# --- notices -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Notice:
    """A change of a page, as it is told to an account."""

    time_ms: int
    id: bytes
    kind: Annotated[str, b"i:kind"]
    page: Annotated[str, b"i:page"]  # its name at that time
    history: Annotated[bytes, b"i:history"]
    head: Annotated[Head, b"i:head"] = schema.NO_HEAD  # of the new revision
    comment: Annotated[int, b"i:comment"] = 0  # the number of the comment
    mention: Annotated[str, MENTION] = ""  # "1": the change names the account
    moves: Annotated[bytes, b"i:moves"] = b""  # the ids of moves, NOTICED_MOVES at most, one after the other
    review: Annotated[bytes, b"i:review"] = b""  # the row of a text that was under review (``editing.suggestions``)

    @property
    def move_ids(self) -> list[bytes]:
        return [self.moves[start : start + MOVE_CHARS] for start in range(0, len(self.moves), MOVE_CHARS)]

    @property
    def place(self) -> bytes:
        """The row without the account."""
        return b"%0*d%s" % (_TIME_CHARS, TIME_MAX_MS - min(max(self.time_ms, 0), TIME_MAX_MS), self.id)


def notice_of(row: bytes, cells: Mapping[bytes, bytes]) -> Notice | None:
    """Return the notice in a row of ``inbox``, or None if it is none."""
    place = row.partition(b"\0")[2]
    if not is_place(place):
        return None
    try:
        fields = schema.fields_in(Notice, cells)
    except ValueError:
        return None
    return Notice(time_of_place(place), place[_TIME_CHARS:], **fields)


def is_place(place: bytes) -> bool:
    """Return whether ``place`` may be that of a notice; it may come from a form."""
    return len(place) == PLACE_CHARS and place[:_TIME_CHARS].isdigit() and place.isalnum() and place.isascii()


def time_of_place(place: bytes) -> int:
    return TIME_MAX_MS - int(place[:_TIME_CHARS])


def inbox_row(account: bytes, notice: Notice) -> bytes:
    return account + b"\0" + notice.place


def outgoing_row(due_ms: int, account: bytes, place: bytes) -> bytes:
    return b"%0*d\0%s\0%s" % (_TIME_CHARS, due_ms, account, place)


def due_ms(time_ms: int, how: bytes) -> int:
    """Return when a notice of that time is mailed: at once, or with the digest after the next midnight (UTC)."""
    return (time_ms // _DAY_MS + 1) * _DAY_MS + DIGEST_AFTER_MS if how == DAILY else time_ms


def parse_outgoing_row(row: bytes) -> tuple[bytes, bytes, bytes]:
    """Return time, account and place."""
    due, _, rest = row.partition(b"\0")
    account, _, place = rest.partition(b"\0")
    return due, account, place


def first_row_since(account: bytes, time_ms: int) -> bytes:
    """Return the end of the range of an account's notices that are later than ``time_ms``."""
    return account + b"\0" + b"%0*d" % (_TIME_CHARS, TIME_MAX_MS - min(max(time_ms, 0), TIME_MAX_MS))


def id_of_edit(history: bytes, head: Head) -> bytes:
    return _id(b"edit %s %d:%s" % (history, head.number, head.token))


def id_of_comment(history: bytes, number: int) -> bytes:
    return _id(b"comment %s %d" % (history, number))


def id_of_moves(row: bytes, told: bytes) -> bytes:
    """Return the id of the notice of a move, or of a job's moves of the number ``told``, from the row in ``moves``."""
    return _id(b"moves %s %s" % (row, told))


def id_of_review(row: bytes, state: str) -> bytes:
    return _id(b"review %s %s" % (row, state.encode()))


def _id(text: bytes) -> bytes:
    return hashlib.sha1(text, usedforsecurity=False).hexdigest()[:ID_CHARS].encode()


# --- the cell of a save ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class News:
    """A change with the person who made it."""

    notice: Notice
    by: bytes  # the folded name of the account; b"": none
    minor: bool = False
    mentions: tuple[str, ...] = ()  # folded names of accounts that the change names
    answered: str = ""  # the folded name of the account whose comment is answered; "": none
    is_of_watchers: bool = True  # whether watchers are notified, beside the accounts that the change names


def pack_notify(
    by: str, *, name: str, head: Head, time_ms: int, is_new: bool, minor: bool, mentions: Collection[str] = ()
) -> bytes:
    """Return ``meta:notify`` of an edit by the account ``by``, or by a visitor without one ("")."""
    said = {"by": folded(by), "head": head.pack().decode(), "name": name, "time": time_ms, "new": is_new}
    return json.dumps({**said, "minor": minor, "names": list(mentions)}, ensure_ascii=False, sort_keys=True).encode(
        "utf-8", "replace"
    )


def news_of_save(key: bytes, cell: bytes, stamp_ms: int) -> News | None:
    """Return the news in ``meta:notify`` as it was put at ``stamp_ms``, or None if it notifies nobody.

    A move puts the cell in the page's new row, with the time of the move.
    """
    try:
        said = json.loads(cell)
        by, name, time_ms, head = (
            str(said["by"]),
            str(said["name"]),
            int(said["time"]),
            parse_head(said["head"].encode()),
        )
        is_new, minor, mentions = bool(said["new"]), bool(said["minor"]), tuple(map(str, said["names"]))
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
    if time_ms != stamp_ms:
        return None
    history = head.place(key)
    kind = NEW if is_new else EDIT
    notice = Notice(time_ms, id_of_edit(history, head), kind, name, history, Head(head.number, head.token))
    return News(notice, by.encode(), minor, mentions)
