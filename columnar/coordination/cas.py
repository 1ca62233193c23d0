"""A compare-and-set store: the five operations of a consensus service (etcd, ZooKeeper) that leases and elections need.

    create_key(key, value)                 the key must be missing
    put_key(key, value, version)           the value must be at ``version``
    delete_key(key, version, also=...)     the value must be at ``version``, and another key at its own
    read_key(key), list_keys(folder)       values with their versions

A key is ``FOLDER/NAME``: one slash, characters of KEY.  A value has at most VALUE_BYTES.

The outcome of a call is one of five:
    it returns              the operation took effect once, between the call and its return
    VersionConflict         a condition did not hold, and nothing was changed by this call
    CasUnavailable          nothing was changed; the same call may succeed later
    CasOutcomeUnknown       of a write: it took effect, or has none, or takes effect at any later time, at most once
    CasRefused              the operator must act: a wrong password, a full store

Promises of each implementation (tests/contracts/test_cas.py):
    V1. Operations on a key take effect in one order for all clients.  No write takes effect if a condition fails.
    V2. A write gives its key a version that no value of the key has had since the key was created.  A version says
        nothing across keys.  If a key is deleted and created again, versions may repeat (ZooKeeper counts from 0): a
        key whose deletion fences its holder is never used again.
    V3. ``read_key`` sees each write that returned before the read began, whoever wrote it.
    V4. ``list_keys`` sees each key as it was at some moment, not all keys at the same one.  That moment may lie before
        the call (ZooKeeper's leader lists without asking a majority), by the time in which a leader that was cut off
        notices it: a decision that follows from a list must be a write under a condition.
    V5. A call takes ``timeout_s`` of its object, plus one connection attempt, at most.  It blocks its thread.

An object belongs to one thread at a time.  Knows nothing of leases: ``lease`` decides, and calls nothing itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Protocol

from columnar.errors import ColumnarError, HostError, OutcomeUnknown, RetryLater

KEY: Final = re.compile(r"[a-z0-9][a-z0-9._-]*/[a-z0-9][a-z0-9._-]*", re.IGNORECASE)
FOLDER: Final = re.compile(r"[a-z0-9][a-z0-9._-]*", re.IGNORECASE)
VALUE_BYTES: Final = 512 << 10  # half of what both services take by default


class VersionConflict(ColumnarError):
    """A condition of a write did not hold: the key is missing, is there already, or has another version."""

    def __init__(self, key: str) -> None:
        super().__init__(f"{key} is not at the expected version; nothing was changed")
        self.key = key


class CasUnavailable(RetryLater):
    """No server of the service answers in time, and nothing was changed."""

    def __init__(self, why: str) -> None:
        super().__init__(f"the coordination service is unavailable: {why}")


class CasOutcomeUnknown(OutcomeUnknown):
    """The write was sent and its answer did not come; it may take effect later.  Read the key before anything else."""

    def __init__(self, key: str, why: str) -> None:
        super().__init__(f"it is unknown whether {key} was written: {why}")
        self.key = key


class CasRefused(HostError):
    """The service refuses the call for a reason that time does not remove."""

    def __init__(self, why: str) -> None:
        super().__init__(f"the coordination service refuses the call: {why}")


@dataclass(frozen=True, slots=True)
class Versioned:
    """A value and its version."""

    value: bytes
    version: int


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on a second key: it is at this version."""

    key: str
    version: int


class CasStore(Protocol):
    """A client of the service.  Each method raises ``CasUnavailable`` and ``CasRefused`` beside what it names."""

    def create_key(self, key: str, value: bytes) -> int:
        """Create the key; returns its version.  VersionConflict: it is there.  CasOutcomeUnknown."""

    def put_key(self, key: str, value: bytes, version: int) -> int:
        """Replace the value that is at ``version``; returns the new version.  VersionConflict, CasOutcomeUnknown."""

    def delete_key(self, key: str, version: int, also: Condition | None = None) -> None:
        """Delete the value at ``version`` if the second condition holds too.  VersionConflict, CasOutcomeUnknown."""

    def read_key(self, key: str) -> Versioned | None:
        """Return the value and its version; None: the key is missing."""

    def list_keys(self, folder: str) -> dict[str, Versioned]:
        """Return the values of the folder, by whole key."""

    def close(self) -> None:
        """End the connections.  No call may follow."""


def check_key(key: str, value: bytes = b"") -> None:
    """Stop a programmer's mistake before it is sent."""
    assert KEY.fullmatch(key), f"{key!r} is not FOLDER/NAME"
    assert len(value) <= VALUE_BYTES, f"{len(value)} bytes for {key}"
