"""(pure) Tasks that move the messages of a dead-letter queue back, as the cell of that queue keeps them.

    state    RUNNING -> COMPLETED, FAILED, or CANCELLING -> CANCELLED
    q:a      {..., "tasks": [{"id": "...", "state": "RUNNING", "to": "", "rate": 0, "started_ms": 1, "moved": 5,
             "total": 9, "seen_ms": 2, "why": ""}]}, the newest one first, at most MOST_KEPT

A task runs in the server that has begun it, which notes its progress every second.  A task that was not noted for
SILENT_MS has ended with its server, and counts as FAILED: begin another one, which goes on with the messages that are
left.

Knows nothing of queues.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from columnar.sqs.errors import SqsError
from columnar.sqs.queue_addresses import arn_of, queue_of_arn

MOST_KEPT: Final = 10
SILENT_MS: Final = 15_000
RUNNING, CANCELLING, CANCELLED, COMPLETED, FAILED = "RUNNING", "CANCELLING", "CANCELLED", "COMPLETED", "FAILED"
_STATES: Final = frozenset({RUNNING, CANCELLING, CANCELLED, COMPLETED, FAILED})


@dataclass(frozen=True, slots=True)
class MoveTask:
    id: str
    state: str = RUNNING
    to: str = ""  # name of a queue; "": each message goes to the queue in which it died
    rate: int = 0  # messages a second at most; 0: as fast as it goes
    started_ms: int = 0
    moved: int = 0
    total: int = 0  # messages at the start
    seen_ms: int = 0  # when its server noted it last
    why: str = ""  # it failed

    @property
    def is_over(self) -> bool:
        return self.state in (CANCELLED, COMPLETED, FAILED)

    def as_of(self, now_ms: int) -> MoveTask:
        """Return the task as it is now: without a server it has failed."""
        if not self.is_over and now_ms - self.seen_ms > SILENT_MS:
            return replace(self, state=FAILED, why="ServerEnded")
        return self

    def as_json(self, source: bytes, region: str) -> dict[str, Any]:
        """Return the task as ``ListMessageMoveTasks`` shows it."""
        found: dict[str, Any] = {
            "Status": self.state,
            "SourceArn": arn_of(source, region),
            "ApproximateNumberOfMessagesMoved": self.moved,
            "ApproximateNumberOfMessagesToMove": self.total,
            "StartedTimestamp": self.started_ms,
        }
        if not self.is_over:
            found["TaskHandle"] = handle_of(self.id, source, region)
        if self.to:
            found["DestinationArn"] = arn_of(self.to.encode(), region)
        if self.rate:
            found["MaxNumberOfMessagesPerSecond"] = self.rate
        if self.why:
            found["FailureReason"] = self.why
        return found


def unpack_tasks(found: Any) -> tuple[MoveTask, ...]:
    """Return the tasks of a cell.  Raises TypeError or ValueError if they are damaged."""
    tasks = tuple(MoveTask(**one) for one in found)
    for one in tasks:
        numbers = (one.rate, one.started_ms, one.moved, one.total, one.seen_ms)
        texts = (one.id, one.to, one.why)
        is_whole = all(isinstance(n, int) for n in numbers) and all(isinstance(text, str) for text in texts)
        if one.state not in _STATES or not is_whole:
            raise ValueError("a task that moves messages is damaged")
    return tasks


def pack_tasks(tasks: Sequence[MoveTask]) -> list[dict[str, Any]]:
    return [asdict(one) for one in tasks]


def with_task(tasks: Sequence[MoveTask], task: MoveTask) -> tuple[MoveTask, ...]:
    """Return the tasks with this one, which replaces an earlier state of it or is the newest."""
    if any(one.id == task.id for one in tasks):
        return tuple(task if one.id == task.id else one for one in tasks)
    return (task, *tasks)[:MOST_KEPT]


def handle_of(task_id: str, source: bytes, region: str) -> str:
    named = {"taskId": task_id, "sourceArn": arn_of(source, region)}
    return b64encode(json.dumps(named).encode()).decode()


def task_of_handle(handle: str) -> tuple[str, bytes]:
    """Return a task's id and the queue that it empties.  Raises SqsError."""
    try:
        named = json.loads(b64decode(handle, validate=True))
        return str(named["taskId"]), queue_of_arn(named["sourceArn"])
    except (NotBase64, ValueError, KeyError, TypeError, SqsError, RecursionError):
        raise SqsError("ResourceNotFoundException", "The resource that you specified doesn't exist.") from None
