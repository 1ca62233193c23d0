"""(pure) Retention: which of the oldest batches of a partition are deleted now.

The age of a batch counts from when it was appended, by the store's clock: a producer with a wrong clock neither keeps
records nor loses them.  The last batch is deleted by age alone, never for its size.

Knows nothing of rows and of how batches are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from columnar.model.topic import FOREVER, TopicSettings

RETENTION_BATCHES: Final = 500  # that one step looks at
RETENTION_BYTES: Final = 4 * 1024 * 1024


class StoredBatch(NamedTuple):
    offset: int
    size_bytes: int
    append_ms: int


def batches_to_delete(
    oldest: Sequence[StoredBatch], size_bytes: int, settings: TopicSettings, now_ms: int, last_offset: int
) -> int:
    """Return how many of the oldest batches are to be deleted; ``last_offset`` is not before the last batch."""
    count = 0
    for batch in oldest:
        is_old = settings.retention_ms != FOREVER and now_ms - batch.append_ms >= settings.retention_ms
        is_surplus = settings.retention_bytes != FOREVER and size_bytes > settings.retention_bytes
        if not is_old and (not is_surplus or batch.offset >= last_offset):
            break
        size_bytes -= batch.size_bytes
        count += 1
    return count


def is_due(settings: TopicSettings, size_bytes: int, first_append_ms: int, now_ms: int) -> bool:
    """Tell whether a look at the oldest batches may delete one; ``first_append_ms`` is of the oldest batch."""
    if settings.retention_bytes != FOREVER and size_bytes > settings.retention_bytes:
        return True
    return settings.retention_ms != FOREVER and now_ms - first_append_ms >= settings.retention_ms
