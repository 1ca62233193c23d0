"""Surplus versions of cells that are overwritten again and again go every so often, not only by the sweep.

So the history of a counter stays short.  The end of the last removal is remembered for each such
cell, so that its tombstones are not walked again.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from columnar.regions.read.family_view import is_alive
from columnar.regions.write.applied import Counted
from columnar.regions.write.column_draft import VERSIONS_SPACE, ColumnDraft
from columnar.storage.api import Batch, Store
from columnar.storage.layout import split_version_key, unpack, version_end, version_from, version_prefix

HOT_CELLS: Final = 4_096  # cells whose overwrites are counted
TRIM_AFTER: Final = 16  # overwrites of a counted cell between two removals of surplus versions


class HotCells:
    """The hot cells of one region; owned by the loop."""

    def __init__(self, store: Store) -> None:
        self._store = store
        # By cell: overwrites since the last removal, and where that ended.  The last used last.
        self._counted: OrderedDict[bytes, tuple[int, bytes | None]] = OrderedDict()

    def clear(self) -> None:
        """Versions were removed, or are kept, by other rules from now on."""
        self._counted.clear()

    def trim(self, batch: Batch, column: ColumnDraft, now_ms: int) -> Counted:
        """Count what the draft adds to the column's older versions; remove the surplus when it is time.

        ``written`` takes the new count once the store has the batch: versions that a refused batch removed are there.
        """
        name = version_prefix(column.view.number, column.key)
        known = self._counted.get(name)
        count, stop = known if known is not None else (0, None)
        count += len(column.pushed)
        if stop is not None:
            # A put with an old timestamp may come after an entry that was removed before.
            stop = max(stop, *(version_from(name, at) + b"\x00" for at in column.pushed))
        if count >= TRIM_AFTER:
            surplus, last_kept = self._surplus(column, name, stop or version_end(name), now_ms)
            for key in surplus:
                batch.delete(VERSIONS_SPACE, key)
            count, stop = 0, last_kept + b"\x00"
        return name, count, stop

    def written(self, counted: list[Counted]) -> None:
        """The batch that ``trim`` counted for is in the store."""
        for name, count, stop in counted:
            self._counted[name] = (count, stop)
            self._counted.move_to_end(name)
            if len(self._counted) > HOT_CELLS:
                self._counted.popitem(last=False)

    def _surplus(self, column: ColumnDraft, name: bytes, stop: bytes, now_ms: int) -> tuple[list[bytes], bytes]:
        """Keys of older versions that no reader sees once the draft is written, and the last one that stays."""
        cut = -1 if column.cut_at is None else column.cut_at
        stored = self._store.scan(VERSIONS_SPACE, name, stop)
        versions = {
            key: raw for key, raw in stored if (at := split_version_key(key)[1]) > cut and at not in column.removed
        }
        versions |= {version_from(name, at): raw for at, raw in column.pushed.items()}
        view, surplus, last_kept = column.view, [], name
        newest = column.newest
        kept = int(newest is not None and is_alive(unpack(newest), view, now_ms, 0))
        for key, raw in sorted(versions.items()):
            if kept < view.max_versions and is_alive(unpack(raw), view, now_ms, kept):
                kept, last_kept = kept + 1, key
            else:
                surplus.append(key)
        return surplus, last_kept
