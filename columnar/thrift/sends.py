"""Checks of the messages that a client's change of a row sends.  Loaded when a call has one.

All that can be known is refused here, before the row is changed: what the outbox cannot deliver goes to the queue of
refused messages instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from columnar.errors import IllegalArgument, RequestTooBig
from columnar.limits import SENDS, SENDS_BYTES
from columnar.model.mutation import Operation, RowMutation
from columnar.model.queue_place import QUEUES_TABLE, checked_queue
from columnar.model.schema import Table
from columnar.model.send import TOPIC, Send, target_of
from columnar.model.topic import TOPIC_BATCH_BYTES, TOPICS_TABLE, checked_name
from columnar.operations.access import TableAccess
from columnar.queues import keys
from columnar.queues.keys import Message

RECORD_BYTES: Final = TOPIC_BATCH_BYTES - 16 * 1024  # what a batch adds to it needs less
LONGEST_KEY: Final = 32 * 1024  # bytes of a record's key
_QUEUES: Final = QUEUES_TABLE.encode()
_TOPICS: Final = TOPICS_TABLE.encode()


def sends_from_wire(table: Table, operations: Sequence[Operation], sent: Sequence[Any]) -> tuple[Send, ...]:
    """Return the sends of a row's change; each was a RowOperation of the kind SEND."""
    if not table.takes_sends:
        raise IllegalArgument(
            f"table {table.name} takes no sends: set SENDS first, for example with "
            f"columnar alter {table.name} --set SENDS=true"
        )
    if not operations:
        raise IllegalArgument("a send goes with a change of its row: add a put, a delete or another operation")
    if len(sent) > SENDS:
        raise RequestTooBig(f"{len(sent)} sends of one row as one step, at most {SENDS} are allowed")
    sends = tuple([_send(one) for one in sent])
    size = sum([one.size_bytes for one in sends])
    if size > SENDS_BYTES:
        raise RequestTooBig(
            f"the sends of one row have {size} bytes, at most {SENDS_BYTES} go with one step; send references"
        )
    return sends


def _send(sent: Any) -> Send:
    if sent is None:
        raise IllegalArgument("a SEND needs its message: the field send")
    kind, name = target_of(sent.target or b"")
    headers = tuple(sorted((key or b"", value or b"") for key, value in (sent.headers or {}).items()))
    message = Message(sent.name or b"", headers, sent.body or b"")
    group, priority, delay_ms = sent.group or b"", sent.priority or 0, sent.delayMs or 0
    if kind == TOPIC:
        return _record(sent, name, headers)
    checked_queue(name)
    keys.checked_message(message, group, priority, delay_ms)
    if sent.key:
        raise IllegalArgument("a message of a queue has no key; a topic's record has one")
    return Send(sent.target, b"", message.name, group, delay_ms, priority, message.body, headers)


def _record(sent: Any, name: bytes, headers: tuple[tuple[bytes, bytes], ...]) -> Send:
    """Return the send of a record for a topic."""
    checked_name(name.decode(errors="replace"))
    if sent.name or sent.group or sent.priority or sent.delayMs:
        raise IllegalArgument("a record of a topic has no name, group, priority or delay; it has a key and headers")
    try:
        for header, _ in headers:
            header.decode()
    except UnicodeDecodeError:
        raise IllegalArgument(f"header {header!r}: the names of a record's headers are text in UTF-8") from None
    send = Send(sent.target, sent.key or b"", b"", b"", 0, 0, sent.body or b"", headers)
    if send.size_bytes > RECORD_BYTES or len(send.key) > LONGEST_KEY or len(headers) > keys.HEADERS:
        raise RequestTooBig(
            f"a record of {send.size_bytes} bytes: key, headers and value have at most {RECORD_BYTES} bytes, a key at "
            f"most {LONGEST_KEY}, and there are at most {keys.HEADERS} headers"
        )
    return send


def check_places(access: TableAccess, mutations: Iterable[RowMutation]) -> None:
    """Raise TableNotFound if a mutation sends messages and there are no queues yet, which refused ones need, too.

    A client makes their table then, and tries again.  Raises IllegalArgument for a topic in a store without topics.
    """
    for mutation in mutations:
        for send in mutation.sends:
            access.table(_QUEUES)
            if target_of(send.target)[0] == TOPIC and access.find(_TOPICS) is None:
                raise IllegalArgument(
                    f"there is no topic {send.target.partition(b':')[2].decode('latin-1')}, nor any other; "
                    "columnar topic create NAME --partitions N makes one"
                )
