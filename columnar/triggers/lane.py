"""A lane: a worker process and the calls that are in it.

Two lanes serve all triggers.  The first lane runs calls in parallel.  When its process dies, it is unknown which call
was the cause.  So these calls, and no others, run again one at a time in quarantine, the second lane (``ward``), where
a death has a single suspect.  Other calls go on in the first lane meanwhile.

Owned by the loop; the feeder decides which calls run and handles their outcomes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from columnar.flows.delivery_state import Delivery
from columnar.triggers.consumer import Consumer
from columnar.triggers.worker_link import Listener

IMPORT_S: Final = 20.0  # a call whose module must be imported first has so long until it begins


class Link(Protocol):
    @property
    def is_up(self) -> bool: ...

    def want(self) -> None: ...

    def send(self, *parts: Any) -> None: ...

    def kill(self) -> None: ...

    async def close(self) -> None: ...


MakeLink = Callable[[Listener], Link]


@dataclass(slots=True, eq=False)
class Call:
    lane: Lane
    consumer: Consumer
    delivery: Delivery
    is_cold: bool = False  # its module may have to be imported
    is_abandoned: bool = False  # its consumer is gone: the answer is of no use, but the thread is taken
    timer: asyncio.TimerHandle | None = None  # from when it was sent

    @property
    def function(self) -> str:
        return self.consumer.registration.function

    @property
    def limit_s(self) -> float:
        timeout_s = self.consumer.registration.timeout_ms / 1000
        return max(IMPORT_S, timeout_s) if self.is_cold else timeout_s

    def end(self) -> None:
        if self.timer is not None:
            self.timer.cancel()


class LaneKeeper(Protocol):
    """The feeder, as a lane sees it."""

    def answered(self, lane: Lane, frame: list[Any]) -> None: ...

    def deliver(self) -> None: ...

    def lane_gone(self, lane: Lane, how: str) -> None: ...

    def timed_out(self, call_id: int, call: Call) -> None: ...


class Lane:
    """``Listener`` of its link."""

    def __init__(self, keeper: LaneKeeper, width: int) -> None:
        self.calls: dict[int, Call] = {}
        self.link: Link | None = None
        self._keeper = keeper
        self._width = width
        self._warm: set[str] = set()  # functions that this process has imported

    @property
    def has_room(self) -> bool:
        return len(self.calls) < self._width

    def wanted(self) -> bool:
        """Whether calls may be sent now; starts the process if it is not there."""
        if self.link is None:
            return False
        if not self.link.is_up:
            self.link.want()
        return self.link.is_up

    def send(self, call_id: int, call: Call, change: list[Any]) -> None:
        assert self.link is not None, "calls are made while there is a link"
        registration = call.consumer.registration
        call.is_cold = call.function not in self._warm
        self._arm(call_id, call)
        self.link.send("run", call_id, registration.name, registration.function, change)

    def _arm(self, call_id: int, call: Call) -> None:
        call.end()
        call.timer = asyncio.get_running_loop().call_later(call.limit_s, self._keeper.timed_out, call_id, call)

    def imported(self, function: str) -> None:
        """The process has the function: what waited for the import runs from now."""
        if function not in self._warm:
            self._warm.add(function)
            for call_id, call in self.calls.items():
                if call.is_cold and call.timer is not None and call.function == function:
                    call.is_cold = False
                    self._arm(call_id, call)

    def take_all(self) -> list[Call]:
        """The process is gone, or is being ended: its calls, which will not be answered."""
        calls, self.calls = list(self.calls.values()), {}
        self._warm.clear()
        for call in calls:
            call.end()
        return calls

    # --- worker_link.Listener ----------------------------------------------------------------------

    def answered(self, frame: list[Any]) -> None:
        self._keeper.answered(self, frame)

    def worker_ready(self) -> None:
        self._keeper.deliver()

    def worker_gone(self, how: str) -> None:
        self._keeper.lane_gone(self, how)
