"""Outcome of one slice of a call, as a "did" frame carries it (``frames``), and small steps on the changes of a call.

Knows nothing of effects and of workers' ends: ``outcomes``.
"""

from __future__ import annotations

import logging
from typing import Any, Final

from columnar.errors import ColumnarError
from columnar.flows.delivery_state import Delivery
from columnar.limits import LONGEST_LATER_S
from columnar.regions.log.change_record import ChangeRecord
from columnar.triggers.consumer import Consumer
from columnar.triggers.dead_letters import DeadLetter
from columnar.triggers.worker_slot import Call

_GAVE: Final = "it has given to totals, or may have: a retry is a change of its own, and adds its tallies again\n"
_log = logging.getLogger(__name__)


class Outcome:
    __slots__ = ("call", "checkpoint", "error", "output", "what")

    def __init__(self, call: Call, what: str, error: Any, output: str, checkpoint: list[Any] | None) -> None:
        """``error``: the traceback's text, seconds, or texts by place in the batch; ``checkpoint``: state and part."""
        self.call = call
        self.what = what
        self.error = error
        self.output = output
        self.checkpoint = checkpoint


def change_of(consumer: Consumer, delivery: Delivery) -> ChangeRecord | None:
    """The change that a letter keeps; None: its record cannot be read, or a person removed it."""
    try:
        return consumer.region.log.record_at(delivery.sequence)
    except ColumnarError as error:
        _log.warning("a dead letter of %s lacks its change: %s", consumer.name, error.text)
        return None


def letter_of(consumer: Consumer, delivery: Delivery, error: str, output: str, now_ms: int) -> DeadLetter:
    """The letter of a change whose last attempt is used up."""
    registration = consumer.registration
    return DeadLetter(
        registration.name,
        registration.table,
        delivery.row,
        delivery.sequence.token,
        delivery.attempt,
        _GAVE + error if consumer.state.has_given(delivery.sequence) else error,
        output,
        now_ms,
        change_of(consumer, delivery),
    )


def is_error(what: str, error: Any) -> bool:
    if what == "named":
        return isinstance(error, list) and all(
            isinstance(one, list) and len(one) == 2 and isinstance(one[0], int) and isinstance(one[1], str)
            for one in error
        )
    if what == "later":
        return isinstance(error, float) and 0 <= error <= LONGEST_LATER_S
    return error is None or isinstance(error, str)


def is_state(checkpoint: Any) -> bool:
    if checkpoint is None:
        return True
    is_pair = isinstance(checkpoint, list) and len(checkpoint) == 2
    return is_pair and isinstance(checkpoint[0], bytes) and isinstance(checkpoint[1], int)


def suspect(call: Call) -> None:
    call.consumer.suspects.update([one.sequence for one in call.deliveries])


def acquit(consumer: Consumer, deliveries: list[Delivery]) -> None:
    """Clear the suspicion of deliveries that ran while their worker survived."""
    if consumer.suspects:
        consumer.suspects.difference_update([one.sequence for one in deliveries])


def last(error: str) -> str:
    return error.strip().rpartition("\n")[2]
