"""Triggers that the measurements of flows register; they run in the worker process of the store that is measured."""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from typing import Final

from columnar.triggers.api import Change, Checkpoint, Effect, Put

MODULE: Final = __name__
HEARD_AT: Final = "COLUMNAR_MEASURE_SOCKET"  # path of the datagram socket that hears of each call of ``told``
NOTE: Final = struct.Struct(">dI")  # seconds of the monotonic clock, changes of the call; the row of the first follows
SLOW_S: Final = 3.0
FAN_OUT: Final = 100_000
CHECKPOINT: Final = 10_000  # rows

_hearer: socket.socket | None = None


def none(_change: Change) -> None: ...


def one(change: Change) -> Iterator[Effect]:
    yield Put("derived", change.row, {b"f:a": b"1"})


def four(change: Change) -> Iterator[Effect]:
    for part in (b"a", b"b", b"c", b"d"):
        yield Put("derived", change.row + part, {b"f:a": b"1"})


def batched(changes: Sequence[Change]) -> Iterator[tuple[Change, Effect]]:
    for change in changes:
        yield change, Put("derived", change.row, {b"f:a": b"1"})


def told_batches(changes: Sequence[Change]) -> Iterator[tuple[Change, Effect]]:
    _tell(changes[0].row, len(changes))
    yield from batched(changes)


def told(change: Change) -> Iterator[Effect]:
    """Do as ``one`` does, and send the time of the run."""
    _tell(change.row, 1)
    yield Put("derived", change.row, {b"f:a": b"1"})


def slow(_change: Change) -> None:
    time.sleep(SLOW_S)


def fan_out(change: Change) -> Iterator[Effect]:
    for number in range(FAN_OUT):
        yield Put("spread", b"%06d" % number, {b"f:" + change.row: b"1"})


def spread(change: Change) -> Iterator[Effect | Checkpoint]:
    """Yield as many rows as the name of the changed row says."""
    begin = int(change.progress or b"0")
    _tell(b"%d" % begin, 1)
    for number in range(begin, int(change.row)):
        if number and number % CHECKPOINT == 0:
            yield Checkpoint(b"%d" % number)
        yield Put("spread", b"%09d" % number, {b"f:a": b"1"})


def fails(_change: Change) -> None:
    raise ValueError("as it always does")


def _tell(row: bytes, changes: int) -> None:
    global _hearer  # one for the process: a socket for each call would be measured too
    if _hearer is None:
        _hearer = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        _hearer.connect(os.environ[HEARD_AT])
    _hearer.send(NOTE.pack(time.monotonic(), changes) + row)
