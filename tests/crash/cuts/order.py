"""(pure) The order of system calls: no acknowledgement leaves before its log is on disk.

Each value begins with a unique mark, which is searched for in the writes to write-ahead logs, the regions' own and the
server log.  Between such a write and the send of the answer there must be an fsync or fdatasync of the same file that
began after the write had returned, and that has itself returned.
"""

from __future__ import annotations

from typing import Final

from tests.crash.cuts.recording import Recording
from tests.crash.cuts.system_calls import Event, Made, Synced, Written

BLOCK_BYTES: Final = 32 * 1024  # RocksDB's log: blocks, in which records stand in pieces behind headers
HEADER_BYTES: Final = 7
LOG: Final = ".log"
SEGMENT: Final = ".segment"  # of the server's log: marks stand in it as they are

Places = dict[int, list[tuple[str, int]]]  # call -> logs it was written to, and the events


class LogReader:
    """A reader of one log's bytes as they are written, without headers, which finds the place of each mark."""

    def __init__(self, *, in_blocks: bool) -> None:
        self._in_blocks = in_blocks
        self._found: set[int] = set()
        self._size = 0
        self._head = b""  # of a piece whose header is not whole yet
        self._left = 0  # of the piece
        self._tail = b""

    def feed(self, data: bytes, marks: dict[bytes, int], places: Places, at: tuple[str, int]) -> None:
        text = self._tail + (b"".join(self._payload(data)) if self._in_blocks else data)
        for mark, number in marks.items():
            if number not in self._found and mark in text:
                self._found.add(number)
                places.setdefault(number, []).append(at)
        self._tail = text[-16:]

    def _payload(self, data: bytes) -> list[bytes]:
        pieces, at = [], 0
        while at < len(data):
            room = BLOCK_BYTES - self._size % BLOCK_BYTES
            if self._left:
                taken = min(self._left, len(data) - at)
                pieces.append(data[at : at + taken])
                self._left -= taken
            elif not self._head and room < HEADER_BYTES:
                taken = min(room, len(data) - at)  # the rest of a block is filled with zeros
            else:
                taken = min(HEADER_BYTES - len(self._head), len(data) - at)
                self._head += data[at : at + taken]
                if len(self._head) == HEADER_BYTES:
                    self._left = int.from_bytes(self._head[4:6], "little")
                    self._head = b""
            self._size += taken
            at += taken
        return pieces


def too_early(recording: Recording) -> list[str]:
    """Return a line for each acknowledgement that left before its write was synced, or whose write was not found."""
    marks = {call.mark: number for number, call in enumerate(recording.calls) if call.mark}
    written = _written(recording.events, marks)
    synced: dict[str, list[tuple[int, int]]] = {}
    for number, event in enumerate(recording.events, 1):
        if isinstance(event, Synced) and event.path.endswith((LOG, SEGMENT)):
            synced.setdefault(event.path, []).append((event.began, number))
    wrong = []
    for mark, number in marks.items():
        call, sent = recording.calls[number], recording.acknowledged[number]
        if number not in written:
            wrong.append(f"{call.method} of {mark.decode()} was acknowledged, and stands in no log")
            continue
        if not any(began >= at and done < sent for path, at in written[number] for began, done in synced.get(path, [])):
            logs = " and ".join(f"{path} at event {at}" for path, at in written[number])
            wrong.append(
                f"{call.method} of {mark.decode()}: the answer left at event {sent}, written to {logs}, "
                f"and no fsync of that log lies between"
            )
    return wrong


def _written(events: list[Event], marks: dict[bytes, int]) -> Places:
    readers: dict[str, LogReader] = {}
    places: Places = {}
    for number, event in enumerate(events, 1):
        if isinstance(event, Made) and event.path.endswith((LOG, SEGMENT)):
            readers[event.path] = LogReader(in_blocks=event.path.endswith(LOG))
        elif isinstance(event, Written) and event.path.endswith((LOG, SEGMENT)):
            readers[event.path].feed(event.data, marks, places, (event.path, number))
    return places
