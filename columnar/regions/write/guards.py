"""Guards: withdrawn members, kept for a while to refuse late contributions; and the families of a region with guards.

``meta`` remembers each family that may have guards, so that only these families are swept:

    guards/ family:u16  ->  ms:u64        when its last guard was made, exact to GUARD_MARK_MS

Invariants:
    I1. A family with a guard has a mark, written in the batch of the guard at the latest.  No guard of the family is
        younger than the mark by more than GUARD_MARK_MS.
    I2. A guard is removed at the earliest GUARD_MS after its withdrawal, and not before the sender of contributions
        says that it will send no older contribution again (``RegionUpkeep.keep_guards``).

Splits and merges pass the marks on; a copy that loses them keeps its guards for ever, which costs only their space.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from columnar.limits import GUARD_MS
from columnar.regions.log.log_retention import META_SPACE
from columnar.storage.api import Batch, Store

GUARDS: Final = b"guards/"
GUARD_MARK_MS: Final = 600_000

# (table, now in ms) -> time in ms: guards made since that time are needed; 0: every guard is; None: no guard is.
NeededFrom = Callable[[str, int], Awaitable[int | None]]


def read_marks(store: Store) -> dict[int, int]:
    """Return the marks in the store: family number -> ms."""
    found = store.scan(META_SPACE, GUARDS, GUARDS[:-1] + b"0")
    return {int.from_bytes(key[len(GUARDS) :], "big"): int.from_bytes(value, "big") for key, value in found}


def mark_key(family: int) -> bytes:
    return GUARDS + family.to_bytes(2, "big")


async def nobody_needs(_table: str, _now_ms: int) -> int | None:
    """The ``NeededFrom`` of a server that gets no late contributions: every guard may be removed after GUARD_MS."""
    return None


async def sweepable_before(table: str, now_ms: int, needed_from: NeededFrom) -> int:
    """Return the time before which guards may be removed (I2)."""
    needed = await needed_from(table, now_ms)
    oldest = now_ms - GUARD_MS
    return oldest if needed is None else min(oldest, needed)


class Guards:
    """The marks of one region; owned by the loop's thread."""

    def __init__(self, marks: dict[int, int]) -> None:
        """``marks`` is the result of ``read_marks``."""
        self._marks = marks

    def __bool__(self) -> bool:
        return bool(self._marks)

    def families(self) -> list[int]:
        return list(self._marks)

    def marks(self) -> dict[bytes, int]:
        """Return the marks as they are in ``meta``."""
        return {mark_key(family): ms for family, ms in self._marks.items()}

    def cover(self, batch: Batch, families: list[int], now_ms: int) -> dict[int, int] | None:
        """Add to ``batch`` the marks that its guards need (I1).

        Pass the result to ``written`` once the batch is in the store.
        """
        fresh: dict[int, int] | None = None
        for family in families:
            if now_ms > self._marks.get(family, -1 - GUARD_MARK_MS) + GUARD_MARK_MS:
                batch.put(META_SPACE, mark_key(family), now_ms.to_bytes(8, "big"))
                fresh = {**(fresh or {}), family: now_ms}
        return fresh

    def written(self, marks: dict[int, int]) -> None:
        for family, ms in marks.items():
            self._marks[family] = max(ms, self._marks.get(family, 0))

    def is_over(self, family: int, before_ms: int) -> bool:
        """Tell whether every guard of the family was made before ``before_ms``: a sweep up to then leaves no guard."""
        return self._marks.get(family, before_ms) + GUARD_MARK_MS < before_ms

    def forget_swept(self, store: Store, family: int, before_ms: int) -> None:
        """Forget the family after a sweep up to ``before_ms``, unless it got a new guard meanwhile."""
        if self.is_over(family, before_ms):
            batch = store.batch()
            batch.delete(META_SPACE, mark_key(family))
            store.write_batch(batch)
            del self._marks[family]
