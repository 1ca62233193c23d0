"""Steps and transactions over rows of a group are linearizable: the groups of the proof ``linearizable``.

Each group has a few rows, so that transactions meet.  A call is on one row of the group, as in a table without groups,
or on several: a read of the group, a change of several rows under conditions, a transfer between two rows, a count of
all rows.  A count conflicts with rows that come and go.
"""

from __future__ import annotations

import random
from typing import Final

from columnar.client import Delete, Expect, Increment, Put
from tests.proofs.group_semantics import (
    AMOUNT,
    COUNT,
    Census,
    GroupCall,
    GroupChange,
    GroupRead,
    RowCall,
    Transfer,
    step,
)
from tests.proofs.linearizable import Game
from tests.proofs.row_semantics import Change, Operation, Read

TABLE: Final = b"grouped"
FAMILIES: Final = {"f": {"max_versions": 1}, "g": {"max_versions": 3}}
ATTRIBUTES: Final = {"ROW_GROUP": "until:/"}
GROUPS: Final = tuple(b"group-%02d/" % n for n in range(24))
NAMES: Final = (b"a", b"b", b"c", b"d")
VALUE: Final = b"g:v"
COUNTER: Final = b"f:n"


def split_row(rng: random.Random) -> bytes:
    """Return a row within a group, or the first of one: no split comes between rows of a group."""
    return rng.choice(GROUPS[:3]) + rng.choice((b"", *NAMES))


def random_call(rng: random.Random, group: bytes, _token: bytes) -> GroupCall:
    one, other = (group + name for name in rng.sample(NAMES, 2))
    chance, value = rng.random(), b"v%d" % rng.randrange(4)
    if chance < 0.25:
        return GroupRead()
    if chance < 0.35:
        return RowCall(one, Read((), rng.choice(("row", "scan"))))
    if chance < 0.45:
        return RowCall(one, Change((Put(VALUE, value), Put(AMOUNT, b"%d" % rng.randrange(3)))))
    if chance < 0.52:
        return RowCall(one, Change((Delete(b"f"), Delete(b"g")), way="deleteAllRow"))
    if chance < 0.67:
        return Transfer(one, other, rng.randrange(1, 3))
    if chance < 0.77:
        return Census(one)
    return _random_change(rng, group, value)


def _random_change(rng: random.Random, group: bytes, value: bytes) -> GroupChange:
    rows: list[tuple[bytes, Change]] = []
    for name in rng.sample(NAMES, rng.randrange(2, 4)):
        operations: list[Operation] = [Put(VALUE, value)]
        if rng.random() < 0.4:
            operations.append(Increment(COUNTER, rng.choice((1, 2, -1))))
        if rng.random() < 0.3:
            operations.insert(0, Delete(rng.choice((b"g", b"f", COUNT))))
        conditions = []
        if rng.random() < 0.3:
            conditions.append(Expect(VALUE, b"v%d" % rng.randrange(4), rng.choice(("=", "!="))))
        if conditions and rng.random() < 0.3:
            operations = []  # the row is only looked at
        rows.append((group + name, Change(tuple(operations), tuple(conditions))))
    return GroupChange(tuple(rows))


GAME: Final = Game("groups of rows", GROUPS, random_call, step, GroupRead)
