"""Events of a master's state, each of which gives outputs that are carried out in order.

    event    carry out the outputs of an event of ``state``, and wake the waiters
    until    wait until a condition holds, which is evaluated after each event
    spawn    run a coroutine beside the events

Invariant: outputs of one event are begun in their order, before the next event is reported.  An output whose handler
raised is carried out again.

Knows nothing of the outputs; ``handle_by`` sets the handler of each kind.  Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

from columnar.master import instructions as do
from columnar.master.cluster_state import ClusterState
from columnar.runtime.background import Background
from columnar.runtime.faults import FAULTS, surviving

AGAIN_S: Final = 0.1  # after an unexpected exception
LOOP: Final = "the master of the cluster"
Handler = Callable[[Any], object]


class StateEvents:
    def __init__(self, state: ClusterState) -> None:
        self.state = state
        self.is_over = False
        self._background = Background(LOOP)
        self._happened: asyncio.Future[None] | None = None  # done at the next event; ``until`` waits for it
        self._handlers: Mapping[type[Any], Handler] = {}
        self._after_event: Callable[[], None] = _nothing

    def handle_by(self, handlers: Mapping[type[Any], Handler], after_event: Callable[[], None]) -> None:
        """Set the handlers by kind of output, and ``after_event``, called when the outputs of an event are begun."""
        self._handlers = handlers
        self._after_event = after_event

    def now_ms(self) -> int:
        return int(asyncio.get_running_loop().time() * 1000)

    def event(self, outputs: list[do.Output]) -> None:
        """Carry out the outputs of an event of ``state``."""
        if self.is_over:
            return
        for output in outputs:
            self._carry_out(output)
        with surviving(LOOP):
            self._after_event()
        happened, self._happened = self._happened, None
        if happened is not None and not happened.done():
            happened.set_result(None)

    def _carry_out(self, output: do.Output) -> None:
        if self.is_over:
            return
        try:
            self._handlers[type(output)](output)
        except Exception as fault:  # noqa: BLE001 - the outputs after it are carried out, and this one again
            FAULTS.met(LOOP, fault)
            asyncio.get_running_loop().call_later(AGAIN_S, self._carry_out, output)

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Wait until ``is_so()``, which is called after each event, returns True."""
        while not is_so():
            if self._happened is None:
                self._happened = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._happened)

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run ``work`` beside the events, and log its failure."""
        return self._background.spawn(work)

    def stop(self) -> None:
        """Carry out no more outputs, because the servers stop."""
        self.is_over = True

    async def close(self) -> None:
        """End all spawned work."""
        self._background.close()
        await self._background.ended()


def _nothing() -> None:
    pass
