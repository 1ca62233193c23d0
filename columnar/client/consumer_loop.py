"""(pure) The steps of a consumer: poll, handle batch by batch, commit, and what follows errors of each.

    steps   Poll -> events          the next reply of the group's changes
            Handle                  the handler is called with a batch
            Commit                  of what was handled
            Pause                   before the next step, or until the loop is stopped; the connection may be broken

``ConsumerLoop.steps`` is a generator: its owner carries out a step, and sends what came of it or throws its error.
``consuming`` does so in a thread, ``async_consuming`` in a task.

Invariants:
    L1. A Commit follows only when each batch of the reply was handled.
    L2. After ``tries`` errors of the handler for a batch the loop ends with HandlerFailed, and commits nothing of it.
    L3. A step of the store is tried STORE_TRIES times in a row, and only once if the same call would fail again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from columnar import errors
from columnar.client.changes import Change, ChangesGone, Idle, Row, StreamEvent
from columnar.client.errors import StoreIOError, WrongArgument, hbase_class
from columnar.client.group_cursor import CommitRefused
from columnar.client.store_link import BROKEN
from columnar.model.change_stream import STREAM_REPLY_BYTES
from columnar.model.reader_groups import GROUP_LEASE_MS

_log = logging.getLogger(__name__)

FIRST_PAUSE_S: Final = 0.5  # before the second call of a handler, or after an error of the store
LONGEST_PAUSE_S: Final = 8.0  # pauses double up to this
STORE_TRIES: Final = 12  # failing calls of the store in a row, some 75 s
STOP_MS: Final = 1_000  # the longest poll, and so the longest time from ``stop`` to the end of the loop
RENEWED_S: Final = GROUP_LEASE_MS / 3_000  # a renewal that fails is tried twice more before the lease ends
EVENT_BYTES: Final = 1_024  # of a change, for a guess of how many bytes a batch has


class HandlerFailed(Exception):
    """The handler raised at each try; the cause is its last error."""

    def __init__(self, group: str, tries: int, batch: Sequence[StreamEvent]) -> None:
        self.batch = list(batch)
        first = batch[0]
        row = repr(first.row)[1:] if isinstance(first, Change | Row) else "a range of rows"
        which = f" (sequence {first.sequence})" if isinstance(first, Change | Row) else ""
        super().__init__(
            f"the handler of group {group} raised {tries} times for {len(batch)} changes from row {row}{which} on; the "
            "group goes on there when it is started again"
        )


@dataclass(frozen=True, slots=True)
class Poll:
    wait_ms: int


@dataclass(frozen=True, slots=True)
class Handle:
    batch: list[StreamEvent]


@dataclass(frozen=True, slots=True)
class Commit:
    pass


@dataclass(frozen=True, slots=True)
class Pause:
    seconds: float
    is_broken: bool = False  # the connection: open it again


Step = Poll | Handle | Commit | Pause
Steps = Generator[Step, Any, None]


class WorkTime:
    """The time that the batch under way takes, of which others may read."""

    def __init__(self, clock_s: Callable[[], float], longest_s: float) -> None:
        self._clock_s = clock_s
        self._longest_s = longest_s
        self._began_s: float | None = None

    def begin_work(self) -> None:
        self._began_s = self._clock_s()

    def end_work(self) -> None:
        self._began_s = None

    @property
    def needs_lease(self) -> bool:
        """Whether the lease is to be renewed: work is under way, and does not count as hanging."""
        began_s = self._began_s  # once: another thread may end the work
        return began_s is not None and self._clock_s() - began_s < self._longest_s


class ConsumerLoop:
    """The next step of a consumer, and its figures.  ``stop`` may be called from anywhere."""

    def __init__(self, group: str, work: WorkTime, *, batch: int, tries: int) -> None:
        if batch < 1 or tries < 1:
            raise WrongArgument("a consumer has a batch of at least 1 change, and at least 1 try")
        self._group = group
        self._work = work
        self._batch = batch
        self._tries = tries
        self.is_stopped = False
        self._last_ms = 0  # as of when the loop is; 0 before its first reply
        self.handled = 0  # events
        self.refused = 0  # commits, of which a part went to other members

    def stop(self) -> None:
        """End the loop after the present batch."""
        self.is_stopped = True

    def lag_at(self, now_ms: int) -> int | None:
        """Return how far the loop is behind the clock; None before its first reply."""
        return max(0, now_ms - self._last_ms) if self._last_ms else None

    def steps(self) -> Steps:
        """Yield the steps until ``stop``.  Raises HandlerFailed, ChangesGone, or the store's error."""
        failures = 0
        while not self.is_stopped:
            try:
                yield from self._one_reply()
                failures = 0
            except (*BROKEN, StoreIOError) as error:
                failures += 1
                yield self._pause_after(error, failures, "trying again")

    def _one_reply(self) -> Steps:
        events: list[StreamEvent] = yield Poll(STOP_MS)
        first, last = events[0], events[-1]
        if isinstance(first, Idle):
            self._note(first.up_to_ms)
            return
        for at in range(0, len(events), self._batch):
            self._work.begin_work()
            try:
                is_done = yield from self._handle(events[at : at + self._batch])
            finally:
                self._work.end_work()
            if not is_done:
                return
        yield from self._commit()
        if isinstance(last, Change):
            self._note(last.stamp)

    def _note(self, ms: int) -> None:
        self._last_ms = max(self._last_ms, ms)

    def _handle(self, batch: list[StreamEvent]) -> Generator[Step, Any, bool]:
        """Let the handler be called until it succeeds; return False if the loop was stopped before."""
        for number in range(1, self._tries + 1):
            if self.is_stopped:
                return False
            try:
                yield Handle(batch)
            except Exception as error:  # a stranger's code
                if number == self._tries:
                    raise HandlerFailed(self._group, self._tries, batch) from error
                _log.warning("group %s: the handler raised, try %d", self._group, number, exc_info=True)
                yield Pause(_pause_s(number))
                continue
            self.handled += len(batch)
            return True
        return False

    def _commit(self) -> Steps:
        """Commit what was handled, again and again if the store cannot be reached: a commit may come twice."""
        for number in range(1, STORE_TRIES + 1):
            try:
                yield Commit()
                return
            except CommitRefused as refused:
                self.refused += 1
                _log.warning("%s", refused)
                return
            except (*BROKEN, StoreIOError) as error:
                yield self._pause_after(error, number, "committing again")

    def _pause_after(self, error: Exception, failures: int, what_follows: str) -> Pause:
        """Return the pause before the next try; raises the error if there is none."""
        if failures == STORE_TRIES or _is_lasting(error):
            raise error
        _log.warning("group %s: %s; %s", self._group, error, what_follows)
        return Pause(_pause_s(failures), isinstance(error, BROKEN))


def options_of(group: str, batch: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of ``changes`` for a consumer.  Raises WrongArgument if it has no group."""
    if not group:
        raise WrongArgument("a consumer needs the name of its group")
    return {"max_bytes": min(max(1, batch) * EVENT_BYTES, STREAM_REPLY_BYTES), **options, "group": group}


def _pause_s(number: int) -> float:
    return min(FIRST_PAUSE_S * (1 << min(number - 1, 10)), LONGEST_PAUSE_S)


def _is_lasting(error: Exception) -> bool:
    """Return whether the same call would fail again."""
    return isinstance(error, ChangesGone) or hbase_class(error) in _LASTING


def _classes(root: type[errors.ColumnarError]) -> set[str]:
    return {root.hbase_class.rpartition(".")[2]}.union(*map(_classes, root.__subclasses__()))


_LASTING: Final = _classes(errors.CallerError) - _classes(errors.RetryLater) - {errors.ColumnarError.hbase_class}
