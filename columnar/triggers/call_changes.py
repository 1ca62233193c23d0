"""The changes of one call, read from the log: as a frame carries them, as many as it may have.

Knows nothing of worker slots and of the outcome of the call.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from columnar.errors import DamagedData
from columnar.flows.delivery_state import Delivery
from columnar.triggers.consumer import Consumer
from columnar.triggers.frames import BATCH_BYTES, CHANGE_BYTES, IS_BACKFILL, size_of

_TOO_LARGE: Final = (
    f"its change has {{}} bytes with its images, at most {CHANGE_BYTES} are sent to a function: name fewer columns, or "
    "leave out before"
)


class Changes(NamedTuple):
    found: list[Any]
    gone: list[Delivery]  # deliveries without a record: only after a repair by hand
    damaged: dict[int, str]  # by its place among the deliveries: why a change cannot be sent; then there is no call


def changes_of(consumer: Consumer, deliveries: list[Delivery]) -> Changes:
    """Read the changes; ``deliveries`` keeps those of ``found``.  ColumnarError: the region cannot be read now.

    Changes that would make the call too large are given back: they come with the next one.
    """
    found: list[Any] = []
    gone: list[Delivery] = []
    size_bytes = 0
    for at, delivery in enumerate(deliveries):
        try:
            change = consumer.change_of(delivery)
        except DamagedData as error:
            return Changes([], [], {at: f"its change cannot be read: {error.wire_message}"})
        if change is None:
            gone.append(delivery)
            continue
        change_bytes = size_of(change)
        if change_bytes > CHANGE_BYTES:
            return Changes([], [], {at: _TOO_LARGE.format(change_bytes)})
        found.append(change)
        if at + 1 == len(deliveries):
            break
        size_bytes += change_bytes
        if size_bytes >= BATCH_BYTES:
            consumer.requeue_deliveries(deliveries[at + 1 :], at_once=True)
            del deliveries[at + 1 :]
            break
    if gone:
        ended = {one.sequence for one in gone}
        deliveries[:] = [one for one in deliveries if one.sequence not in ended]
    return Changes(found, gone, {})


def deliveries_reading_row(consumer: Consumer, deliveries: list[Delivery], changes: list[Any]) -> list[Delivery]:
    """Filter: the deliveries whose call reads the row as it is now."""
    pairs = zip(deliveries, changes, strict=True)
    return [delivery for delivery, change in pairs if consumer.registration.row or change[IS_BACKFILL]]
