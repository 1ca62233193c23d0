"""Queues by a client: push messages, pop them under a lease, and commit them.

    q = connection.queue("thumbs")
    q.push(b"a.png")
    for message in q.pop(10, wait_ms=20_000):
        work(message.body)
        message.commit()

Not safe for threads, as the connection is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from columnar.client.errors import IOError, hbase_class
from columnar.client.row_operations import text_of
from columnar.model.flow_status import ListedTrigger
from columnar.model.queue_place import QUEUES_TABLE
from columnar.model.queue_service import name_of, service_of
from columnar.model.record_codec import unpack_records
from columnar.model.trigger_registration import Registration, to_json
from columnar.wire.idl import columnar

if TYPE_CHECKING:
    from columnar.client.connection import Connection

CALL_MESSAGES: Final = 1_000  # of one call
_NO_TABLE: Final = "TableNotFoundException"
_TABLE: Final = QUEUES_TABLE.encode()


@dataclass(frozen=True, slots=True)
class Pushed:
    id: str  # of the message, or of the earlier message with its name
    is_new: bool


@dataclass(frozen=True, slots=True)
class QueueStats:
    messages: int  # ready, in flight and delayed
    ready: int
    in_flight: int
    delayed: int
    dead: int
    pushed: int
    committed: int
    oldest_ms: int  # the age of the oldest ready message; 0: there is none
    push_rate_per_s: float  # messages pushed, in the last minute
    commit_rate_per_s: float  # messages committed, in the last minute
    lease_ms: int
    attempts: int
    fifo: bool
    retention_s: int
    dead_to: bytes


@dataclass(frozen=True, slots=True)
class ServedQueue:
    queue: bytes
    target: str  # ``module:function``, or a URL
    state: str  # running, paused or blocked
    running: int  # messages that the target has
    rate_per_s: float  # messages done, in the last minute
    failed: int  # attempts, since its servers started
    last_error: str
    registration: Registration  # its settings


class QueueMessage:
    """A message that was popped, or that ``peek`` or ``dead`` has shown: then it has no receipt."""

    def __init__(self, queue: Queue, found: Any) -> None:
        self._queue = queue
        self.id: str = text_of(found.id)
        self.receipt: bytes = found.receipt
        self.body: bytes = found.body
        self.name: bytes = found.name
        self.group: bytes = found.group
        self.priority: int = found.priority
        self.attempts: int = found.attempts  # with the present one
        self.pushed_ms: int = found.pushedMs
        self.until_ms: int = found.untilMs
        self.headers: dict[bytes, bytes] = found.headers
        self.error: bytes = found.error  # of the last rollback
        self.first_ms: int = found.firstMs  # when it was popped for the first time; 0: it was not

    def commit(self) -> bool:
        """Remove the message for ever; returns False, and does nothing, if another lease has begun."""
        return self._queue.settle([self], "commit")[0]

    def rollback(self, delay_ms: int = 0, error: bytes | str = b"") -> bool:
        """Give the message back, to be popped again after ``delay_ms``; returns False if the lease was lost."""
        return self._queue.settle([self], "rollback", delay_ms, error)[0]

    def put_off(self, ms: int) -> bool:
        """As ``rollback``, but the attempt is not counted."""
        return self._queue.settle([self], "put off", ms)[0]

    def extend(self, ms: int) -> bool:
        """Have the lease last ``ms`` from now on; returns False if the lease was lost."""
        return self._queue.settle([self], "extend", ms)[0]

    def __repr__(self) -> str:
        return f"<message {self.id} of queue {self._queue.name.decode('latin-1')}, attempt {self.attempts}>"


class Queue:
    def __init__(self, connection: Connection, name: bytes | str) -> None:
        self._connection = connection
        self.name = name.encode() if isinstance(name, str) else name

    def push(
        self,
        body: bytes,
        *,
        name: bytes | str = b"",
        name_ms: int = 0,
        group: bytes | str = b"",
        priority: int = 0,
        delay_ms: int = 0,
        headers: Mapping[bytes, bytes] | None = None,
    ) -> Pushed:
        """Store a message; returns when it is on disk.

        ``name``: a second message of the name is not stored while the first is there, and 5 minutes after its commit;
        with ``name_ms`` for so long from the push on, and not beyond.
        ``group``: groups take turns, and in a FIFO queue the messages of a group come one at a time, in their order.
        ``priority``: 0 to 255; the highest is popped first.
        """
        message = columnar.QueueMessage(
            body=body, name=_bytes(name), group=_bytes(group), priority=priority, delayMs=delay_ms,
            headers=dict(headers or {}), nameMs=name_ms,
        )  # fmt: skip
        return self._push([message])[0]

    def push_many(self, bodies: Sequence[bytes], *, group: bytes | str = b"") -> list[Pushed]:
        """Store up to 1,000 messages of a group as one step, with one fsync."""
        of = _bytes(group)
        return self._push([columnar.QueueMessage(body=body, name=b"", group=of, headers={}) for body in bodies])

    def _push(self, messages: list[Any]) -> list[Pushed]:
        return [Pushed(text_of(one.id), one.isNew) for one in self._call("columnarQueuePush", messages)]

    def pop(self, count: int = 1, *, wait_ms: int = 0, lease_ms: int = 0) -> list[QueueMessage]:
        """Return up to ``count`` messages, which nobody else gets for ``lease_ms`` (0: the queue's setting).

        Waits up to ``wait_ms`` (at most 20,000) for the first message.  A message comes again if its lease ends.
        """
        found = self._call("columnarQueuePop", count, wait_ms, lease_ms)
        return [QueueMessage(self, one) for one in found]

    def settle(
        self, messages: Sequence[QueueMessage], what: str = "commit", ms: int = 0, error: bytes | str = b""
    ) -> list[bool]:
        """Commit, roll back, put off or extend several messages as one step; returns whether each lease lasted."""
        receipts = [one.receipt for one in messages]
        return list(self._call("columnarQueueSettle", receipts, what, ms, _bytes(error)))

    def peek(self, count: int = 10) -> list[QueueMessage]:
        """Return messages without giving them out."""
        return [QueueMessage(self, one) for one in self._call("columnarQueuePeek", count)]

    def stats(self) -> QueueStats:
        found = self._call("columnarQueueStats")
        return QueueStats(
            found.messages, found.ready, found.inFlight, found.delayed, found.dead, found.pushed, found.committed,
            found.oldestMs, found.pushRate or 0.0, found.commitRate or 0.0, found.leaseMs, found.attempts, found.fifo,
            found.retentionS, found.deadTo or b"",
        )  # fmt: skip

    def configure(
        self,
        *,
        lease_ms: int | None = None,
        attempts: int | None = None,
        fifo: bool | None = None,
        retention_s: int | None = None,
        dead_to: bytes | str | None = None,
    ) -> None:
        """Change settings; those that are None stay.

        After ``attempts`` pops a message is dead; 0: never.  Dead messages are moved to the queue ``dead_to``; empty:
        they stay.  Messages older than ``retention_s`` are removed, unless somebody holds them; 0: never.
        """
        settings = columnar.QueueSettings(
            leaseMs=lease_ms, attempts=attempts, fifo=fifo, retentionS=retention_s,
            deadTo=None if dead_to is None else _bytes(dead_to),
        )  # fmt: skip
        self._call("columnarQueueConfigure", settings)

    # --- dead messages ---------------------------------------------------------------------------------------

    def dead(self, count: int = 100, after: str = "") -> list[QueueMessage]:
        """Return dead messages with their last errors, oldest first, with ids above ``after``.

        Returns fewer than ``count`` if they have many bytes; only an empty list means that there are no more.
        """
        return [QueueMessage(self, one) for one in self._call("columnarQueueDead", after, count)]

    def redrive(self, messages: Sequence[QueueMessage | str] | None = None) -> int:
        """Bring dead messages back, without their attempts: these, by message or id, or all; return their number."""
        return self._of_dead("columnarQueueRedrive", messages)

    def remove_dead(self, messages: Sequence[QueueMessage | str] | None = None) -> int:
        """Remove dead messages for ever: these, by message or id, or all; return their number."""
        return self._of_dead("columnarQueueRemoveDead", messages)

    def _of_dead(self, method: str, messages: Sequence[QueueMessage | str] | None) -> int:
        if messages is None:
            number = 0
            while (done := int(self._call(method, [], CALL_MESSAGES))) > 0:
                number += done
            return number
        ids = [one if isinstance(one, str) else one.id for one in messages]
        number = 0
        while ids:
            done = int(self._call(method, ids[:CALL_MESSAGES], 0))
            number += done
            ids = ids[done or CALL_MESSAGES :]  # a call takes fewer if they have many bytes
        return number

    def purge(self) -> int:
        """Remove all messages but the dead ones at once, also those that somebody has popped; return their number."""
        return int(self._call("columnarQueuePurge"))

    def drop_queue(self) -> bool:
        """Remove the queue with its messages, dead messages and settings.

        Returns False, and leaves the queue, if a message was pushed meanwhile.
        """
        return bool(self._call("columnarQueueDrop"))

    def _call(self, method: str, *args: Any) -> Any:
        return _with_table(self._connection, method, self.name, *args)


class Queues:
    """All queues of a store: ``connection.queues``."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def serve(
        self,
        queue: bytes | str,
        function: str = "",
        *,
        url: str = "",
        rate: str = "",
        side_by_side: int = 0,
        timeout_s: float = 0,
        attempts: int | None = None,
        share: int = 0,
        process: str = "",
        writes: Sequence[str] = (),
    ) -> None:
        """Have the store give the queue's messages to ``function`` ("module:function"), or post them to ``url``.

        ``rate`` bounds the messages begun, as 50/s or 600/min, ``side_by_side`` those under way (8), ``timeout_s`` the
        time of each (30 s).  ``attempts`` is the queue's own setting (``Queue.configure``); None: it stays.  ``share``,
        ``process`` and ``writes`` are of functions, as for triggers.  A queue that is served already is served so from
        now on.
        """
        name = _bytes(queue).decode("latin-1")
        if bool(function) == bool(url):
            raise ValueError("name either a function or a url that gets the messages")
        registration = service_of(
            name, function or url, rate=rate, side_by_side=side_by_side, share=share, process=process,
            timeout_ms=round(timeout_s * 1_000), writes=tuple(sorted(writes)),
        )  # fmt: skip
        _with_table(self._connection, "columnarTriggerAdd", to_json(registration))
        if attempts is not None:
            self._connection.queue(queue).configure(attempts=attempts)

    def unserve(self, queue: bytes | str) -> None:
        """Give no more messages to the target; those that it has end as usual, and the others stay in the queue."""
        self._connection.call("columnarTriggerRemove", name_of(_bytes(queue).decode("latin-1")))

    def served(self) -> list[ServedQueue]:
        """Return the queues that are served, with what their targets do now."""
        found = unpack_records(self._connection.call("columnarTriggers"), ListedTrigger)
        return [
            ServedQueue(
                one.registration.queue.encode(), one.registration.function, one.state, one.parked_rows,
                one.rate_per_s, one.failed, one.last_error, one.registration,
            )
            for one in found
            if one.registration is not None and one.registration.queue
        ]  # fmt: skip

    def pause_serving(self, queue: bytes | str) -> None:
        """Give no more messages to the target until ``resume_serving``; those that it has end as usual."""
        self._connection.call("columnarTriggerPause", name_of(_bytes(queue).decode("latin-1")))

    def resume_serving(self, queue: bytes | str) -> None:
        self._connection.call("columnarTriggerResume", name_of(_bytes(queue).decode("latin-1")))

    def names(self, prefix: bytes | str = b"") -> Iterator[bytes]:
        """Yield the names of the queues that were used and not dropped, ascending; one call for each."""
        begin = start = _bytes(prefix)
        table = self._connection.table(_TABLE, use_prefix=False)
        while True:
            try:
                found = next(iter(table.scan(row_start=start, limit=1, filter=b"KeyOnlyFilter()")), None)
            except IOError as error:
                if hbase_class(error) == _NO_TABLE:
                    return
                raise
            name = found[0].partition(b"\x00")[0] if found is not None else b""
            if found is None or not name.startswith(begin):
                return
            yield name
            start = name + b"\x01"


def _with_table(connection: Connection, method: str, *args: Any) -> Any:
    """Call the method; if it is the first use of queues in this store, make their table first."""
    try:
        return connection.call(method, *args)
    except IOError as error:
        if hbase_class(error) != _NO_TABLE:
            raise
    connection.call("columnarQueuePrepare")
    return connection.call(method, *args)


def _bytes(text: bytes | str) -> bytes:
    return text.encode() if isinstance(text, str) else text
