"""The served queues of one server: follows their registrations, and delivers those that are not paused.

Every server has all registrations.  The one that owns a queue's region delivers it (``message_delivery``).  When a
registration changes or goes, its delivery ends first with the messages that are out.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from columnar.flows.figures import Figures
from columnar.flows.follower_name import trigger
from columnar.flows.governor import Governor
from columnar.model.flow_status import PUSH, RUNNING, FlowStatus, TriggerStatus, status_of
from columnar.model.trigger_registration import Registration, rate_per_s
from columnar.queues.delivery_pace import DeliveryPace
from columnar.queues.lease_settling import LeaseSettling
from columnar.queues.message_delivery import MessageDelivery, RegionsChange, Target
from columnar.queues.queue_desks import QueueDesks
from columnar.runtime.background import Background

_DRAINS: Final = "the ends of deliveries of queues"
PAUSED, BLOCKED = "paused", "blocked"

MakeTarget = Callable[[Registration], Target]


class _Served:
    def __init__(self, registration: Registration, delivery: MessageDelivery | None) -> None:
        self.registration = registration
        self.delivery = delivery  # None: it is paused


class ServedQueues:
    def __init__(
        self,
        desks: QueueDesks,
        settling: LeaseSettling,
        make_target: MakeTarget,
        governor: Governor,
        figures: Figures,
        regions_change: RegionsChange,
    ) -> None:
        """``make_target`` makes the target of a registration."""
        self._desks = desks
        self._settling = settling
        self._make_target = make_target
        self._governor = governor
        self._figures = figures
        self._regions_change = regions_change
        self._served: dict[str, _Served] = {}  # by name of the registration
        self._drains: dict[str, asyncio.Task[None]] = {}  # of the last delivery of the name
        self._background = Background(_DRAINS)

    # --- registrations -------------------------------------------------------------------------------

    def serve(self, registration: Registration, *, is_paused: bool) -> None:
        """Deliver the queue as the registration says from now on."""
        name, held = registration.name, self._served.get(registration.name)
        if held is not None and held.registration == registration and (held.delivery is None) == is_paused:
            return
        self._end(name)
        delivery = None if is_paused else self._delivery(registration)
        self._served[name] = _Served(registration, delivery)
        if delivery is not None:
            before = self._drains.get(name)
            delivery.start(before)

    def unserve(self, name: str) -> None:
        """Begin no more messages of the queue; those that are out end as usual."""
        self._end(name)
        self._served.pop(name, None)
        self._figures.forget_follower(trigger(name))

    def _end(self, name: str) -> None:
        held = self._served.get(name)
        if held is not None and held.delivery is not None:
            self._background.spawn_as(self._drains, name, held.delivery.drain())

    def _delivery(self, registration: Registration) -> MessageDelivery:
        rate = rate_per_s(registration.rate) if registration.rate else None
        pace = DeliveryPace(registration.side_by_side, rate, asyncio.get_running_loop().time())
        return MessageDelivery(
            registration.queue.encode(),
            pace,
            self._make_target(registration),
            self._desks,
            self._settling,
            self._governor,
            self._regions_change,
        )

    async def close(self) -> None:
        """End all deliveries, as the process ends."""
        self._background.close()
        deliveries = [one.delivery for one in self._served.values() if one.delivery is not None]
        self._served.clear()
        await asyncio.gather(*(one.close() for one in deliveries))

    # --- status --------------------------------------------------------------------------------------

    def status(self, name: str) -> TriggerStatus:
        """Return how the queue, which is served, is delivered at this server."""
        served = self._served[name]
        now_s, delivery = asyncio.get_running_loop().time(), served.delivery
        figures = self._figures.of(trigger(name), now_s)
        state, error = _stands(delivery)
        return replace(
            status_of(served.registration),
            function=public_target(served.registration),
            state=state,
            last_error=error,
            rate_per_s=figures.rate_per_s(now_s),
            parked_rows=delivery.pace.running if delivery is not None else 0,
            failed=figures.failed,
        )

    def flow_statuses(self) -> list[FlowStatus]:
        """Return the served queues as flows: from the queue to what the target declares to write."""
        now_s = asyncio.get_running_loop().time()
        found: list[FlowStatus] = []
        for name, served in self._served.items():
            registration, status = served.registration, self.status(name)
            figures = self._figures.of(trigger(name), now_s)
            found.append(
                FlowStatus(
                    PUSH,
                    f"{registration.queue} to {status.function}",
                    (name,),
                    registration.writes,
                    state=status.state,
                    rate_per_s=status.rate_per_s,
                    delivered=figures.delivered,
                    failed=figures.failed,
                    runs=figures.runs.numbers,
                    idle_s=figures.idle_s(now_s),
                    parked=status.parked_rows,
                    error=status.last_error,
                )
            )
        return found


def public_target(registration: Registration) -> str:
    """Return the function or URL, for pages that many see: without the query of the URL, which may have a secret."""
    return registration.url.partition("?")[0] or registration.function


def _stands(delivery: MessageDelivery | None) -> tuple[str, str]:
    if delivery is None:
        return PAUSED, ""
    why = delivery.pace.why or delivery.error
    return (BLOCKED, why) if why else (RUNNING, "")
