"""Moves in the order of their times, for followers of changes, and the last move of each page.

    row of ``moves``                                       cell
    "~at", milliseconds (13), inverted id of a move (16)   e:move   the id
    "~of", key of a history (32)                           e:last   the id of the page's last move

A row "~at" is written before the journal has the move.  So a move is in its place before anybody can decide it, however
long that takes, and whatever is killed.  A reader leaves out moves that are not decided or were aborted; of those that
are older than a time that he names he finishes what is undecided, so that he can go on behind it.
The cell e:last has the timestamp of its move, and is written after the decision and before the page leaves its old row.
A page's moves have rising timestamps, so the last one wins, whoever writes later.
Purges have no rows: their pages have gone before.  Moves of earlier versions of the wiki have none.

The place of a move is one in the list of changes (``schema.parse_change_place``): in the place of a page's key are 16
digits ``f`` and the id of the move, so the place tells nothing of the page.  Moves come before edits of the same
millisecond.

Knows nothing of who may read a page (``rights.followed_changes``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

from wikka_port.accounts.rows import Cells, Rows
from wikka_port.differences import Difference, Kind
from wikka_port.moving.journal import (
    DELETE,
    DONE,
    INTENT,
    MOVED,
    MOVES,
    OWNER_THEN,
    RENAME,
    STATE,
    UNDELETE,
    Move,
    rights_then,
)
from wikka_port.rights.rules import PageRights
from wikka_port.schema import KEY_BYTES, TIME_MAX_MS, fields_in
from wikka_port.store import NotPrepared

KINDS: Final = (RENAME, DELETE, UNDELETE)
_AT: Final = b"~at"
_OF: Final = b"~of"
_END: Final = b"~au"
_MOVE: Final = b"e:move"
_LAST: Final = b"e:last"
_MARK: Final = b"f" * 16
_NO_NUMBER: Final = b"0" * 10
_ID_CHARS: Final = 16
_TIME_CHARS: Final = 13
_AT_CHARS: Final = len(_AT) + _TIME_CHARS + _ID_CHARS
_STEP: Final = 200
_DECIDED: Final = (MOVED, DONE)
_INVERTED: Final = bytes.maketrans(b"0123456789abcdef", b"fedcba9876543210")


@dataclass(frozen=True, slots=True)
class DecidedMove:
    move: Move
    rights: PageRights  # that the page had; only its list for reading

    @property
    def place(self) -> bytes:
        return place_of(self.move)


def place_of(move: Move) -> bytes:
    """Return the place of a move in the list of changes; a larger place is an earlier one."""
    return b"%013d" % (TIME_MAX_MS - move.at_ms) + _MARK + move.id + _NO_NUMBER


def _listed_row(move: Move) -> bytes:
    return _AT + b"%013d" % move.at_ms + move.id.translate(_INVERTED)


def _id_of_row(row: bytes) -> bytes:
    return row[len(_AT) + _TIME_CHARS :].translate(_INVERTED)


def _first_row_after(place: bytes) -> bytes:
    """Return the row from which those moves follow that are later than a place in the list of changes."""
    at_ms = TIME_MAX_MS - int(place[:_TIME_CHARS])
    key = place[_TIME_CHARS : _TIME_CHARS + KEY_BYTES]
    if key.startswith(_MARK):
        return _AT + b"%013d" % at_ms + key[len(_MARK) :].translate(_INVERTED) + b"\0"
    return _AT + b"%013d" % (at_ms + 1)


def listed_rows(move: Move) -> dict[bytes, Cells]:
    """Return the row to be written before the journal has the move."""
    return {_listed_row(move): {_MOVE: move.id}} if move.kind in KINDS else {}


def note_last(rows: Rows, move: Move) -> None:
    """Note that the move is the last one of its page; a second call changes nothing, nor does a late one."""
    if move.kind in KINDS:
        rows.put(MOVES, _OF + move.history, {_LAST: move.id}, timestamp=move.at_ms)


def moves_since(
    rows: Rows, place: bytes, *, limit: int, decided_ms: int, finish: Callable[[bytes], object]
) -> tuple[list[DecidedMove], bytes]:
    """Return the decided ones of the next ``limit`` moves after ``place``, the oldest first, and where to go on.

    The second is the place of the last of the ``limit`` moves, decided or not, or b"" if there are no more.  Moves of
    up to ``decided_ms`` that are not decided are finished (``Mover.finish``).  Two calls.
    """
    try:
        keys = rows.row_keys(MOVES, _first_row_after(place), _END, limit=limit + 1)
    except NotPrepared:  # the folder of an older wiki, before it is prepared
        return [], b""
    ids = [_id_of_row(row) for row in keys[:limit]]
    stored = rows.rows(MOVES, ids, [b"m"])
    undecided = [one for one in ids if _is_undecided(one, stored.get(one, {}), decided_ms)]
    for one in undecided:
        finish(one)
    stored |= rows.rows(MOVES, undecided, [b"m"])
    decided = [_decided(one, stored.get(one, {})) for one in ids]
    onward = keys[limit - 1] if len(keys) > limit else b""
    return [one for one in decided if one is not None], _place_of_row(onward) if onward else b""


def _place_of_row(row: bytes) -> bytes:
    at_ms = int(row[len(_AT) : len(_AT) + _TIME_CHARS])
    return b"%013d" % (TIME_MAX_MS - at_ms) + _MARK + _id_of_row(row) + _NO_NUMBER


def _is_undecided(id_: bytes, cells: Cells, decided_ms: int) -> bool:
    return cells.get(STATE) == INTENT and Move(id_, **fields_in(Move, cells)).at_ms <= decided_ms


def _decided(id_: bytes, cells: Cells) -> DecidedMove | None:
    if cells.get(STATE) not in _DECIDED or OWNER_THEN not in cells:
        return None
    return DecidedMove(Move(id_, **fields_in(Move, cells)), rights_then(cells))


def last_moves(rows: Rows, histories: Collection[bytes]) -> dict[bytes, DecidedMove]:
    """Return the last move of each page, by history.  Two calls."""
    noted = rows.rows(MOVES, [_OF + one for one in histories], [_LAST])
    ids = {row[len(_OF) :]: cells[_LAST] for row, cells in noted.items()}
    stored = rows.rows(MOVES, list(ids.values()), [b"m"])
    found = {history: _decided(id_, stored.get(id_, {})) for history, id_ in ids.items()}
    return {history: one for history, one in found.items() if one is not None}


# --- the check -----------------------------------------------------------------------------------


def differences(rows: Rows, now_ms: int, grace_ms: int) -> Iterator[Difference]:
    """Yield the faults of both lists.  O(moves) time; memory for _STEP rows, and for the pages with a fault.

    A row "~at" without its move is spare: a process fell before the journal had the move.
    """
    late: dict[bytes, Move] = {}
    left = rows.scan(MOVES)
    while step := dict(islice(left, _STEP)):
        moves = _moves_in(step)
        there = rows.rows(MOVES, [_listed_row(one) for one in moves])
        for one in moves:
            if there.get(_listed_row(one), {}).get(_MOVE) != one.id:
                yield Difference(Kind.MISSING, MOVES, _listed_row(one), _MOVE, one.id, None, now_ms)
        decided = [one for one in moves if step[one.id][STATE] in _DECIDED]
        last = last_moves(rows, {one.history for one in decided})
        for one in decided:
            is_noted = one.history in last and last[one.history].move.history == one.history
            newest = last[one.history].move.at_ms if is_noted else -1
            if newest < one.at_ms and (one.history not in late or late[one.history].at_ms < one.at_ms):
                late[one.history] = one
        yield from _without_move(rows, [row for row in step if row.startswith(_AT)], now_ms, grace_ms)
    for history, one in late.items():
        yield Difference(Kind.MISSING, MOVES, _OF + history, _LAST, one.id, None, one.at_ms)


def _moves_in(step: Mapping[bytes, Cells]) -> list[Move]:
    """Return the moves that have to be in the lists."""
    moves = [Move(row, **fields_in(Move, cells)) for row, cells in step.items() if {STATE, OWNER_THEN} <= cells.keys()]
    return [one for one in moves if one.kind in KINDS]


def _without_move(rows: Rows, listed: Collection[bytes], now_ms: int, grace_ms: int) -> Iterator[Difference]:
    well_made = [row for row in listed if len(row) == _AT_CHARS and row[len(_AT) : -_ID_CHARS].isdigit()]
    step = rows.rows(MOVES, [_id_of_row(row) for row in well_made], [b"m"])
    known = {_listed_row(one) for one in _moves_in(step)}
    for row in listed:
        is_old = row not in well_made or int(row[len(_AT) : -_ID_CHARS]) < now_ms - grace_ms
        if row not in known and is_old:
            yield Difference(Kind.SPARE, MOVES, row, b"", None, row, now_ms)
