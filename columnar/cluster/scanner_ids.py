"""(pure) Ids of scanners: any server finds from an id which incarnation opened the scanner.

    id := 0:1 slot:10 number:21                    an i32 that is never negative

A slot is the incarnation's number modulo SLOTS.  A standalone has slot 0.  An id of an incarnation that is dead has a
slot that no living server has, so its caller gets "unknown scanner" and never reads another's scanner.

Knows nothing of scanners.
"""

from __future__ import annotations

from typing import Final

from columnar.model.owner import Incarnation

NUMBER_BITS: Final = 21
NUMBERS: Final = 1 << NUMBER_BITS
SLOTS: Final = 1 << 10
assert NUMBERS * SLOTS == 1 << 31, "an i32 of Thrift that is not negative"


def slot_of_server(server: Incarnation) -> int:
    """Two living servers have one slot only if SLOTS incarnations or a multiple began between their starts."""
    return server.number % SLOTS


def id_of(slot: int, number: int) -> int:
    """Return the id; ``number`` counts the scanners of a server, and restarts after NUMBERS."""
    return slot << NUMBER_BITS | number % NUMBERS


def slot_of(scanner: int) -> int | None:
    """The slot of the server that gave the id; None: it is no server's id."""
    return scanner >> NUMBER_BITS if 0 <= scanner < SLOTS * NUMBERS else None
