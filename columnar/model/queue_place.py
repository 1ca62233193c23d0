"""(pure) The place of queues: all queues are rows of one table, and a queue is one group of its rows (ROW_GROUP)."""

from __future__ import annotations

import re
from typing import Final

from columnar.errors import IllegalArgument

QUEUES_TABLE: Final = "columnar:queues"
FAMILY: Final = b"q"
ROW_GROUP: Final = "until:\\x00"  # a queue's name has no byte 0
_NAME: Final = re.compile(rb"[A-Za-z0-9_.\-]{1,200}")


def first_row(queue: bytes) -> bytes:
    """Return the first row of the queue, by which its group of rows is named."""
    return queue + b"\x00"


def checked_queue(name: bytes | None) -> bytes:
    """Return the name of a queue.  Raises IllegalArgument."""
    if not name or not _NAME.fullmatch(name):
        raise IllegalArgument("a queue's name has 1 to 200 letters, digits and characters of . _ -")
    return name
