"""(pure) The cursor of a follower on one region: how far it has read, and which changes are open.

The bytes of a cursor are msgpack, where a sequence is ``[origin, epoch, n]``:

    [1, read_to, [[sequence, attempts], ...]]
    [2, read_to, [...], [[sequence, state], ...]]                    if a change has a checkpoint
    [3, read_to, [...], [...], kept]                                 if the follower's kind keeps data of its own
    [4, read_to, [...], [[sequence, state, part], ...], kept]        if a checkpoint follows contributions to totals
    [5, read_to, [...], [[sequence, state, part], ...], kept, [[sequence, due: ms since 1970], ...]]
                                                                     if changes requested a later delivery
    [6, read_to, open, [[index, state, part], ...], kept, [[index, due], ...]]
                                                                     if over LONG_OPEN changes are open; as runs

    open       := [runs, attempts]                           of the last form
    runs       := [[origin, epoch, [gap, ...]], ...]         gap: n less the n before; the first of a run less 0
    attempts   := [[index, failed attempts], ...]            of the changes that failed; ascending

An index is a change's place among the open changes, from 0.  So 7-2-299 (failed 3 times), 7-2-300 and 8-1-5 are

    [[[7, 2, [299, 1]], [8, 1, [5]]], [[0, 3]]]

A change takes 1 byte so, instead of 20.  Knows nothing of logs and of what becomes of changes (``delivery_state``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from columnar.errors import DamagedData
from columnar.regions.log.change_record import Sequence

LONG_OPEN: Final = 4_096  # programs that do not read the form for more never had more open changes
_VERSION: Final = 1
_WITH_PROGRESS: Final = 2
_WITH_KEPT: Final = 3
_WITH_PARTS: Final = 4
_WITH_DUE: Final = 5
_LONG: Final = 6
_SHAPES: Final = (  # version, number of elements after the open changes
    (_VERSION, 0), (_WITH_PROGRESS, 1), (_WITH_KEPT, 2), (_WITH_PARTS, 2), (_WITH_DUE, 3), (_LONG, 3),
)  # fmt: skip


class Progress(NamedTuple):
    sequence: Sequence
    state: bytes  # of the change's last checkpoint
    part: int = 0  # of the change's contributions to totals: the first part after the checkpoint


class Cursor(NamedTuple):
    read_to: Sequence | None  # None: nothing yet
    open: tuple[tuple[Sequence, int], ...]  # sequence, failed attempts; ascending
    progress: tuple[Progress, ...] = ()  # of the open changes that have a checkpoint
    kept: bytes = b""  # data of the follower's kind
    due: tuple[tuple[Sequence, int], ...] = ()  # open changes that requested a later delivery: when, ms since 1970


def pack_cursor(cursor: Cursor) -> bytes:
    import msgpack  # as in ``frames``

    if len(cursor.open) > LONG_OPEN:
        packed_long: bytes = msgpack.packb(_long_parts(cursor))
        return packed_long
    open_changes = [[list(sequence), attempts] for sequence, attempts in cursor.open]
    read_to = None if cursor.read_to is None else list(cursor.read_to)
    parts: list[object] = [_VERSION, read_to, open_changes]
    progress: list[list[object]] = [[list(one.sequence), one.state] for one in cursor.progress]
    if cursor.due or any(one.part for one in cursor.progress):
        progress = [[list(one.sequence), one.state, one.part] for one in cursor.progress]
        parts = [_WITH_PARTS, read_to, open_changes, progress, cursor.kept]
        if cursor.due:
            parts = [_WITH_DUE, *parts[1:], [[list(sequence), at_ms] for sequence, at_ms in cursor.due]]
    elif cursor.kept:
        parts = [_WITH_KEPT, read_to, open_changes, progress, cursor.kept]
    elif progress:
        parts = [_WITH_PROGRESS, read_to, open_changes, progress]
    packed: bytes = msgpack.packb(parts)
    return packed


def _long_parts(cursor: Cursor) -> list[object]:
    index_of = {sequence: index for index, (sequence, _) in enumerate(cursor.open)}
    progress = [[index_of[one.sequence], one.state, one.part] for one in cursor.progress]
    due = [[index_of[sequence], at_ms] for sequence, at_ms in cursor.due]
    read_to = None if cursor.read_to is None else list(cursor.read_to)
    return [_LONG, read_to, _pack_open(cursor.open), progress, cursor.kept, due]


def unpack_cursor(data: bytes) -> Cursor:
    import msgpack

    try:
        version, read_to, open_changes, *more = msgpack.unpackb(data)
        if (version, len(more)) not in _SHAPES:
            raise DamagedData(f"trigger cursor of version {version}; this program knows {_LONG}")
        if version == _LONG:
            open_changes, more = _short_parts(open_changes, more)
        found = tuple((Sequence(*sequence), int(attempts)) for sequence, attempts in open_changes)
        progress = tuple([_progress(*one) for one in (more[0] if more else ())])
        kept = bytes(more[1]) if len(more) > 1 else b""
        due = tuple((Sequence(*sequence), int(at_ms)) for sequence, at_ms in (more[2] if len(more) > 2 else ()))
        return Cursor(None if read_to is None else Sequence(*read_to), found, progress, kept, due)
    except (ValueError, TypeError) as error:
        raise DamagedData(f"trigger cursor: {error}") from error


def _short_parts(packed: list[Any], more: list[Any]) -> tuple[list[tuple[Sequence, int]], list[Any]]:
    """Return the open changes of the long form, and what follows them with sequences in place of indices."""
    found = _unpack_open(packed)
    progress, kept, due = more
    count = len(found)
    named = [[list(found[_checked_index(index, count)][0]), *rest] for index, *rest in progress]
    return found, [named, kept, [[list(found[_checked_index(index, count)][0]), at_ms] for index, at_ms in due]]


def _progress(sequence: list[int], state: bytes, part: int = 0) -> Progress:
    if type(part) is not int or part < 0:
        raise ValueError(f"part {part!r}")
    return Progress(Sequence(*sequence), bytes(state), part)


def needed_from(data: bytes) -> Sequence | None:
    """Return the oldest record that the follower of this cursor may still read; None if it may read all records."""
    cursor = unpack_cursor(data)
    return cursor.open[0][0] if cursor.open else cursor.read_to


# --- runs ------------------------------------------------------------------------------------------


def _pack_open(changes: Iterable[tuple[Sequence, int]]) -> list[Any]:
    """Return the open changes, ascending, with their failed attempts, as runs."""
    runs: list[list[Any]] = []
    attempts: list[list[int]] = []
    gaps: list[int] = []
    origin = epoch = before = -1
    for index, (sequence, failed) in enumerate(changes):
        if sequence.origin != origin or sequence.epoch != epoch or sequence.n < before:
            origin, epoch, before, gaps = sequence.origin, sequence.epoch, 0, []
            runs.append([origin, epoch, gaps])
        gaps.append(sequence.n - before)
        before = sequence.n
        if failed:
            attempts.append([index, failed])
    return [runs, attempts]


def _unpack_open(packed: list[Any]) -> list[tuple[Sequence, int]]:
    """Return the open changes.  Raises ValueError or TypeError."""
    runs, attempts = packed
    found: list[tuple[Sequence, int]] = []
    for origin, epoch, gaps in runs:
        n = 0
        for gap in gaps:
            if type(gap) is not int or gap < 0:
                raise ValueError(f"gap {gap!r}")
            n += gap
            found.append((Sequence(origin, epoch, n), 0))
    for index, failed in attempts:
        place = _checked_index(index, len(found))
        found[place] = (found[place][0], int(failed))
    return found


def _checked_index(index: Any, count: int) -> int:
    """Return the place of one of ``count`` open changes.  Raises ValueError."""
    if type(index) is not int or not 0 <= index < count:
        raise ValueError(f"index {index!r} of {count} open changes")
    return index
