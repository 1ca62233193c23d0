"""Splits and merges, on request and by size: one at a time, each committed by one write of the catalogue.

    decide -> announce -> BeginChange -> [lock] FinishChange, which requests COMMIT [unlock] -> remove, reclaim space

Invariants:
    I1. The write of the catalogue is the commit: a crash before it leaves the old regions, a crash after it the new
        regions.  The catalogue lists unused regions as dropped: new regions from before their folders are made until
        the commit, old regions from the commit on.  The next start removes the folders of dropped regions.  A folder
        that the catalogue does not name is never touched.
    I2. A failure before the commit changes nothing for clients, and is reported.
    I3. If it is unknown whether the commit is on disk, neither old nor new regions are served until the
        catalogue is rewritten without the commit (``catalogue_repaired``), or a restart has read the catalogue.
        Otherwise writes made meanwhile could be lost.
    I4. Only the change that is being finished is committed, under the lock of the catalogue.

The master decides.  The owner of the regions carries the change out (``model.region_messages``), and requests the
commit.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol

from columnar.errors import (
    ColumnarError,
    IllegalArgument,
    NotServingRegion,
    OutcomeUnknown,
    TableNotEnabled,
    TableNotFound,
    abbreviate,
)
from columnar.master.catalogue import Catalogue
from columnar.master.replacements import (
    Plan,
    check_merge,
    check_split,
    due,
    merge_plan,
    split_between_groups,
    split_plan,
)
from columnar.master.schema_changes import SchemaChanges, check_regions
from columnar.model import region_messages as messages
from columnar.model.owner import Owner
from columnar.model.region_info import RegionInfo
from columnar.model.region_messages import Message, Peer, RegionChange
from columnar.runtime.background import Background
from columnar.runtime.faults import FAULTS, surviving
from columnar.storage.region_folders import RegionFolders

_log = logging.getLogger(__name__)

LOOP: Final = "splits by size"
SPLIT_CHECK_S: Final = 30.0  # between two checks for regions that have grown too large


class Owners(Protocol):
    """The rows of owners in a cluster; ``OneOwner`` stands for a process that owns all regions."""

    def epoch_of(self, region: RegionInfo) -> int:
        """Return the epoch at which the region's owner carries out a change of it."""

    def successor_owner(self, region: RegionInfo) -> Owner | None:
        """Return the owner that the commit writes for each successor of ``region``; None in a standalone."""

    def committed(self, change: RegionChange) -> None:
        """Note that the catalogue has the change."""


