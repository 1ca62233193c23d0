"""Unexpected exceptions that loops survive: logged with traceback, counted by loop, reported until they cease.

A loop of the server (the applier of effects, a clean-up, the writer of the catalogue) survives an unexpected exception:
the work item that raised it fails, and the loop continues.  ``met`` reports the exception in the log, in ``/metrics``,
and for HEALTH_WINDOW_S in ``/health``.

If the last STUCK_TRIES iterations of a loop failed, over STUCK_S, the loop counts as stuck and the process as
unhealthy.

Exceptions are counted since the start of the process, which has one ``FAULTS``.  Any thread may report.
"""

from __future__ import annotations

import logging
import time
from asyncio import AbstractEventLoop, CancelledError
from types import TracebackType
from typing import Any, Final

_log = logging.getLogger(__name__)

LOG_INTERVAL_S: Final = 1.0  # between two tracebacks of one loop in the log
HEALTH_WINDOW_S: Final = 600.0
STUCK_TRIES: Final = 3
STUCK_S: Final = 10.0
TEXT_CHARS: Final = 200
# For a step outside of tasks: it cannot be cancelled itself, but a cancelled future that it reads raises
# CancelledError.
UNEXPECTED: Final = (Exception, CancelledError)


class Fault:
    """The exceptions that one loop met."""

    __slots__ = ("count", "in_a_row", "last_s", "logged_s", "loop", "since_s", "text", "untold")

    def __init__(self, loop: str) -> None:
        self.loop = loop
        self.count = 0
        self.in_a_row = 0  # failed iterations since the last success
        self.since_s = 0.0  # time of the first of them
        self.last_s = 0.0
        self.text = ""  # the last exception
        self.logged_s = float("-inf")
        self.untold = 0

    def add_exception(self, error: BaseException, now_s: float) -> None:
        self.count += 1
        if not self.in_a_row:
            self.since_s = now_s
        self.in_a_row += 1
        self.last_s, self.text = now_s, f"{type(error).__name__}: {error}"[:TEXT_CHARS]

    def take_unlogged(self, now_s: float) -> int | None:
        """Return the number of unlogged exceptions that the next log line reports, or None if no line is due."""
        if now_s - self.logged_s < LOG_INTERVAL_S:
            self.untold += 1
            return None
        self.logged_s, untold, self.untold = now_s, self.untold, 0
        return untold

    def end_row(self) -> None:
        """Note that an iteration of the loop succeeded."""
        self.in_a_row = 0


class Faults:
    def __init__(self) -> None:
        self._by_loop: dict[str, Fault] = {}
        self._failing: set[str] = set()

    def met(self, loop: str, error: BaseException) -> None:
        """Report an exception that a loop survived.

        ``loop`` is a constant noun, by which operators and a metric name the loop.
        """
        now_s = time.monotonic()
        fault = self._by_loop.get(loop)
        if fault is None:
            fault = self._by_loop[loop] = Fault(loop)
        fault.add_exception(error, now_s)
        self._failing.add(loop)
        untold = fault.take_unlogged(now_s)
        if untold is None:
            return
        more = f" ({untold} more since the last line)" if untold else ""
        _log.error("%s met an unexpected exception and goes on%s", loop, more, exc_info=error)

    def went_well(self, loop: str) -> None:
        """Note an iteration of the loop without a fault.  Costs a look-up in an empty set if nothing fails."""
        if self._failing and loop in self._failing:
            self._failing.discard(loop)
            self._by_loop[loop].end_row()

    def forget(self) -> None:
        """Forget all faults, for tests."""
        self._by_loop.clear()
        self._failing.clear()

    def counts(self) -> list[tuple[str, int]]:
        """Return the number of exceptions by loop since the process started."""
        return [(name, self._by_loop[name].count) for name in sorted(self._by_loop)]

    def stuck(self) -> list[str]:
        """Return a text for each loop that is stuck."""
        now_s = time.monotonic()
        found = [self._by_loop[name] for name in sorted(self._failing)]
        return [
            f"{one.loop} failed {one.in_a_row} times in a row, since {now_s - one.since_s:.0f} s: {one.text}"
            for one in found
            if one.in_a_row >= STUCK_TRIES and one.last_s - one.since_s >= STUCK_S
        ]

    def recent(self) -> list[str]:
        """Return the exceptions of the last HEALTH_WINDOW_S, as text."""
        now_s = time.monotonic()
        found = [self._by_loop[name] for name in sorted(self._by_loop)]
        return [
            f"{one.loop} met {one.count} unexpected exceptions and goes on; the last {now_s - one.last_s:.0f} s ago: "
            f"{one.text} (see the log)"
            for one in found
            if now_s - one.last_s < HEALTH_WINDOW_S
        ]


FAULTS: Final = Faults()


def met_by_the_loop(loop: AbstractEventLoop, context: dict[str, Any]) -> None:
    """Handle an exception that reached the event loop, because no loop of ours caught it."""
    error = context.get("exception")
    if error is None:
        loop.default_exception_handler(context)
    else:
        _log.error("%s", context.get("message", ""))
        FAULTS.met("a callback of the event loop", error)


class surviving:  # noqa: N801 - as contextlib.suppress
    """``with surviving(loop)``: an exception in the block is reported, and the code after the block runs."""

    __slots__ = ("_loop",)

    def __init__(self, loop: str) -> None:
        self._loop = loop

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> bool:
        if error is None:
            FAULTS.went_well(self._loop)
            return False
        if not isinstance(error, Exception):
            return False  # a cancellation, or the end of the process, passes
        FAULTS.met(self._loop, error)
        return True
