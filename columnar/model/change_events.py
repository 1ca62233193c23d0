"""(pure) The events of a change stream, as bytes: what ``columnarChanges`` answers, in any language.

    events    := event*                                                 msgpack arrays, one after the other
    change    := [1, row, sequence, stamp, more, [entry*], before, after]
    row       := [2, row, sequence, [[column, timestamp, value]*]]      of a snapshot
    forget    := [3, start, stop]                                       rows from start on, below stop (empty: all)
    entry     := [kind, column, timestamp, value]                       kind: 1 put; 2 delete of the column's cells up
                                                                        to the timestamp, 3 of the family's; 4 delete of
                                                                        one version
    sequence  := [origin, epoch, n]                                     those of a row rise within one origin
    before, after := {column: value} | nil                              nil: not requested, or not in the log

``column`` is ``family:qualifier``, and for kind 3 the bare family.  ``stamp`` is in ms since 1970 and rises with each
change of a row.  ``more`` is true if the next record of the same atomic step follows.  Readers ignore further elements
of an array, and arrays of unknown kind.

Golden bytes: tests/golden/test_change_events_golden.py; the page: docs/formats/change-events.md.

Knows nothing of logs and of those who read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from columnar.errors import DamagedData

CHANGE: Final = 1
ROW: Final = 2
FORGET: Final = 3
KINDS: Final = {1: "put", 2: "delete", 3: "delete family", 4: "delete version"}

Place = tuple[int, int, int]  # a sequence: origin, epoch, n
Image = Mapping[bytes, bytes]


class EventEntry(NamedTuple):
    kind: int
    column: bytes
    timestamp: int
    value: bytes


class ChangeEvent(NamedTuple):
    row: bytes
    sequence: Place
    stamp: int
    more: bool
    entries: Sequence[EventEntry]
    before: Image | None
    after: Image | None


class RowEvent(NamedTuple):
    row: bytes
    sequence: Place
    cells: Sequence[tuple[bytes, int, bytes]]  # column, timestamp, value


class ForgetEvent(NamedTuple):
    start: bytes
    stop: bytes


Event = ChangeEvent | RowEvent | ForgetEvent


class EventPacker:
    """Packs events.  Not safe for threads."""

    def __init__(self) -> None:
        import msgpack  # a process without change streams need not load it

        self._pack = msgpack.Packer(autoreset=True).pack

    def pack_change(
        self,
        row: bytes,
        sequence: Place,
        stamp: int,
        entries: list[tuple[int, bytes, int, bytes]],
        before: Image | None,
        after: Image | None,
        *,
        more: bool,
    ) -> bytes:
        packed: bytes = self._pack([CHANGE, row, sequence, stamp, more, entries, before, after])
        return packed

    def pack_row(self, row: bytes, sequence: Place, cells: Sequence[tuple[bytes, int, bytes]]) -> bytes:
        packed: bytes = self._pack([ROW, row, sequence, cells])
        return packed

    def pack_forget(self, start: bytes, stop: bytes) -> bytes:
        packed: bytes = self._pack([FORGET, start, stop])
        return packed


def unpack_events(data: bytes) -> Iterator[Event]:
    """Yield the events.  Raises DamagedData if the bytes are none."""
    import msgpack

    unpacker = msgpack.Unpacker(max_buffer_size=max(1, len(data)))
    unpacker.feed(data)
    try:
        for array in unpacker:
            event = _event(array)
            if event is not None:
                yield event
        if unpacker.read_bytes(1):
            raise DamagedData("events of a change stream: they end within an event")
    except (ValueError, TypeError, IndexError, msgpack.UnpackException) as error:
        raise DamagedData(f"events of a change stream: {error}") from error


def _event(array: list[Any]) -> Event | None:
    kind = array[0]
    if kind == CHANGE:
        _, row, sequence, stamp, more, entries, before, after = array[:8]
        return ChangeEvent(
            row, tuple(sequence), stamp, more, [EventEntry(*entry[:4]) for entry in entries], before, after
        )
    if kind == ROW:
        _, row, sequence, cells = array[:4]
        return RowEvent(row, tuple(sequence), [tuple(cell) for cell in cells])
    if kind == FORGET:
        return ForgetEvent(array[1], array[2])
    return None
