"""The consumer loop: reads a table's changes as a member of a group, hands them to a function, and commits.

    consumer = connection.consume("pages", group="search", handler=index)
    consumer.run()                      # until ``stop``, from another thread or from a signal handler

A handler that raises is called again with the same changes, after growing pauses; after ``tries`` calls the loop ends
with HandlerFailed, and the group's position stays before these changes.  The position moves reply by reply, so after
that, and after a death, a handler may get some changes again that it has done.

While a handler works, and in the pauses, a thread renews the member's lease, for up to ``longest_s`` for a batch.  A
handler that needs longer may lose its rows to other members, which then get the batch again.  A warning of the log
tells of that.

``consumer_loop`` decides the steps, which a thread carries out here.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from columnar.client.changes import StreamEvent
from columnar.client.consumer_loop import (
    RENEWED_S,
    Commit,
    ConsumerLoop,
    Handle,
    HandlerFailed,
    Pause,
    Poll,
    Step,
    WorkTime,
    options_of,
)
from columnar.client.errors import StoreIllegalArgument, StoreIOError
from columnar.client.group_changes import GroupChanges
from columnar.client.store_link import BROKEN

if TYPE_CHECKING:
    from columnar.client.connection import Connection

__all__ = ["Consumer", "Handler", "HandlerFailed", "LeaseRenewal", "open_consumer"]

_log = logging.getLogger(__name__)

STORE_ERRORS: Final = (*BROKEN, StoreIOError, StoreIllegalArgument)
Handler = Callable[[list[StreamEvent]], object]


class LeaseRenewal:
    """A thread that renews the lease every RENEWED_S while work is under way, up to ``longest_s`` for one piece.

    So a handler may take longer than a lease, and a handler that hangs for ever loses its rows to other members.  The
    thread has a connection of its own, which it opens when a handler first takes longer than RENEWED_S.
    """

    def __init__(self, connection: Connection, changes: GroupChanges, longest_s: float) -> None:
        self._connection = connection
        self._changes = changes
        self._ended = threading.Event()
        self._own: Connection | None = None
        self._thread = threading.Thread(target=self._run, name=f"lease of {changes.member}", daemon=True)
        self.work = WorkTime(time.monotonic, longest_s)  # set by the thread that works

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._ended.wait(RENEWED_S):
                if self.work.needs_lease:
                    self._renew()
        finally:
            self._close()

    def _renew(self) -> None:
        try:
            if self._own is None:
                self._own = self._connection.another(round(RENEWED_S * 1_000))
            self._changes.renew_lease(self._own)
        except STORE_ERRORS as error:  # the next renewal may succeed
            _log.warning("group %s: the lease is not renewed now: %s", self._changes.group, error)
            self._close()

    def _close(self) -> None:
        if self._own is not None:
            with suppress(*BROKEN):
                self._own.close()
            self._own = None


class Consumer(ConsumerLoop):
    """The loop; ``run`` in one thread, which uses the connection alone, and ``stop`` from anywhere."""

    def __init__(
        self,
        connection: Connection,
        changes: GroupChanges,
        handler: Handler,
        *,
        batch: int,
        tries: int,
        longest_s: float,
    ) -> None:
        self._renewal = LeaseRenewal(connection, changes, longest_s)
        super().__init__(changes.group, self._renewal.work, batch=batch, tries=tries)
        self._connection = connection
        self._handler = handler
        self._stopped = threading.Event()
        self.changes = changes

    def stop(self) -> None:
        super().stop()
        self._stopped.set()

    @property
    def lag_ms(self) -> int | None:
        """How far the loop is behind the clock; None before its first reply."""
        return self.lag_at(time.time_ns() // 1_000_000)

    def run(self) -> None:
        """Work until ``stop``, then leave the group.  Raises HandlerFailed, ChangesGone, or the store's error."""
        try:
            with self._renewal, suppress(StopIteration):
                self._carry_out()
        finally:
            with suppress(*STORE_ERRORS):  # then its lease ends
                self.changes.leave_group()

    def _carry_out(self) -> None:
        """Carry out the loop's steps; ends with StopIteration."""
        steps = self.steps()
        step = next(steps)
        while True:
            try:
                found = self._do(step)
            except Exception as error:  # noqa: BLE001 - the loop decides whether it goes on
                step = steps.throw(error)
            else:
                step = steps.send(found)

    def _do(self, step: Step) -> list[StreamEvent] | None:
        match step:
            case Poll(wait_ms):
                return self.changes.poll(wait_ms)
            case Handle(batch):
                self._handler(batch)
            case Commit():
                self.changes.commit()
            case Pause(seconds, is_broken):
                self._stopped.wait(seconds)
                if is_broken:
                    self._reopen()
        return None

    def _reopen(self) -> None:
        self._connection.close()
        with suppress(*BROKEN):  # the next call fails, and is counted
            self._connection.open()


def open_consumer(
    connection: Connection,
    table: bytes | str,
    group: str,
    handler: Handler,
    *,
    batch: int,
    tries: int,
    longest_s: float,
    options: Mapping[str, Any],
) -> Consumer:
    """Return the loop that ``Connection.consume`` describes; calls no server.  Raises WrongArgument."""
    changes = connection.changes(table, **options_of(group, batch, options))
    assert isinstance(changes, GroupChanges), "it has a group"
    return Consumer(connection, changes, handler, batch=batch, tries=tries, longest_s=longest_s)
