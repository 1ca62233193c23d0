"""The next state of one column of a row: its newest version, and the changes to its older versions.

The newest version is in the family's own space, the older ones in the space ``versions``.  This module upholds
invariants I1 to I3 of ``row_draft``.  No key is written before ``emit``.

Cost: the older versions are read only if an exact delete, a lowered bound or an expired newest version needs them.
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import islice
from typing import Final

from columnar.regions.read.family_view import FamilyView, is_alive, kept_versions, visible_value
from columnar.regions.write.applied import Counted
from columnar.storage.api import Batch, Store
from columnar.storage.layout import (
    HEADER_BYTES,
    MARKER,
    split_version_key,
    timestamp_of,
    unpack,
    version_end,
    version_from,
    version_key,
    version_prefix,
)

VERSIONS_SPACE: Final = "versions"
SINGLE_DELETES: Final = 64  # above it one range delete: fewer bytes, but slower later reads
_NONE: Final[frozenset[int]] = frozenset()


class Growth:
    """A cell that was appended to, until another operation replaces it."""

    __slots__ = ("entry", "raw", "result", "value")

    def __init__(self, raw: bytes, entry: int, result: int) -> None:
        self.raw = raw  # the cell after the first append; it stands for all appends until ``RowDraft._settle``
        self.value: bytearray | None = None  # after the second append and later ones
        self.entry = entry  # the append's index in ``entries`` and ``appended``
        self.result = result

    def begun_value(self) -> bytearray:
        """Return the value as a bytearray, which the caller extends."""
        if self.value is None:
            self.value = bytearray(self.raw[HEADER_BYTES:])
        return self.value


class ColumnDraft:
    """The next state of one column."""

    __slots__ = ("cut_at", "growth", "key", "newest", "original", "pushed", "removed", "view")

    def __init__(self, view: FamilyView, key: bytes, raw: bytes | None) -> None:
        self.view = view
        self.key = key
        self.original = raw
        self.newest = raw
        self.pushed: dict[int, bytes] = {}  # timestamp -> raw, to be added to the older versions
        self.cut_at: int | None = None  # older versions at or below it are removed
        self.removed = _NONE  # timestamps of older versions to remove
        self.growth: Growth | None = None

    def put(self, timestamp: int, raw: bytes, now_ms: int) -> None:
        newest = self.newest
        if newest is None:
            self.newest = raw
            return
        newest_at = timestamp_of(newest)
        if timestamp >= newest_at:
            if timestamp > newest_at and self.view.max_versions > 1 and newest[0] != MARKER:
                self.pushed[newest_at] = newest
            self.newest = raw
        elif self.view.max_versions > 1:
            self.pushed[timestamp] = raw
        elif newest[0] != MARKER and visible_value(newest, self.view, now_ms) is None:
            self.newest = raw  # the version that outranked it has expired

    def replace_newest(self, raw: bytes | None) -> None:
        """Replace the newest version by a cell of the same timestamp or of an older one."""
        self.newest = raw

    def begin_growth(self, growth: Growth) -> None:
        self.growth = growth

    def end_growth(self) -> Growth | None:
        growth, self.growth = self.growth, None
        return growth

    def delete(self, timestamp: int, marker: bytes | None) -> None:
        newest = self.newest
        self.pushed = {at: raw for at, raw in self.pushed.items() if at > timestamp}
        self.cut_at = timestamp if self.cut_at is None else max(self.cut_at, timestamp)
        if newest is None or timestamp_of(newest) <= timestamp:
            self.newest = marker

    def delete_version(self, timestamp: int | None, store: Store, now_ms: int) -> int | None:
        """Remove the version at ``timestamp``, or the newest visible version if ``timestamp`` is None.

        Returns the timestamp of the removed version, or None if no reader sees such a version.  The next version
        becomes the newest (I1).  Versions that the family does not keep are removed, too, or they would become visible.
         O(versions that the family keeps).
        """
        stored = self._versions(store)
        kept = {one.timestamp: stored[one.timestamp] for one in kept_versions(stored.values(), self.view, now_ms)}
        target = next(iter(kept), None) if timestamp is None else timestamp
        if target is None or kept.pop(target, None) is None:
            return None
        newest = next(iter(kept), None)
        self.newest = kept.pop(newest) if newest is not None else None
        self.pushed = {at: raw for at, raw in self.pushed.items() if at in kept}
        self.removed = self.removed.union(stored).difference(kept)
        return target

    def _versions(self, store: Store) -> dict[int, bytes]:
        """Return every version as it would be after ``emit``, newest first."""
        if self.newest is None:
            return {}
        versions = dict(self.pushed)
        if self.view.max_versions > 1 and self.original is not None:
            cut, prefix = -1 if self.cut_at is None else self.cut_at, version_prefix(self.view.number, self.key)
            for key, raw in store.scan(VERSIONS_SPACE, prefix, version_end(prefix)):
                at = split_version_key(key)[1]
                if at > cut and at not in self.removed:
                    versions.setdefault(at, raw)
        versions[timestamp_of(self.newest)] = self.newest
        return dict(sorted(versions.items(), reverse=True))

    def seen(self, store: Store, now_ms: int) -> tuple[bytes, int] | None:
        """Return value and timestamp of the version that a reader would see after ``emit``, or None."""
        if self.newest is None:
            return None
        value = visible_value(self.newest, self.view, now_ms)
        if value is not None:
            return value, timestamp_of(self.newest)
        if self.view.max_versions > 1:  # the newest version has expired, but an older one perhaps not
            for stored in kept_versions(self._versions(store).values(), self.view, now_ms):
                return stored.value, stored.timestamp
        return None

    def seen_before(self, store: Store, now_ms: int) -> tuple[bytes, int] | None:
        """Return value and timestamp of the version that a reader sees in the store now, or None."""
        if self.original is self.newest and not self.pushed and not self.removed and self.cut_at is None:
            return self.seen(store, now_ms)
        return ColumnDraft(self.view, self.key, self.original).seen(store, now_ms)

    def emit(self, batch: Batch, store: Store) -> None:
        if self.cut_at is not None and self.view.max_versions > 1 and self.original is not None:
            self._emit_cut(batch, store, self.cut_at)
        for timestamp in self.removed:
            batch.delete(VERSIONS_SPACE, version_key(self.view.number, self.key, timestamp))
        for timestamp, raw in self.pushed.items():
            batch.put(VERSIONS_SPACE, version_key(self.view.number, self.key, timestamp), raw)
        if self.newest is self.original:
            return
        if self.newest is None:
            batch.delete(self.view.space, self.key)
        else:
            batch.put(self.view.space, self.key, self.newest)

    def _emit_cut(self, batch: Batch, store: Store, timestamp: int) -> None:
        prefix = version_prefix(self.view.number, self.key)
        first, last = version_from(prefix, timestamp), version_end(prefix)
        doomed = [key for key, _ in islice(store.scan(VERSIONS_SPACE, first, last), SINGLE_DELETES + 1)]
        if len(doomed) > SINGLE_DELETES:
            batch.delete_range(VERSIONS_SPACE, first, last)
        else:
            for key in doomed:
                batch.delete(VERSIONS_SPACE, key)


HOT_CELLS: Final = 4_096  # cells whose overwrites are counted
TRIM_AFTER: Final = 16  # overwrites of a counted cell between two removals of surplus versions


class HotCells:
    """The hot cells of one region: after TRIM_AFTER overwrites their surplus versions are removed, not only by the
    sweep.

    So the history of a counter stays short.  The end of the last removal is remembered for each hot cell, so that its
    tombstones are not walked again.

    Owned by the loop.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        # By cell: overwrites since the last removal, and the removal's end.  The last used cell comes last.
        self._counted: OrderedDict[bytes, tuple[int, bytes | None]] = OrderedDict()

    def clear(self) -> None:
        """Forget all counts: versions were removed without a draft, or other rules keep them from now on."""
        self._counted.clear()

    def trim(self, batch: Batch, column: ColumnDraft, now_ms: int) -> Counted:
        """Count the older versions that the draft adds to the column, and remove the surplus after TRIM_AFTER of them.

        Pass the result to ``written`` once the store has the batch: a refused batch has removed nothing.
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
        """Note that the batch that ``trim`` counted for is in the store."""
        for name, count, stop in counted:
            self._counted[name] = (count, stop)
            self._counted.move_to_end(name)
            if len(self._counted) > HOT_CELLS:
                self._counted.popitem(last=False)

    def _surplus(self, column: ColumnDraft, name: bytes, stop: bytes, now_ms: int) -> tuple[list[bytes], bytes]:
        """Return the keys of older versions that no reader sees after the draft, and the last key that stays."""
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
