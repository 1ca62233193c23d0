"""The services that the outboxes of a process's regions share: the way to queues and topics, and the status.

``flows.outbox`` decides what goes where; this module carries its batches.  Loaded when the first table that takes sends
is served.

Owned by the loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from columnar.cluster.peer_requests import PushedRecord, QueuedMessage
from columnar.flows.delivery_state import DeliveryState
from columnar.flows.follower import Follower, Kind, Subscription
from columnar.flows.follower_name import OUTBOX, OUTBOX_NAME
from columnar.flows.hub import Hub
from columnar.flows.send_bytes import producer_name, record_header, record_sequence
from columnar.model.flow_graph import Flow, Place
from columnar.model.flow_status import RUNNING
from columnar.model.send import TOPIC, Send, target_of
from columnar.regions.region import Region
from columnar.runtime.faults import FAULTS

if TYPE_CHECKING:
    from columnar.flows.outbox import OutboxServices
    from columnar.flows.outbox_state import Outgoing
    from columnar.queues.queue_pushes import QueuePushes
    from columnar.topics.topic_pushes import TopicPushes

LOOP: Final = "the outbox of changes"
OPEN_CHANGES: Final = 8_192  # of one region: all are read again when it opens, and are in its cursor
SENT_PLACES: Final = 64  # queues and topics with an arrow from the outbox; further ones get their messages without one


class Outboxes:
    """The services that the outboxes of all regions share, and their status."""

    def __init__(self, hub: Hub, queues: Callable[[], QueuePushes], topics: Callable[[], TopicPushes]) -> None:
        self._hub = hub
        self._queues = queues
        self._topics = topics
        self._refused = 0  # messages that their targets refused, since the process began
        self._sent: dict[bytes, None] = {}  # targets that have stored messages, at most SENT_PLACES
        self._services: OutboxServices | None = None
        hub.register(
            Kind(
                OUTBOX,
                True,
                lambda _name, _number: False,
                flows=self._flows,
                stands=lambda _name: (RUNNING, self._refused),  # refused messages count as dead
                named=lambda name: name if name == OUTBOX_NAME.name else None,
                awaited=lambda _name: hub.sending_tables(),
            )
        )

    def subscription(self, table: str) -> Subscription:
        return Subscription(
            OUTBOX_NAME,
            0,
            table,
            frozenset(),
            frozenset(),
            self._follow,
            in_order=False,
            sends=True,
            open_changes=OPEN_CHANGES,
        )

    def _follow(self, region: Region, state: DeliveryState) -> Follower:
        from columnar.flows.outbox import OutboxFollower, OutboxServices

        if self._services is None:
            self._services = OutboxServices(
                self._carry,
                self._hub.upkeep.is_intake_paused,
                self._hub.listener.step_follower,
                self._hub.upkeep.note_progress,
                self._count_refused,
                self._hub.figures,
            )
        return OutboxFollower(region, state, self._services)

    # --- services for followers ----------------------------------------------------------------------

    def _count_refused(self) -> None:
        self._refused += 1

    def _carry(
        self, region_id: int, target: bytes, batch: list[Outgoing], ended: Callable[[BaseException | None], None]
    ) -> None:
        self._hub.background.spawn(self._carry_batch(region_id, target, batch, ended))

    async def _carry_batch(
        self, region_id: int, target: bytes, batch: list[Outgoing], ended: Callable[[BaseException | None], None]
    ) -> None:
        fault: BaseException | None = None
        try:
            kind, name = target_of(target)
            if kind == TOPIC:
                records = [_record(one) for one in batch]
                await self._topics().append(name.decode(), producer_name(region_id), records)
            else:
                await self._queues().push(name, [queued_message(one.name, one.send) for one in batch])
            if len(self._sent) < SENT_PLACES:
                self._sent[target] = None  # before the change is done: a wait for it then knows the way
        except Exception as error:  # noqa: BLE001 - whatever it is, the batch goes again after a pause
            fault = error
        try:
            ended(fault)
        except Exception as error:  # noqa: BLE001 - the next opening of the region sends what is left
            FAULTS.met(LOOP, error)

    # --- status --------------------------------------------------------------------------------------

    def _flows(self) -> list[Flow]:
        """Return the one flow of all outboxes, to the queues and topics that have had messages of this process."""
        reads = tuple(map(Place, self._hub.sending_tables()))
        seen = tuple(Place(target.decode("latin-1")) for target in sorted(self._sent))
        return [Flow(OUTBOX, OUTBOX_NAME.name, reads, seen=seen)]


def _record(one: Outgoing) -> PushedRecord:
    """Return the record for a topic; a record without a key goes to the partition of its region."""
    send = one.send
    headers = [(name.decode(errors="replace"), value) for name, value in send.headers]
    headers.append(record_header(one.sequence, one.number))
    sequence = record_sequence(one.sequence, one.number)
    return PushedRecord(sequence, send.key or None, send.body, tuple(headers), one.stamp_ms)


def queued_message(name: bytes, send: Send) -> QueuedMessage:
    return QueuedMessage(send.body, name, send.headers, send.group, send.priority, send.delay_ms)
