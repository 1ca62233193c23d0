"""(pure) Sends: messages that go to a queue or a topic if and only if the change of their row is made.

    target := "queue:" NAME | "topic:" NAME

A send travels in the change record of its row (``regions.log.change_record``), and the region's outbox carries it out
(``flows.outbox``).  Knows nothing of the rules of queues and topics: ``thrift.sends`` checks a client's sends.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from columnar.errors import IllegalArgument, abbreviate

QUEUE: Final = b"queue"
TOPIC: Final = b"topic"
SEND_BYTES: Final = 64  # counted for a send beside its own bytes


class Send(NamedTuple):
    """A message that is sent if and only if its change is made."""

    target: bytes
    key: bytes  # of the record in a topic
    name: bytes  # of the message in a queue; empty: the change's sequence names it
    group: bytes
    delay_ms: int
    priority: int
    body: bytes
    headers: tuple[tuple[bytes, bytes], ...] = ()

    @property
    def size_bytes(self) -> int:
        size = SEND_BYTES + len(self.target) + len(self.key) + len(self.name) + len(self.group) + len(self.body)
        for key, value in self.headers:
            size += len(key) + len(value)
        return size


def target_of(target: bytes) -> tuple[bytes, bytes]:
    """Return kind and name of a target.  Raises IllegalArgument."""
    kind, colon, name = target.partition(b":")
    if not colon or kind not in (QUEUE, TOPIC):
        raise IllegalArgument(f"a send goes to queue:NAME or topic:NAME, not to '{abbreviate(target)}'")
    return kind, name
