"""Claims on a backup store: nothing is removed while a backup is being saved, and the other way round.

    locks/KIND-TOKEN.json   {"kind": "saving" | "removing", "host": ..., "pid": ..., "process": ...}

Several processes, also of several machines, may save into one store at the same time.  A removal excludes all others.
A process puts its claim first and lists the claims of others then, so of two that begin at the same time at least one
sees the other (invariant I3 of ``backup_store``), and withdraws.

A claim is renewed every RENEW_S while its process works, and is void LEASE_S after its last renewal, by the clock of
the store.  The claim of a process of this machine is void as soon as that process has ended.  A removal begins with the
void claims.  A process whose claim is gone, or was not renewed for STALLED_S, raises ClaimLost and finishes nothing.

``process`` is "BOOT-ID PID-NAMESPACE PID START-TIME" on Linux, else empty.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, Literal

from columnar.backup.backup_store import BackupStore, ObjectFacts, named
from columnar.errors import CallerError, ColumnarError, RetryLater
from columnar.runtime.machine_boot import boot_id

LOCKS: Final = "locks"
RENEW_S: Final = 60.0
STALLED_S: Final = 300.0
LEASE_S: Final = 600.0
_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # goes on while the machine sleeps
Kind = Literal["saving", "removing"]


class ClaimLost(RetryLater):
    def __init__(self, address: str) -> None:
        super().__init__(f"{address}: this process stood still so long that another one may have gone on; begin again")


class Claim:
    """A claim of this process.  Owned by one thread."""

    def __init__(self, store: BackupStore, kind: Kind, now: Callable[[], float]) -> None:
        self._store = store
        self._kind = kind
        self._now = now
        self.name = named(LOCKS, f"{kind}-{secrets.token_hex(8)}.json")
        self._renewed_s = now()

    def take_claim(self) -> None:
        """Put the claim.  Raises CallerError, and withdraws the claim, if another one stands against it."""
        self._put()
        try:
            found = {facts.name: facts for facts in self._store.list_objects(LOCKS)}
            mine = found.pop(self.name, None)
            if mine is None:
                raise ClaimLost(self._store.address)
            self._judge(mine, list(found.values()))
        except BaseException:
            self.withdraw()
            raise

    def _judge(self, mine: ObjectFacts, others: list[ObjectFacts]) -> None:
        void = []
        for other in others:
            facts = self._read(other.name)
            if mine.modified_ms - other.modified_ms > LEASE_S * 1_000 or has_ended(facts.get("process", "")):
                void.append(other.name)
            elif self._kind == "removing" or facts.get("kind") == "removing":
                doing = "removed" if facts.get("kind") == "removing" else "saved"
                raise CallerError(
                    f"backups are being {doing} in {self._store.address} by process {facts.get('pid', '?')} of "
                    f"{facts.get('host', '?')}; wait until it has ended"
                )
        if self._kind == "removing" and void:
            self._store.remove_objects(void)

    def _read(self, name: str) -> dict[str, Any]:
        with suppress(ValueError):
            found = json.loads(self._store.read_bytes(name) or b"{}")
            if isinstance(found, dict):
                return found
        return {}

    def _put(self) -> None:
        facts = {"kind": self._kind, "host": socket.gethostname(), "pid": os.getpid(), "process": own_process()}
        self._store.put_bytes(self.name, json.dumps(facts).encode())
        self._renewed_s = self._now()

    def renew_if_due(self) -> None:
        """Renew the claim if RENEW_S have passed.  Raises ClaimLost."""
        if self._now() - self._renewed_s > RENEW_S:
            self.confirm()
            self._put()

    def confirm(self) -> None:
        """Raise ClaimLost unless the claim stands."""
        if self._now() - self._renewed_s > STALLED_S or self._store.read_bytes(self.name) is None:
            raise ClaimLost(self._store.address)

    def withdraw(self) -> None:
        self._store.remove_objects([self.name])


def boot_clock() -> float:
    """Return seconds of a clock that no one sets and that goes on while the machine sleeps."""
    return time.clock_gettime(_CLOCK)


@contextmanager
def claimed(store: BackupStore, kind: Kind, now: Callable[[], float] = boot_clock) -> Iterator[Claim]:
    """Yield the claim, which stands until the block ends."""
    claim = Claim(store, kind, now)
    claim.take_claim()
    try:
        yield claim
    except BaseException:
        with suppress(ColumnarError):  # the store is gone, perhaps, which is the error to report
            claim.withdraw()
        raise
    claim.withdraw()


def own_process() -> str:
    """Return the identity of this process, or an empty text if the system does not tell it."""
    return _process(os.getpid()) or ""


def has_ended(process: str) -> bool:
    """Return whether the process was of this machine and is no more."""
    words, mine = process.split(), own_process().split()
    if len(words) != 4 or words[:2] != mine[:2] or not words[2].isdigit():
        return False
    return _process(int(words[2])) != process


def _process(pid: int) -> str | None:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            started = file.read().rpartition(")")[2].split()[19]  # field 22, behind a name that may have blanks
        return f"{boot_id()} {os.readlink('/proc/self/ns/pid')} {pid} {started}"
    except (OSError, IndexError):
        return None
