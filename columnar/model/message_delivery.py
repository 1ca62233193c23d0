"""(pure) A message of a served queue on its way to its target, and how its delivery ended.

    done       the work is durable: the message is committed
    failed     the target failed: the message is rolled back, and comes again after a pause
    later      the target wants the message at a later time: it is put off, and no attempt is counted
    blocked    an obstacle that is no fault of the message, as a target that is down or has asked for a pause: the
               message is put off, no attempt is counted, and the whole queue waits
    returned   nothing was done with the message: it is put off for no time

Knows nothing of queues and targets.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True, slots=True)
class ServedMessage:
    queue: bytes
    n: int  # its number, from which its id is made
    body: bytes
    name: bytes
    group: bytes
    priority: int
    attempt: int  # from 1
    pushed_ms: int
    headers: tuple[tuple[bytes, bytes], ...]
    error: bytes  # of the last attempt

    @property
    def size_bytes(self) -> int:
        return len(self.body) + len(self.error) + sum(len(key) + len(value) for key, value in self.headers)


class How(Enum):
    DONE = "done"
    FAILED = "failed"
    LATER = "later"
    BLOCKED = "blocked"
    RETURNED = "returned"


@dataclass(frozen=True, slots=True)
class End:
    """The end of a delivery."""

    how: How
    seconds: float = 0.0  # until the message comes again (later), or how long the queue waits (blocked; 0: as it likes)
    why: str = ""  # failed, blocked
    is_requested: bool = False  # blocked: the target has answered this message by asking for a pause


DONE = End(How.DONE)
RETURNED = End(How.RETURNED)
