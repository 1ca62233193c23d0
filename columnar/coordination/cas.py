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
    CasOutcomeUnknown       only of a write: it took effect, or never will, or will at any later time; at most once
    CasRefused              the operator must act: a wrong password, a full store

Promises of each implementation (tests/contracts/test_cas.py):
    V1. Operations on a key take effect in one order for all clients.  No write takes effect if a condition fails.
    V2. A write gives its key a version that no value of the key has had since the key was created.  Versions of
        different keys cannot be compared.  If a key is deleted and created again, versions may repeat (ZooKeeper counts
        from 0).  So if the deletion of a key fences its holder, the key is never used again.
    V3. ``read_key`` sees each write, of any client, that returned before the read began.
    V4. ``list_keys`` sees each key as it was at some moment, which may differ from key to key.  The moment may lie
        before the call, because ZooKeeper's leader lists without asking a majority; the difference is at most the time
        in which a leader notices that it is cut off.  So a decision based on a list must be carried out by a write
        under a condition.
    V5. A call takes at most its object's ``timeout_s`` plus one connection attempt.  The call blocks its thread.

An object belongs to one thread at a time.  Knows nothing of leases: ``lease`` decides, and calls nothing itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Protocol

from columnar.errors import ColumnarError, HostError, OutcomeUnknown, RetryLater

KEY: Final = re.compile(r"[a-z0-9][a-z0-9._-]*/[a-z0-9][a-z0-9._-]*", re.IGNORECASE)
FOLDER: Final = re.compile(r"[a-z0-9][a-z0-9._-]*", re.IGNORECASE)
VALUE_BYTES: Final = 512 << 10  # half of what both services accept by default


class VersionConflict(ColumnarError):
    """A condition of a write did not hold: the key is missing, exists already, or has a different version."""

    def __init__(self, key: str) -> None:
        super().__init__(f"{key} is not at the expected version; nothing was changed")
        self.key = key


class CasUnavailable(RetryLater):
    """No server of the service answered in time, and nothing was changed."""

    def __init__(self, why: str) -> None:
        super().__init__(f"the coordination service is unavailable: {why}")


class CasOutcomeUnknown(OutcomeUnknown):
    """The write was sent but not answered; it may take effect later.  Read the key before anything else."""

    def __init__(self, key: str, why: str) -> None:
        super().__init__(f"it is unknown whether {key} was written: {why}")
        self.key = key


class CasRefused(HostError):
    """The service refuses the call for a reason that only the operator can remove."""

    def __init__(self, why: str) -> None:
        super().__init__(f"the coordination service refuses the call: {why}")


@dataclass(frozen=True, slots=True)
class Versioned:
    """A value and its version."""

    value: bytes
    version: int


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on a second key: its value must be at this version."""

    key: str
    version: int


class CasStore(Protocol):
    """A client of the service.  Each method may raise CasUnavailable and CasRefused besides the errors it names."""

    def create_key(self, key: str, value: bytes) -> int:
        """Create the key; returns its version.  Raises VersionConflict if the key exists, CasOutcomeUnknown."""

    def put_key(self, key: str, value: bytes, version: int) -> int:
        """Replace the value at ``version``; returns the new version.  Raises VersionConflict, CasOutcomeUnknown."""

    def delete_key(self, key: str, version: int, also: Condition | None = None) -> None:
        """Delete the value at ``version`` if ``also`` holds too.  Raises VersionConflict, CasOutcomeUnknown."""

    def read_key(self, key: str) -> Versioned | None:
        """Return the value and its version, or None if the key is missing."""

    def list_keys(self, folder: str) -> dict[str, Versioned]:
        """Return the values in the folder, by their complete keys."""

    def close(self) -> None:
        """End the connections.  No call may follow."""


def check_key(key: str, value: bytes = b"") -> None:
    """Assert that key and value keep the rules, so that a programmer's mistake is not sent."""
    assert KEY.fullmatch(key), f"{key!r} is not FOLDER/NAME"
    assert len(value) <= VALUE_BYTES, f"{len(value)} bytes for {key}"
