"""The registrations of served queues at one owner of regions: handed on when the store is ready for their targets.

The master sends them among those of the triggers.  Triggers know nothing of queues: ``queues.served_queues`` delivers,
and its functions run as calls of the dispatcher.

Owned by the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Protocol

from columnar.model.derivations import Steps, Trigger, Triggers
from columnar.model.flow_graph import Flow, Place, flow_of
from columnar.model.flow_status import PUSH, TriggerStatus, status_of
from columnar.model.trigger_registration import Registration


def of_tables(registrations: Iterable[Registration]) -> list[Registration]:
    """Return the registrations that follow a table."""
    return [one for one in registrations if not one.queue]


def served_flows(registrations: Iterable[Registration], seen: Callable[[str], Iterable[Place]]) -> list[Flow]:
    """Return the served queues as parts of the flow graph; ``seen`` returns the places of a target's effects."""
    return [replace(flow_of(one, seen(one.name)), kind=PUSH) for one in registrations if one.queue]


class QueueServing(Protocol):
    """The served queues of this server (``queues.served_queues``), of which triggers know nothing else."""

    def serve(self, registration: Registration, *, is_paused: bool) -> None: ...

    def unserve(self, name: str) -> None: ...

    def status(self, name: str) -> TriggerStatus: ...

    async def close(self) -> None: ...


class QueueRegistrations:
    def __init__(self) -> None:
        self.make_serving: Callable[[], QueueServing] | None = None  # called for the first queue that is served
        self._serving: QueueServing | None = None  # None: there was none
        self._is_started = False

    def serve_queues(self, steps: Steps[Trigger]) -> Steps[Trigger]:
        """Serve queues as the steps say; return the steps that are for tables."""
        for one in steps.gone:
            if one.registration.queue and self._serving is not None:
                self._serving.unserve(one.name)
        for one, _ in steps.followed:
            self._serve(one)
        return Steps(
            [one for one in steps.gone if not one.registration.queue],
            [(one, before) for one, before in steps.followed if not one.registration.queue],
            [one for one in steps.begun if not one.registration.queue],
        )

    def start(self, triggers: Triggers) -> None:
        """Deliver from now on: functions and targets may ask things of the store."""
        self._is_started = True
        for one in triggers.in_use():
            self._serve(one)

    def _serve(self, one: Trigger) -> None:
        if not one.registration.queue or not self._is_started:
            return
        if self._serving is None:
            assert self.make_serving is not None, "the role of a server has set it"
            self._serving = self.make_serving()
        self._serving.serve(one.registration, is_paused=one.state == "paused")

    def status(self, registration: Registration) -> TriggerStatus:
        """Return how the queue is delivered here; before ``start`` it is as a paused one."""
        if self._serving is None:
            return replace(status_of(registration), state="paused")
        return self._serving.status(registration.name)

    async def close(self) -> None:
        if self._serving is not None:
            await self._serving.close()
