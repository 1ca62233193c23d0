"""Replay: delivers a region's changes since some time, or all its rows, to a trigger again.

The master keeps the replay request with the trigger (``model.derivations.Replay``).  Each region carries the request
out once, when the trigger's follower next begins there, and records that in ``meta``:

    replay/NAME -> number:u64 origin:u64 epoch:u32 n:u64      the request's number, and the cursor when it was moved

A trigger that starts at a time is added together with a replay request; nothing was delivered to the trigger before.

Invariants:
    I1. A single batch moves the cursor back and records the request.  A crash keeps both or neither, so a request is
        carried out once, and a replay that a crash interrupted continues at its cursor.
    I2. A cursor is moved back only to a time mark after which the log is whole; if no such mark is left, it is moved to
        the oldest record.  Changes that were open before the mark stay open.

Splits copy the mark to both daughters with the cursor.  Owned by the loop.
"""

from __future__ import annotations

import logging
from struct import Struct
from typing import Final

from columnar.flows.delivery_cursor import Cursor, pack_cursor, unpack_cursor
from columnar.flows.follower_name import FollowerName
from columnar.model.derivations import BEGINNING, Replay
from columnar.regions.log.change_record import KEY_BYTES, Sequence, pack_key, unpack_key
from columnar.regions.region import Region
from columnar.storage.layout import range_start
from columnar.triggers.consumer import BACKFILL, BEGIN

_log = logging.getLogger(__name__)

REPLAY: Final = b"replay/"
_NUMBER: Final = Struct(">Q")
assert _NUMBER.size + KEY_BYTES == 28, "on disk: a new layout needs a new mark"
_NONE: Final = Sequence(0, 0, 0)


def carry_out(name: FollowerName, replay: Replay, region: Region, *, starts: bool) -> None:
    """Carry out a replay before a follower begins; idempotent (I1).

    ``starts`` says that the trigger starts with this replay, so that nothing was delivered before.
    """
    mark = _replay_mark(region, name)
    if mark is not None and mark[0] >= replay.number:
        return
    saved = region.log.cursors.cursor(name.key)
    cursor = unpack_cursor(saved) if saved is not None else Cursor(None, ())
    marks = {
        REPLAY + name.key.encode(): _NUMBER.pack(replay.number) + pack_key(_NONE if starts else cursor.read_to or _NONE)
    }
    if replay.from_ms == BEGINNING:
        marks[BACKFILL + name.key.encode()] = BEGIN + range_start(region.info.start)
    else:
        cursor = _rewind_cursor(region, name, cursor, replay)
    region.log.cursors.rewind_cursor(name.key, pack_cursor(cursor), marks)


def _rewind_cursor(region: Region, name: FollowerName, cursor: Cursor, replay: Replay) -> Cursor:
    start = region.log.retention.before(replay.from_ms)
    if start is None:
        _log.warning("%s: the log of %s no longer reaches back so far; it begins there", name, region.info.encoded)
    if cursor.read_to is None or (start is not None and start >= cursor.read_to):
        return cursor
    if start is None:
        return Cursor(None, ())
    return Cursor(
        start,
        tuple(one for one in cursor.open if one[0] <= start),
        tuple(one for one in cursor.progress if one.sequence <= start),
        due=tuple(one for one in cursor.due if one[0] <= start),
    )


def repeats_to(region: Region, name: FollowerName) -> Sequence | None:
    """Return the sequence to which the follower had read before its last replay: all earlier changes but open ones.

    Returns None if there was no replay, or nothing was delivered before it.
    """
    mark = _replay_mark(region, name)
    return mark[1] if mark is not None and mark[1] != _NONE else None


def _replay_mark(region: Region, name: FollowerName) -> tuple[int, Sequence] | None:
    data = region.mark(REPLAY + name.key.encode())
    return None if data is None else (_NUMBER.unpack(data[: _NUMBER.size])[0], unpack_key(data[_NUMBER.size :]))