class OneOwner:
    """A process that owns all regions, at the catalogue's epoch."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue

    def epoch_of(self, _region: RegionInfo) -> int:
        return self._catalogue.ownership.epoch

    def successor_owner(self, _region: RegionInfo) -> Owner | None:
        return None

    def committed(self, change: RegionChange) -> None:
        pass


class RegionChanges:
    """Decides and commits splits and merges.  Owned by the loop."""

    def __init__(self, catalogue: Catalogue, changes: SchemaChanges, owner: Peer, folders: RegionFolders) -> None:
        self.owners: Owners = OneOwner(catalogue)
        self._catalogue = catalogue
        self._changes = changes
        self._owner = owner
        self._folders = folders
        self._one_at_a_time = asyncio.Lock()
        self._committing = asyncio.Lock()  # held while a commit is written
        self._finishing: RegionChange | None = None  # the only change that may commit; set under the catalogue's lock
        self._tried: dict[int, int] = {}  # region id -> its size when it could not be split
        self._unsure: list[RegionChange] = []  # changes of unknown outcome, until the catalogue is repaired
        self._stopping = False
        self._split_check_task: asyncio.Task[None] | None = None
        self._cleaning = Background(LOOP)
        self._clean_one = asyncio.Lock()
        self._split_check_due = asyncio.Event()
        self.at: Callable[[str], None] = lambda _step: None  # called after each step: tests crash there

    # --- on request --------------------------------------------------------------------------------

    async def split(self, parent: RegionInfo, row: bytes | None) -> list[RegionInfo]:
        """Split at ``row``, or in the middle if it is None.  Return the new regions, which already serve.

        In a table with ROW_GROUP the split is made before the group of ``row``.
        """
        async with self._one_at_a_time:
            self._check(parent)
            groups = self._catalogue.tables[parent.table].schema.row_groups
            check_regions(self._catalogue, parent.table, 1)
            if row is not None:
                check_split(parent, row)
            at = row if row is not None else await self._owner.request_peer(messages.MiddleRow(parent))
            if at is None:
                few = "two rows" if groups is None else f"two groups of rows (ROW_GROUP={groups})"
                raise IllegalArgument(f"region {parent.encoded} has fewer than {few} and cannot be split")
            plan = split_plan(parent, split_between_groups(parent, at, groups), self._catalogue.next_ids(2))
            pause_s = await self._carry_out(plan)
        _log.info("region %s of %s is split; requests waited %.0f ms", parent.encoded, parent.table, 1e3 * pause_s)
        self._clean_soon(plan.fresh)
        return list(plan.fresh)

    async def merge(self, one: RegionInfo, other: RegionInfo) -> RegionInfo:
        """Merge two neighbours, given in any order.  Return the new region, which already serves."""
        async with self._one_at_a_time:
            check_merge(one, other)
            plan = merge_plan(one, other, *self._catalogue.next_ids(1))
            for info in plan.gone:
                self._check(info)
            pause_s = await self._carry_out(plan)
        _log.info("two regions of %s are merged; requests waited %.0f ms", one.table, 1e3 * pause_s)
        return plan.fresh[0]

    def _check(self, info: RegionInfo) -> None:
        entry = self._catalogue.tables.get(info.table)
        if self._stopping:
            raise NotServingRegion("the server is stopping; try again")
        if entry is None:
            raise TableNotFound(info.table)
        if info not in entry.regions:
            raise NotServingRegion(f"region {info.encoded} was split or merged meanwhile; ask for the regions again")
        if not entry.schema.may_split:
            raise IllegalArgument(f"{info.table} is a table of the system; its one region stays as it is")
        if not entry.enabled:
            raise TableNotEnabled(info.table)

    async def _carry_out(self, plan: Plan) -> float:
        """Carry out the plan; return how long requests waited, in seconds."""
        change = RegionChange(plan.gone, plan.fresh, max(self.owners.epoch_of(info) for info in plan.gone))
        await self._catalogue.announce(plan.fresh)
        try:
            await self._owner.request_peer(messages.BeginChange(change))
            self.at("prepared")
            pause_s = await self._finish(change)
        except BaseException:
            if change not in self._unsure and not self._is_committed(change):
                await self._owner.request_peer(messages.CallOffChange(change))
                await self._forget(plan.fresh)
            raise
        await self._remove(plan.gone)
        return pause_s

    async def _finish(self, change: RegionChange) -> float:
        async with self._changes.lock:
            for info in change.gone:
                self._check(info)
            more = len(change.fresh) - len(change.gone)
            check_regions(self._catalogue, change.fresh[0].table, more)
            self._check_groups(change)
            self._finishing = change
            try:
                return await self._owner.request_peer(messages.FinishChange(change))
            finally:
                self._finishing = None
                async with self._committing:  # if the owner died after its request, the commit decides, not its death
                    pass

    def _check_groups(self, change: RegionChange) -> None:
        """Raise NotServingRegion if the table got groups after the change was planned, and it would cut one."""
        groups = self._catalogue.tables[change.fresh[0].table].schema.row_groups
        cut = groups.cut_by(info.start for info in change.fresh) if groups is not None else None
        if cut is not None:
            raise NotServingRegion(f"row {abbreviate(cut)} is within a group of rows by now (ROW_GROUP); try again")

    async def request_peer(self, message: Message[Any]) -> Any:
        """Commit the change that an owner requests to be committed."""
        assert isinstance(message, messages.Commit), "owners ask nothing else"
        await self._commit(message.change)

    async def _commit(self, change: RegionChange) -> None:
        async with self._committing:
            if change != self._finishing:
                raise NotServingRegion("the split or merge was called off meanwhile")
            of = self.owners.successor_owner(change.gone[0])
            try:
                await self._catalogue.replace(list(change.gone), list(change.fresh), of)
            except (OutcomeUnknown, asyncio.CancelledError):
                self._unsure.append(change)
                raise
            self.owners.committed(change)
        self.at("committed")

    def _is_committed(self, change: RegionChange) -> bool:
        entry = self._catalogue.tables.get(change.fresh[0].table)
        return entry is not None and change.fresh[0] in entry.regions

    async def catalogue_repaired(self) -> None:
        """Settle changes of unknown outcome after the catalogue was rewritten without them: old regions serve again."""
        unsure, self._unsure = self._unsure, []
        for change in unsure:
            await self._owner.request_peer(messages.SettleChange(change))
            try:
                await self._destroy(change.fresh)
            except (OSError, ColumnarError) as error:
                _log.warning("folders of regions that never came to be are removed at the next start: %s", error)

    async def _destroy(self, infos: Sequence[RegionInfo]) -> None:
        for info in infos:
            await asyncio.to_thread(self._folders.destroy, info.encoded)  # files may be large

    async def _remove(self, gone: Sequence[RegionInfo]) -> None:
        """Remove the old folders.  If that fails, the next start does it, because the catalogue remembers them."""
        try:
            await self._destroy(gone)
            self.at("removed")
            await self._catalogue.forget_dropped(list(gone))
            self.at("forgotten")
        except (OSError, ColumnarError) as error:
            _log.warning("folders of split or merged regions are removed at the next start: %s", error)

    async def _forget(self, infos: Sequence[RegionInfo]) -> None:
        try:
            await self._destroy(infos)
            await self._catalogue.forget_dropped(list(infos))
        except (OSError, ColumnarError) as error:
            _log.warning("what was made for regions that never came to be is removed at the next start: %s", error)

    # --- afterwards --------------------------------------------------------------------------------

    def _clean_soon(self, fresh: Sequence[RegionInfo]) -> None:
        for info in fresh:
            self._cleaning.spawn(self._clean(info)).add_done_callback(self._cleaned)

    def _cleaned(self, _task: asyncio.Task[None]) -> None:
        if not self._cleaning:
            self._split_check_due.set()  # half of a far too large region may still be too large

    async def _clean(self, info: RegionInfo) -> None:
        async with self._clean_one:
            entry = self._catalogue.tables.get(info.table)
            if self._stopping or entry is None or not entry.enabled or info not in entry.regions:
                return
            try:
                await self._owner.request_peer(messages.ReclaimSpace(info))
            except ColumnarError as error:  # the engine reclaims the space by itself, later
                _log.info("region %s is not cleaned up now: %s", info.encoded, error.text)
            except Exception as fault:  # noqa: BLE001 - as above
                FAULTS.met(LOOP, fault)

    # --- by size -----------------------------------------------------------------------------------

    def start(self) -> None:
        self._split_check_task = asyncio.ensure_future(self._run_split_checks())

    async def _run_split_checks(self) -> None:
        while not self._stopping:  # ``wait_for`` may pass over the cancellation
            with suppress(TimeoutError):
                await asyncio.wait_for(self._split_check_due.wait(), SPLIT_CHECK_S)
            self._split_check_due.clear()
            with surviving(LOOP):
                await self._split_the_large()

    async def _split_the_large(self) -> None:
        try:
            while await self.split_the_largest():  # noqa: ASYNC110 - each is a split
                await asyncio.sleep(0)
        except (OSError, ColumnarError) as error:  # of an owner, or the disk: the next check may succeed
            _log.warning("regions that have grown too large are looked for again later: %s", error)
        except Exception as fault:  # noqa: BLE001 - no region would be split by its size any more
            FAULTS.met(LOOP, fault)

    async def split_the_largest(self) -> bool:
        """Split the region that is furthest over its limit.  Returns False if no region is due."""
        if self._cleaning or self._stopping:
            return False  # sizes are too large until the space of rows outside the regions' ranges is reclaimed
        loads = await self._owner.request_peer(messages.Loads())
        ids = {load.info.region_id for load in loads}
        self._tried = {region_id: size for region_id, size in self._tried.items() if region_id in ids}
        info = due(loads, self._tried, self._folders.free_bytes())
        if info is None:
            return False
        try:
            await self.split(info, None)
        except ColumnarError as error:
            self._tried[info.region_id] = next(load.size_bytes for load in loads if load.info == info)
            level = logging.INFO if self._is_one_group(info, error) else logging.WARNING
            _log.log(level, "region %s of %s is too large, but: %s", info.encoded, info.table, error.text)
        return True

    def _is_one_group(self, info: RegionInfo, error: ColumnarError) -> bool:
        """Tell whether the region is one group of rows, which whoever set ROW_GROUP wanted to stay together."""
        entry = self._catalogue.tables.get(info.table)
        return entry is not None and entry.schema.row_groups is not None and isinstance(error, IllegalArgument)

    async def close(self) -> None:
        """Begin no more changes; wait until the changes under way are finished or called off."""
        self._stopping = True
        async with self._one_at_a_time:  # no change is cancelled between its commit and its end
            self._cleaning.close()
            if self._split_check_task is not None:
                self._split_check_task.cancel()
        await self._cleaning.ended()
        if self._split_check_task is not None:
            await asyncio.wait([self._split_check_task])
