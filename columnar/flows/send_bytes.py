"""(pure) Names of a change's messages at their targets, and the record of those that are stored.

    state     := number:u8*                              in the outbox's cursor: the sends of a change that are stored
    name      := "send-" token "-" number                of a message of a queue, unless its sender has named it
    producer  := "outbox-" region id                     of records of a topic, within each partition
    sequence  := origin:u64 epoch:u32 n:u64 number:u8    of a record of this producer                        big-endian
    header    := "columnar-send" = token "-" number      of a record

``number`` is the place among the sends of the change, from 0; ``token`` is the change's sequence, as a client has it.
So change 7-2-41 of region 9 has for its second send

    name      send-7-2-41-1
    producer  outbox-9, sequence 0000000000000007 00000002 0000000000000029 01

Names and sequences must stay what they are: a repeat after an upgrade is known by them.  ``docs/formats/sends.md`` has
the headers of refused messages, too.
"""

from __future__ import annotations

from typing import Final

from columnar.limits import SENDS
from columnar.regions.log.change_record import Sequence, pack_key

assert SENDS <= 256, "on disk: a number has one byte"

SEQUENCE_HEADER: Final = "columnar-send"


def message_name(sequence: Sequence, number: int) -> bytes:
    return b"send-%b" % _named(sequence, number)


def producer_name(region_id: int) -> bytes:
    return b"outbox-%d" % region_id


def record_sequence(sequence: Sequence, number: int) -> bytes:
    return pack_key(sequence) + bytes((number,))


def record_header(sequence: Sequence, number: int) -> tuple[str, bytes]:
    return SEQUENCE_HEADER, _named(sequence, number)


def add_stored(state: bytes, number: int) -> bytes:
    """Return the state of a change of which one more message is stored."""
    return state + bytes((number,))


def _named(sequence: Sequence, number: int) -> bytes:
    return b"%b-%d" % (sequence.token.encode(), number)
