"""(pure) How far a feed has the rows of a region that were there before it: the snapshot, in pieces.

A piece is a run of rows, read as of the log's last sequence then, ``fence``.  Rows from ``done`` on are still to be
read, and no change of theirs is wanted.  Changes of the rows of the last piece up to its fence are in what was read.

The next piece is read when the log was read up to the last one's fence, which is forgotten then.  It does not wait for
the end of the log, which a table that is always written never has; changes do not wait for all pieces either.

    kept := msgpack [1, done, start, fence]      in the follower's cursor (``delivery_state``)
    done, start: rows; done is nil after the last row.  fence := nil | [origin, epoch, n]

Knows nothing of regions and of the reading of rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from columnar.errors import DamagedData
from columnar.regions.log.change_record import Sequence

_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class FeedProgress:
    done: bytes | None = None  # the first row that is still to be read; None: all are read
    start: bytes = b""  # of the last piece, which ends at ``done``
    fence: Sequence | None = None  # of the last piece

    def wants(self, row: bytes) -> bool:
        """Return whether changes of the row are wanted."""
        return self.done is None or row < self.done

    def has(self, row: bytes, sequence: Sequence) -> bool:
        """Return whether the last piece has the row as of this change or a later one."""
        return self.fence is not None and row >= self.start and self.wants(row) and sequence <= self.fence

    def may_continue(self, read_to: Sequence | None) -> bool:
        """Return whether there is a next piece, and no change after ``read_to`` is left out any more."""
        return self.done is not None and self._is_fence_read(read_to)

    def has_all(self, read_to: Sequence | None) -> bool:
        """Return whether all rows were read, and no change up to ``read_to`` is left out any more."""
        return self.done is None and self._is_fence_read(read_to)

    def _is_fence_read(self, read_to: Sequence | None) -> bool:
        return self.fence is None or (read_to is not None and read_to >= self.fence)


def pack(progress: FeedProgress) -> bytes:
    import msgpack  # as in ``delivery_state``

    fence = None if progress.fence is None else list(progress.fence)
    packed: bytes = msgpack.packb([_VERSION, progress.done, progress.start, fence])
    return packed


def unpack(data: bytes) -> FeedProgress:
    """Return the progress.  Raises DamagedData."""
    import msgpack

    try:
        version, done, start, fence = msgpack.unpackb(data)
        if version != _VERSION:
            raise DamagedData(f"progress of a feed of version {version}; this program knows {_VERSION}: upgrade")
        return FeedProgress(done, bytes(start), None if fence is None else Sequence(*fence))
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise DamagedData(f"progress of a feed: {error}") from error
