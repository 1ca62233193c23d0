"""The maintenance lock of a cluster: one operator at a time empties or ends servers.

The lock is one record of a compare-and-set store.  Operators reach it through the leader.

    call                 the record                        its next value
    acquire              is free, or its holder is silent  the caller's, since now
                         has the caller's nonce            the same, with a new version
                         has another nonce                 unchanged
    renew                has the caller's nonce            the same, with a new version
                         is free, or has another nonce     unchanged: the caller has lost the lock
    release              has the caller's nonce            free
    release of anybody   has any nonce                     free

A holder is silent if one leader has seen the record at the same version for MAINTENANCE_MS of its own clock.  Holders
renew every RENEW_MS.  A leader that has just been elected counts anew, and each leader does after a call of the store
that failed: a holder is not silent because the service or the leader was.

Invariants:
    M1. At most one nonce holds the lock, because each write is conditioned on the version that it was decided by, and
        the record is never deleted (V2 of ``cas``).
    M2. A leader that hung, or lost its leadership without knowing it, takes the lock from nobody who renews: it reads
        the record before each write, and a renewal has raised the version.
    M3. A call whose outcome was unknown is repeated with the same nonce and comes to the same end.

The lock keeps operators apart; it is no lease: a command that lost it may still be at work.  ``next_record`` and
``Silence`` are pure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Protocol, TypeVar

from columnar.clock import system_ms
from columnar.coordination.cas import CasStore, VersionConflict
from columnar.coordination.lease_page import boot_ms
from columnar.coordination.node_record import (
    MAINTENANCE,
    MaintenanceRecord,
    decode_maintenance_record,
    encode_record,
)
from columnar.errors import ColumnarError

MAINTENANCE_MS: Final = 60_000
RENEW_MS: Final = 10_000
FREE: Final = MaintenanceRecord()
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Acquire:
    """``nonce``: drawn by the caller, and the same in each renewal; ``holder`` and ``what`` are for people."""

    nonce: str
    holder: str
    what: str
    is_renewal: bool = False


@dataclass(frozen=True, slots=True)
class Release:
    nonce: str  # empty: whoever holds the lock


@dataclass(frozen=True, slots=True)
class MaintenanceState:
    """The lock after a call.  ``silent_ms``: for how long the leader has seen no renewal."""

    record: MaintenanceRecord
    silent_ms: int


def next_record(
    call: Acquire | Release | None, found: MaintenanceRecord, silent_ms: int, wall_ms: int
) -> MaintenanceRecord | None:
    """Return the record to write for the call, or None if nothing is to be written.

    ``call``: None if the caller only looks.  ``wall_ms``: milliseconds since 1970.
    """
    match call:
        case Acquire(nonce, holder, what, is_renewal):
            if found.nonce == nonce:
                return replace(found, holder=holder, what=what)
            may_take = not is_renewal and (found.is_free or silent_ms >= MAINTENANCE_MS)
            return MaintenanceRecord(nonce, holder, what, wall_ms) if may_take else None
        case Release(nonce):
            return FREE if not found.is_free and nonce in ("", found.nonce) else None
    return None


class Silence:
    """The version at which one leader has seen the record, and since when."""

    def __init__(self) -> None:
        self._version: int | None = None  # None: not seen, or counts begin anew
        self._since_ms = 0

    def note_version(self, version: int, now_ms: int) -> int:
        """Return for how long the record has been seen at this version."""
        if version != self._version:
            self._version, self._since_ms = version, now_ms
        return now_ms - self._since_ms

    def begin_anew(self) -> None:
        self._version = None


class StoreCalls(Protocol):
    def __call__(self, call: Callable[[CasStore], T]) -> T:
        """Call the function with a store; again if it raised VersionConflict, CasUnavailable or CasOutcomeUnknown.

        Raises CasUnavailable after some seconds without an answer.
        """


class MaintenanceLock:
    """The lock at one leader.  Methods block; one is called at a time, and none on the event loop.

    Each raises CasUnavailable, CasRefused, and DamagedData if the record cannot be read.
    """

    def __init__(
        self,
        call_store: StoreCalls,
        clock_ms: Callable[[], int] = boot_ms,
        wall_ms: Callable[[], int] = system_ms,
    ) -> None:
        self._call_store = call_store
        self._clock_ms = clock_ms
        self._wall_ms = wall_ms
        self._silence = Silence()

    def read_lock(self) -> MaintenanceState:
        return self._carry_out(None)

    def acquire_lock(self, call: Acquire) -> MaintenanceState:
        """Acquire or renew the lock, if no other holder has it; the result names whoever holds it now."""
        return self._carry_out(call)

    def release_lock(self, call: Release) -> MaintenanceState:
        """Release the lock, if it is held as the call says; the result is the state before."""
        return self._carry_out(call)

    def _carry_out(self, call: Acquire | Release | None) -> MaintenanceState:
        try:
            return self._call_store(lambda store: self._step(store, call))
        except ColumnarError:
            self._silence.begin_anew()
            raise

    def _step(self, store: CasStore, call: Acquire | Release | None) -> MaintenanceState:
        stored = store.read_key(MAINTENANCE)
        found = FREE if stored is None else decode_maintenance_record(stored.value)
        silent_ms = 0 if stored is None else self._silence.note_version(stored.version, self._clock_ms())
        record = next_record(call, found, silent_ms, self._wall_ms())
        if record is None:
            return MaintenanceState(found, silent_ms)
        value = encode_record(record)
        if stored is None:
            version = store.create_key(MAINTENANCE, value)
        else:
            version = store.put_key(MAINTENANCE, value, stored.version)
        self._silence.note_version(version, self._clock_ms())
        return MaintenanceState(found if isinstance(call, Release) else record, 0)


class MemoryCalls:
    """``StoreCalls`` over a store of this process, which always answers."""

    def __init__(self, store: CasStore) -> None:
        self._store = store

    def __call__(self, call: Callable[[CasStore], T]) -> T:
        while True:
            try:
                return call(self._store)
            except VersionConflict:
                continue  # another caller was faster
