"""(pure) Rows, columns, values and timestamps at random: few enough to meet again, odd enough to break things."""

from __future__ import annotations

import random
from typing import Final

from tests.differential.answers import CLOCK
from tests.differential.written import FAR, NOW

ROWS: Final = (
    *(b"r%02d" % n for n in range(1, 13)), b"row7", b"R01", b"a", b"a\x00", b"a\x00\xff", b"ab", b"\x00", b"\x00\x00",
    b"\xff", b"\xff\xff", b"x\xff", "zwölf".encode(), b"z" * 300, b"it's", b" ", b"k:1", b"k,2",
)  # fmt: skip
FAMILIES: Final = (b"f", b"g", b"a", b"data", b"F", b"x-y", b"_1")
QUALIFIERS: Final = (
    b"", b"a", b"b", b"c", b"sa", b"sb", b"s", b"s\xff", b"\x00", b"\xff", b"q:x", b"B", b"it's", b"n", b"n", b"m",
)  # fmt: skip
VALUES: Final = (
    b"", b"1", b"2", b"10", b"apple", b"Apple pie", b"Banana", b"banana split", b"line one\nline two", b"it's",
    b"\x00\xff\x80", b"zed", b"5", b"x" * 3000, (7).to_bytes(8, "big"), (2**63 - 1).to_bytes(8, "big"), b"12345678",
)  # fmt: skip
AMOUNTS: Final = (1, 1, 1, 2, -1, 0, 5, -100, 2**31, 2**63 - 1, -(2**63))
LATEST: Final = 2**63 - 1  # HBase: now


def columns_of(rng: random.Random, families: list[bytes], count: int) -> list[tuple[bytes, bytes]]:
    """Different ones."""
    every = [(family, qualifier) for family in families for qualifier in dict.fromkeys(QUALIFIERS)]
    return rng.sample(every, min(count, len(every)))


def stamp_above(rng: random.Random, mark: int) -> int | None:
    """A timestamp for a put that a delete at ``mark`` does not hide; None is the server's clock."""
    kind = rng.random()
    if kind < 0.01 and mark < FAR:
        return LATEST  # the clock, said otherwise
    if mark >= FAR:
        return mark + rng.randint(1, 5)
    if kind < 0.35:
        return None
    if kind < 0.42:
        return FAR + rng.randint(0, 9)
    if mark >= NOW:
        return None
    return rng.randint(mark + 1, max(40, mark + 5))


def delete_stamp(rng: random.Random) -> int | None:
    kind = rng.random()
    if kind < 0.3:
        return None if kind > 0.02 else LATEST
    return FAR + rng.randint(0, 3) if kind < 0.33 else rng.randint(0, 30)


def read_stamp(rng: random.Random) -> int:
    early, late = CLOCK.start, CLOCK.stop - 1
    return rng.choice((rng.randint(0, 45), rng.randint(1, 20), rng.randint(1, 20), early, late, FAR + 5, LATEST, 0))
