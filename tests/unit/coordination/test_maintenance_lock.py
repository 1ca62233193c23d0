"""The maintenance lock: one holder at a time, through changes of the leader, lost answers and killed holders."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import pytest

from columnar.coordination.cas import CasOutcomeUnknown, CasStore, CasUnavailable, Condition, VersionConflict, Versioned
from columnar.coordination.cas_memory import CasMemory
from columnar.coordination.maintenance_lock import (
    FREE,
    MAINTENANCE_MS,
    Acquire,
    MaintenanceLock,
    MemoryCalls,
    Release,
    Silence,
    next_record,
)
from columnar.coordination.node_record import MAINTENANCE, MaintenanceRecord
from columnar.errors import DamagedData
from tests.support.deep import seeds

T = TypeVar("T")
A, B = "aa" * 16, "bb" * 16
FIRST, SECOND = Acquire(A, "restart by root at n1", ""), Acquire(B, "drain by root at n2", "n2")
RENEWED = Acquire(A, FIRST.holder, "", is_renewal=True)
HELD = MaintenanceRecord(A, FIRST.holder, "", 1_000)
SEEDS = seeds("leaders and holders of the maintenance lock", deep=3_000, short=150)


class Clock:
    def __init__(self) -> None:
        self.now_ms = 5_000

    def __call__(self) -> int:
        return self.now_ms


def leader(store: CasStore, clock: Clock) -> MaintenanceLock:
    return MaintenanceLock(MemoryCalls(store), clock, lambda: 1_790_000_000_000 + clock.now_ms)


# --- the pure part -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "found", "silent_ms", "expected"),
    [
        (FIRST, FREE, 0, MaintenanceRecord(A, FIRST.holder, "", 2_000)),
        (FIRST, HELD, 0, HELD),
        (RENEWED, HELD, MAINTENANCE_MS * 9, HELD),
        (RENEWED, FREE, MAINTENANCE_MS * 9, None),
        (RENEWED, MaintenanceRecord(B, "another", "", 1), MAINTENANCE_MS * 9, None),
        (SECOND, HELD, 0, None),
        (SECOND, HELD, MAINTENANCE_MS - 1, None),
        (SECOND, HELD, MAINTENANCE_MS, MaintenanceRecord(B, SECOND.holder, "n2", 2_000)),
        (Release(A), HELD, 0, FREE),
        (Release(B), HELD, MAINTENANCE_MS, None),
        (Release(""), HELD, 0, FREE),
        (Release(A), FREE, 0, None),
        (Release(""), FREE, 0, None),
        (None, HELD, MAINTENANCE_MS, None),
    ],
)
def test_each_call_meets_each_record(
    call: Acquire | Release | None, found: MaintenanceRecord, silent_ms: int, expected: MaintenanceRecord | None
) -> None:
    assert next_record(call, found, silent_ms, 2_000) == expected


def test_silence_is_counted_from_the_first_sight_of_a_version() -> None:
    silence = Silence()
    assert [silence.note_version(7, now_ms) for now_ms in (100, 150, 900)] == [0, 50, 800]
    assert silence.note_version(8, 1_000) == 0
    assert silence.note_version(8, 1_010) == 10
    silence.begin_anew()
    assert [silence.note_version(8, now_ms) for now_ms in (2_000, 2_001)] == [0, 1]


# --- over a store ------------------------------------------------------------------------------------


def test_the_second_hears_who_holds_the_lock_and_gets_it_after_the_release() -> None:
    clock = Clock()
    lock = leader(CasMemory(), clock)
    assert lock.read_lock().record == FREE
    assert lock.acquire_lock(FIRST).record.nonce == A
    clock.now_ms += 300
    state = lock.acquire_lock(SECOND)
    assert (state.record.holder, state.record.since_ms, state.silent_ms) == (FIRST.holder, 1_790_000_005_000, 300)
    assert lock.release_lock(Release(B)).record.nonce == A, "it is not the second's"
    assert lock.release_lock(Release(A)).record.nonce == A
    assert lock.acquire_lock(SECOND).record.nonce == B
    assert lock.acquire_lock(RENEWED).record.nonce == B


def test_a_holder_that_renews_keeps_the_lock_and_one_that_is_silent_loses_it() -> None:
    clock = Clock()
    lock = leader(CasMemory(), clock)
    lock.acquire_lock(FIRST)
    for _ in range(20):
        clock.now_ms += MAINTENANCE_MS - 1
        assert lock.acquire_lock(SECOND).record.nonce == A
        assert lock.acquire_lock(RENEWED).record.nonce == A
    clock.now_ms += MAINTENANCE_MS
    assert lock.acquire_lock(SECOND).record.nonce == B
    assert lock.acquire_lock(RENEWED).record.nonce == B, "a renewal takes nothing"


def test_a_broken_lock_is_not_renewed() -> None:
    lock = leader(CasMemory(), Clock())
    lock.acquire_lock(FIRST)
    assert lock.release_lock(Release("")).record.nonce == A
    assert lock.acquire_lock(RENEWED).record == FREE
    assert lock.read_lock().record == FREE


def test_the_lock_survives_the_leader_and_the_next_one_counts_anew() -> None:
    store, clock = CasMemory(), Clock()
    leader(store, clock).acquire_lock(FIRST)
    clock.now_ms += 10 * MAINTENANCE_MS
    following = leader(store, clock)
    assert following.acquire_lock(SECOND).record.nonce == A
    clock.now_ms += MAINTENANCE_MS - 1
    assert following.acquire_lock(SECOND).record.nonce == A
    clock.now_ms += 1
    assert following.acquire_lock(SECOND).record.nonce == B


def test_a_former_leader_that_wakes_takes_the_lock_from_nobody() -> None:
    """It saw the record long ago; a renewal at the next leader has raised the version meanwhile."""
    store, clock = CasMemory(), Clock()
    former, following = leader(store, clock), leader(store, clock)
    former.acquire_lock(FIRST)
    for _ in range(12):
        clock.now_ms += MAINTENANCE_MS // 6
        following.acquire_lock(RENEWED)
    assert former.acquire_lock(SECOND).record.nonce == A


def test_a_leader_that_was_overtaken_between_read_and_write_gives_the_lock_to_nobody() -> None:
    """Both leaders read a free lock; the first write wins."""
    store, clock = CasMemory(), Clock()
    other = leader(store, clock)

    class Overtaken(CasMemory):
        reads = 0

        def read_key(self, key: str) -> Versioned | None:
            found = store.read_key(key)
            self.reads += 1
            if self.reads == 1:
                other.acquire_lock(SECOND)
            return found

        def create_key(self, key: str, value: bytes) -> int:
            return store.create_key(key, value)

        def put_key(self, key: str, value: bytes, version: int) -> int:
            return store.put_key(key, value, version)

    for _ in range(2):  # a record that is missing, and one that is free
        assert leader(Overtaken(), clock).acquire_lock(FIRST).record.nonce == B
        assert other.release_lock(Release("")).record.nonce == B


def test_the_record_is_never_deleted() -> None:
    store = CasMemory()
    lock = leader(store, Clock())
    versions = []
    for call in (FIRST, SECOND, FIRST):
        lock.acquire_lock(call)
        lock.release_lock(Release(""))
        found = store.read_key(MAINTENANCE)
        assert found is not None
        versions.append(found.version)
    assert versions == sorted(set(versions))


def test_a_damaged_record_is_left_alone() -> None:
    store = CasMemory()
    store.create_key(MAINTENANCE, b"{}")
    with pytest.raises(DamagedData):
        leader(store, Clock()).acquire_lock(FIRST)
    assert store.read_key(MAINTENANCE) == Versioned(b"{}", 0)


def test_a_silent_service_makes_nobody_silent() -> None:
    store, clock = CasMemory(), Clock()
    is_silent = False

    def call_store(call: Callable[[CasStore], T]) -> T:
        if is_silent:
            raise CasUnavailable("it is away")
        return call(store)

    lock = MaintenanceLock(call_store, clock)
    lock.acquire_lock(FIRST)
    is_silent = True
    clock.now_ms += 2 * MAINTENANCE_MS
    with pytest.raises(CasUnavailable):
        lock.acquire_lock(RENEWED)
    is_silent = False
    assert lock.acquire_lock(SECOND).record.nonce == A
    clock.now_ms += MAINTENANCE_MS
    assert lock.acquire_lock(SECOND).record.nonce == B


# --- by chance ---------------------------------------------------------------------------------------


class LossyStore:
    """A client whose writes may be lost, or take effect without an answer, at once or later."""

    def __init__(self, store: CasMemory, rng: random.Random, late: list[Callable[[], object]]) -> None:
        self._store = store
        self._rng = rng
        self._late = late

    def read_key(self, key: str) -> Versioned | None:
        return self._store.read_key(key)

    def create_key(self, key: str, value: bytes) -> int:
        return self._write(key, lambda: self._store.create_key(key, value))

    def put_key(self, key: str, value: bytes, version: int) -> int:
        return self._write(key, lambda: self._store.put_key(key, value, version))

    def delete_key(self, key: str, version: int, also: Condition | None = None) -> None:
        raise AssertionError("the record is never deleted")

    def list_keys(self, folder: str) -> dict[str, Versioned]:
        raise AssertionError("nobody lists")

    def close(self) -> None:
        pass

    def _write(self, key: str, write: Callable[[], int]) -> int:
        chance = self._rng.random()
        if chance < 0.6:
            return write()
        if chance < 0.7:
            raise CasUnavailable("lost")
        if chance < 0.85:
            write()
        else:
            self._late.append(write)
        raise CasOutcomeUnknown(key, "no answer")


@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_two_hold_the_lock(seed: int) -> None:
    """Holders of random leaders, which may be former ones, acquire, renew, fall silent and release."""
    rng = random.Random(seed)
    store, clock = CasMemory(), Clock()
    late: list[Callable[[], object]] = []
    client = LossyStore(store, rng, late)

    def call_store(call: Callable[[CasStore], T]) -> T:
        for _ in range(4):
            try:
                return call(client)
            except (VersionConflict, CasUnavailable, CasOutcomeUnknown):
                continue
        raise CasUnavailable("lost for long")

    locks = [MaintenanceLock(call_store, clock) for _ in range(3)]
    confirmed_ms: dict[str, int] = {}  # by nonce, when the holder sent its last call that was confirmed
    nonces = [f"{n:032x}" for n in range(4)]
    for _ in range(120):
        clock.now_ms += rng.choice([10, 1_000, 9_000, 30_000])
        if late and rng.random() < 0.5:
            with suppress(VersionConflict):
                late.pop(rng.randrange(len(late)))()
        lock, nonce = rng.choice(locks), rng.choice(nonces)
        try:
            if rng.random() < 0.15:
                confirmed_ms.pop(nonce, None)
                lock.release_lock(Release(nonce))
                continue
            state = lock.acquire_lock(Acquire(nonce, "", "", is_renewal=nonce in confirmed_ms))
        except CasUnavailable:
            continue
        if state.record.nonce != nonce:
            confirmed_ms.pop(nonce, None)
            continue
        confirmed_ms[nonce] = clock.now_ms
        others = [at_ms for one, at_ms in confirmed_ms.items() if one != nonce]
        assert all(clock.now_ms - at_ms >= MAINTENANCE_MS for at_ms in others), "two hold it"
        confirmed_ms = {nonce: clock.now_ms}
