"""Merge of two neighbours: a checkpoint of the larger, into which the smaller is copied while both serve.

``meta`` and the change logs of both regions are combined as follows:

    log        records of both; sequences carry the origin in which they were given, so none clash
    cursor/    everything up to the new region's first sequence is read; undelivered changes of either stay open
    future, stamp    the higher
    time/      places before which both logs are as old (``log_retention.merged``), and the merge
    trimmed    the first of these places: no record after it that was written since its time was removed
    backfill/  both are at their end (``merge_obstacle``)
"""

from __future__ import annotations

from columnar.errors import RegionTooBusy
from columnar.model.region_info import RegionInfo
from columnar.regions.log import change_record, log_retention
from columnar.regions.log.change_log import CURSOR
from columnar.regions.log.log_retention import META_SPACE
from columnar.regions.replace.region_copier import RegionCopier
from columnar.regions.replace.region_replacement import QUIESCE_TIMEOUT_S, Replacement
from columnar.storage.api import Store


class Merging(Replacement):
    """Replacement of two neighbours by one region; see ``Replacement``."""

    def make_copier(self) -> RegionCopier:
        small, base = sorted(self.regions, key=lambda region: region.store.size_bytes())
        return RegionCopier(self.server, base, (small,), self.change.fresh, self.check_open)

    async def prepare(self) -> None:
        await self._check_triggers(QUIESCE_TIMEOUT_S)
        await super().prepare()

    async def quiesce_followers(self) -> None:
        await self._check_triggers(QUIESCE_TIMEOUT_S)  # one may have been added meanwhile; none is from now on
        await super().quiesce_followers()
        await self._check_triggers(0.0)

    async def _check_triggers(self, timeout_s: float) -> None:
        for region in self.regions:
            obstacle = await self.server.listener.merge_obstacle(region, timeout_s)
            if obstacle:
                raise RegionTooBusy(f"region {region.info.encoded} cannot be merged now: {obstacle}")

    def finish(self, info: RegionInfo, store: Store) -> None:
        read_to = change_record.Sequence(info.region_id, 0, 0)
        batch = store.batch()
        for prefix in (CURSOR, log_retention.TIME):
            for key, _ in store.scan(META_SPACE, prefix, prefix[:-1] + b"0"):
                batch.delete(META_SPACE, key)
        for name, state in self.server.listener.merged_cursors(self.regions, read_to).items():
            batch.put(META_SPACE, CURSOR + name.encode(), state)
        one, other = self.regions
        marks, other_marks = one.highest_marks(), other.highest_marks()
        for mark in marks | other_marks:
            batch.put(META_SPACE, mark, max(marks.get(mark, 0), other_marks.get(mark, 0)).to_bytes(8, "big"))
        if one.table.change_log_s is not None:
            places = log_retention.merged([(one.log.times(), one.log.before), (other.log.times(), other.log.before)])
            for at_ms, place in (*places, (one.now_ms, read_to)):
                batch.put(META_SPACE, *log_retention.mark(at_ms, place))
            first = places[0][1] if places else read_to
            batch.put(META_SPACE, log_retention.TRIMMED, change_record.pack_key(first))
        store.write(batch)
