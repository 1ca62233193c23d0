"""Unexpected exceptions of loops that continue: logged with traceback, counted by loop, reported until they cease.

A loop of the server (an applier of effects, a sweep, a writer of the catalogue) survives an unexpected
exception: the piece of work that met it fails, and the loop continues.  ``met`` reports the exception, so that nothing
of the kind happens in silence: it is in the log, in ``/metrics``, and for HEALTH_WINDOW_S in ``/health``.

A loop that failed at its last STUCK_TRIES iterations, for STUCK_S, does not do its work any more: the process is
unhealthy.

Counted since the process began; a process has one ``FAULTS``, as it has one log.  Any thread may report.
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
# Of a step outside tasks: no task is cancelled there, and a future that was cancelled says so by raising.
UNEXPECTED: Final = (Exception, CancelledError)


class Fault:
    """The exceptions of one loop."""

    __slots__ = ("count", "in_a_row", "last_s", "logged_s", "loop", "since_s", "text", "untold")

    def __init__(self, loop: str) -> None:
        self.loop = loop
        self.count = 0
        self.in_a_row = 0  # iterations that failed since the last success
        self.since_s = 0.0  # the first of those
        self.last_s = 0.0
        self.text = ""  # of the last one
        self.logged_s = float("-inf")
        self.untold = 0

    def add_exception(self, error: BaseException, now_s: float) -> None:
        self.count += 1
        if not self.in_a_row:
            self.since_s = now_s
        self.in_a_row += 1
        self.last_s, self.text = now_s, f"{type(error).__name__}: {error}"[:TEXT_CHARS]

    def take_unlogged(self, now_s: float) -> int | None:
        """Return how many exceptions before this one the next log line stands for; None: no line is due."""
        if now_s - self.logged_s < LOG_INTERVAL_S:
            self.untold += 1
            return None
        self.logged_s, untold, self.untold = now_s, self.untold, 0
        return untold

    def end_row(self) -> None:
        """An iteration of the loop succeeded."""
        self.in_a_row = 0


class Faults:
    def __init__(self) -> None:
        self._by_loop: dict[str, Fault] = {}
        self._failing: set[str] = set()

    def met(self, loop: str, error: BaseException) -> None:
        """Report an exception of a loop that continues.  ``loop``: constant, a noun for operators and for a metric."""
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
        """Since the process began, by loop."""
        return [(name, self._by_loop[name].count) for name in sorted(self._by_loop)]

    def stuck(self) -> list[str]:
        """Loops that do not do their work any more, in words."""
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
    """Handler of the event loop: what reached it had no loop of its own to survive."""
    error = context.get("exception")
    if error is None:
        loop.default_exception_handler(context)
    else:
        _log.error("%s", context.get("message", ""))
        FAULTS.met("a callback of the event loop", error)


class surviving:  # noqa: N801 - as contextlib.suppress
    """``with surviving(loop)``: an exception within is reported, and what follows is done all the same."""

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
            return False  # a cancellation, or the end of the process
        FAULTS.met(self._loop, error)
        return True
