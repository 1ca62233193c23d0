"""(pure) The origin of a message of a dead-letter queue: the queue in which it died, and its number there.

``queues.dead_letter_moves`` has given it the name and the headers.  So ``MessageId`` and ``SentTimestamp`` stay what
they were, as in SQS.

Knows nothing of queues.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from columnar.queues.dead_letter_moves import ATTEMPTS, ERROR, FROM, ID

_NAME: Final = re.compile(rb"dead-[0-9a-f]{32}-([0-9]{1,20})")
_QUEUE: Final = re.compile(rb"[A-Za-z0-9_.-]{1,200}")
_LARGEST: Final = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Origin:
    queue: bytes
    number: int  # the message's id there: its time in microseconds since 1970


def origin_of(name: bytes, headers: Mapping[bytes, bytes]) -> Origin | None:
    """Return the origin of a message with this name and these headers; None if it was pushed to its own queue."""
    found, queue = _NAME.fullmatch(name), headers.get(FROM, b"")
    if found is None or not _QUEUE.fullmatch(queue) or int(found[1]) > _LARGEST:
        return None
    return Origin(queue, int(found[1]))


def own_headers(headers: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """Return the headers with which a message that has an origin was pushed at first."""
    return {key: value for key, value in headers.items() if key not in (FROM, ID, ERROR, ATTEMPTS)}
