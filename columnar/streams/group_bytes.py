"""(pure) The bytes of groups of readers: their rows in ``columnar:groups``, and the positions of their members.

    row         := table 00 group
    info:state  := msgpack [1, wanted, [[member, deadline_ms], ...],
                            [[start, owner, epoch, serial, committed_ms, moves_by_ms, place], ...]]
    position    := msgpack ["group", 1, table, [[start, epoch, serial, place], ...]]
    place       := [[start, [origin, epoch, n] | nil, x | nil], ...]     as in ``flows.position``

``owner`` is the number of a member, or -1.  A ``position`` is what ``columnarChanges`` answers to a member of a group:
clients send it back as it was.

Golden bytes: tests/golden/test_reader_groups_golden.py; the page: docs/formats/reader-groups.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from columnar.errors import DamagedData, IllegalArgument
from columnar.flows.position import Range
from columnar.model.reader_groups import GROUP_RANGES
from columnar.regions.log.change_record import Sequence as Place
from columnar.streams.groups import NOBODY, Group, GroupRange, Member, Progress

INFO: Final = b"info"
STATE: Final = b"state"
_VERSION: Final = 1
_KIND: Final = "group"  # tells a member's position from the position of a reader of its own
_REMEDY: Final = "send the position of an earlier reply as it was, or none"


def row_of(table: str, group: str) -> bytes:
    return table.encode() + b"\x00" + group.encode()


def rows_of(table: str) -> tuple[bytes, bytes]:
    """Return the half-open range of the rows of a table's groups."""
    return table.encode() + b"\x00", table.encode() + b"\x01"


def group_of(row: bytes) -> str:
    return row.partition(b"\x00")[2].decode(errors="replace")


def pack_group(group: Group) -> bytes:
    import msgpack

    numbers = {one.name: number for number, one in enumerate(group.members)} | {NOBODY: -1}
    ranges = [
        [
            one.start,
            numbers[one.owner],
            one.epoch,
            one.serial,
            one.committed_ms,
            one.moves_by_ms,
            _place(one.place),
        ]
        for one in group.ranges
    ]
    members = [[one.name, one.deadline_ms] for one in group.members]
    packed: bytes = msgpack.packb([_VERSION, group.wanted, members, ranges])
    return packed


def unpack_group(data: bytes) -> Group:
    """Return the group.  Raises DamagedData."""
    import msgpack

    try:
        version, wanted, members, ranges = msgpack.unpackb(data)
        if version != _VERSION:
            raise DamagedData(f"state of a group of readers of version {version}; this program knows {_VERSION}")
        names = [name for name, _ in members]
        return Group(
            wanted,
            tuple([Member(name, deadline_ms) for name, deadline_ms in members]),
            tuple(
                [
                    GroupRange(
                        start,
                        names[owner] if owner >= 0 else NOBODY,
                        epoch,
                        serial,
                        _ranges(place, start),
                        committed_ms,
                        moves_by_ms,
                    )
                    for start, owner, epoch, serial, committed_ms, moves_by_ms, place in ranges
                ]
            ),
        )
    except (ValueError, TypeError, IndexError, msgpack.UnpackException) as error:
        raise DamagedData(f"state of a group of readers: {error}") from error


def pack_progress(held: Iterable[Progress], table: str) -> bytes:
    import msgpack

    ranges = [[one.start, one.epoch, one.serial, _place(one.place)] for one in held]
    packed: bytes = msgpack.packb([_KIND, _VERSION, table, ranges])
    return packed


def unpack_progress(data: bytes, table: str) -> list[Progress]:
    """Return the ranges of a member's position; none if it is empty.  Raises IllegalArgument: a client sent it."""
    import msgpack

    if not data:
        return []
    try:
        kind, version, of_table, ranges = msgpack.unpackb(data)
        if (kind, version) != (_KIND, _VERSION) or len(ranges) > GROUP_RANGES:
            raise IllegalArgument(f"this is no position of a member of a group; {_REMEDY}")
        if of_table != table:
            raise IllegalArgument(f"the position is of table {of_table}, not of {table}")
        return [
            Progress(start, _count(epoch), _count(serial), _ranges(place, start))
            for start, epoch, serial, place in ranges
        ]
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise IllegalArgument(f"position of a member of a group: {error}; {_REMEDY}") from None


def _place(place: Sequence[Range]) -> list[Any]:
    return [[one.start, None if one.p is None else list(one.p), one.x] for one in place]


def _ranges(place: Any, start: Any) -> tuple[Range, ...]:
    found = tuple([_range(*one) for one in place])
    starts = [one.start for one in found]
    if starts[:1] != [start] or starts != sorted(set(starts)):
        raise ValueError("its places do not ascend from the start of the range")
    return found


def _range(start: object, p: Any, x: object) -> Range:
    if not isinstance(start, bytes) or not (x is None or isinstance(x, bytes)):
        raise ValueError("a range begins and ends with a row")
    return Range(start, None if p is None else Place(*map(_count, p)), x)


def _count(value: Any) -> int:
    if not isinstance(value, int) or value < 0:
        raise ValueError("a number is not counted from 0")
    return value
