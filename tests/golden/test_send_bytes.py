"""The bytes of docs/formats/sends.md: what outboxes write at targets and keep in their cursor."""

from __future__ import annotations

from columnar.flows.outbox_state import REFUSED, OutboxState
from columnar.flows.send_bytes import producer_name
from columnar.model.send import Send
from columnar.regions.log.change_record import Sequence
from columnar.roles.outboxes import _record, queued_message
from tests.support.golden import hold_to

CHANGE = Sequence(7, 2, 41)
QUEUE, TOPIC = b"queue:thumbs", b"topic:edits"


def sends() -> tuple[Send, ...]:
    first = Send(QUEUE, b"", b"", b"g", 0, 0, b"body", ((b"h", b"x"),))
    second = Send(TOPIC, b"key", b"", b"", 0, 0, b"value", ((b"h", b"x"),))
    return first, second, Send(QUEUE, b"", b"own", b"", 0, 0, b"")


def test_send_bytes() -> None:
    state = OutboxState()
    state.take_sends(CHANGE, sends(), stamp_ms=1_764_000_000_000)
    (queue, topic) = (state.begin_batch(target, lambda _: None)[0] for target in (QUEUE, TOPIC))
    record = _record(topic[0])
    ((_, one_stored),) = state.end_batch(TOPIC).partly
    assert state.refuse_batch(QUEUE, "full") is None, "each goes alone now"
    (first,), _ = state.begin_batch(QUEUE, lambda _: None)
    assert state.refuse_batch(QUEUE, "full") is not None
    (refused,), _ = state.begin_batch(REFUSED, lambda _: None)
    own = queue[1]
    ((_, two_stored),) = state.end_batch(REFUSED).partly
    told = dict(refused.send.headers)
    hold_to(
        "sends.txt",
        {
            "state: the second one is stored": one_stored,
            "state: the second one, then the first one": two_stored,
            "name": queued_message(first.name, first.send).name.decode(),
            "name that the sender gave": queued_message(own.name, own.send).name.decode(),
            "producer": producer_name(9).decode(),
            "sequence": record.sequence,
            "header": " = ".join((record.headers[-1][0], (record.headers[-1][1] or b"").decode())),
            "name of a refused message": refused.name.decode(),
            "headers of a refused message": " ".join(f"{key.decode()}={value.decode()}" for key, value in told.items()),
        },
    )
    assert (record.key, record.value, record.timestamp_ms) == (b"key", b"value", 1_764_000_000_000)
    assert record.headers[0] == ("h", b"x")
    assert not OutboxState().take_sends(CHANGE, sends(), b"\x01\x00\x02"), "all are stored"
