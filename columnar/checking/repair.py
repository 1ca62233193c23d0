"""Repairs that need no guessing, on a data folder that no process serves.

    a folder that nobody names       is moved to lost+found, never removed
    generations of a folder          the newest one becomes the region's only one (``shell.checking``, before the check)
    a hole in a table                gets an empty region
    damaged files of a region        a new region gets the readable rows; the old folder goes to lost+found
    a region with a missing folder   gets an empty folder
    logs of dead servers             are replayed into their regions; what a damaged log lost is said (``log_repair``)
    regions that overlap, a damaged catalogue, a value that does not decode: left as they are, with advice

Each step is one write of the catalogue.  A crash leaves either the old state or a folder that the catalogue does not
name, which the next repair moves aside.

Blocks; runs a loop of its own for the catalogue's writes.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from columnar.backup.region_reader import read_rows
from columnar.checking.findings import Severity
from columnar.checking.log_repair import ServerLogs
from columnar.checking.salvage import salvage
from columnar.checking.store_check import Damaged, Hole, StoreCheck, faults_of, folders_nobody_names, newest_ms
from columnar.clock import StoreClock, system_ms
from columnar.errors import ColumnarError
from columnar.master.catalogue import META_REGION_ID, META_SCHEMA, Catalogue, strays
from columnar.model.mutation import RowMutation
from columnar.model.region_info import RegionInfo
from columnar.regions.life.opening import opened
from columnar.regions.log.lost_changes import Timeline, begin_timeline
from columnar.regions.region import Region, spaces_of
from columnar.regions.spaces import options_of_spaces
from columnar.storage.api import Engine
from columnar.storage.commit import Committer
from columnar.storage.data_folder import LOST_AND_FOUND, META, REGIONS
from columnar.storage.dead_logs import DeadLogs
from columnar.storage.durable_files import sync_folder
from columnar.storage.ownership import Ownership
from columnar.storage.region_folders import RegionFolders


@dataclass(slots=True)
class Repaired:
    done: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)  # faults that a person must handle


def repair(
    engine: Engine, data: str, check: StoreCheck, catalogue: Ownership, logs: DeadLogs, result: Repaired
) -> Repaired:
    """Repair the folder on which ``check`` has run; the caller holds its lock, and opens ``catalogue``.

    ``logs`` has the server logs from which stores of ``engine`` get the batches that they lack.  ``result`` has the
    repairs made before, and gets the further ones.
    """
    if check.catalogue is None:
        result.left += [finding.text for finding in check.report.findings if finding.severity is Severity.ERROR]
        return result
    asyncio.run(_Repair(engine, data, catalogue, logs, result).run(check.damaged))
    return result


class _Repair:
    def __init__(self, engine: Engine, data: str, ownership: Ownership, logs: DeadLogs, result: Repaired) -> None:
        self._engine = engine
        self._data = data
        self._dead_logs = logs
        self._ownership = ownership
        self._regions = os.path.join(data, REGIONS)
        self._folders = RegionFolders(self._regions, engine)
        self._aside = os.path.join(data, LOST_AND_FOUND)
        self._result = result

    async def run(self, damaged: list[Damaged]) -> None:
        """Repair the folder, with the catalogue opened as the server opens it."""
        path = self._folders.path(META)
        _, rows = strays(read_rows(self._engine, path, META_SCHEMA))
        loop = asyncio.get_running_loop()
        committer = Committer(loop)
        clock = StoreClock(system_ms)
        clock.observe(newest_ms(self._engine, path, META_SCHEMA))  # else a change would lose
        info = RegionInfo(META_SCHEMA.name, META_REGION_ID)
        meta = opened(self._engine, path, info, META_SCHEMA, committer, clock, self._ownership)
        try:
            self._catalogue = Catalogue(rows, _writer(meta))
            self._logs = ServerLogs(self._engine, self._data, self._catalogue, self._dead_logs)
            self._logs.read()
            self._bring_in_logs({one.info for one in damaged})
            for one in damaged:
                if one.lost:
                    self._empty(one)
                else:
                    await self._salvage(one)
            await self._logs.end(self._result.done.append, self._result.left.append)
            await self._fill_holes()
        finally:
            while not meta.syncs.is_quiet:  # noqa: ASYNC110 - the committer's own last step
                await asyncio.sleep(0)
            meta.close()
            committer.close()
        self._move_aside()

    def _bring_in_logs(self, damaged: set[RegionInfo]) -> None:
        """Replay the logs into all regions but the damaged ones, whose new stores get the batches."""
        for entry in self._catalogue.tables.values():
            for info in entry.regions:
                if info not in damaged:
                    self._logs.bring_in(info, self._folders.path(info.encoded), self._result.left.append)

    def _empty(self, damaged: Damaged) -> None:
        self._logs.lack(damaged.info, damaged.lost, self._result.left.append)
        region = f"{damaged.table} {damaged.info.encoded}"
        self._folders.make([damaged.info.encoded])
        self._begin_anew(damaged)
        self._result.done.append(f"{region}: an empty region, for {damaged.lost}")
        self._result.left.append(f"{region}: all that was written to it is lost; restore the table from a snapshot")

    def _begin_anew(self, damaged: Damaged) -> None:
        """Begin a timeline in the empty region: else it would give the sequences of its lost log again."""
        schema = self._catalogue.tables[damaged.table].schema
        timeline = Timeline.from_loss(system_ms())
        path = self._folders.path(damaged.info.encoded)
        store = self._engine.open_store(path, spaces_of(schema), options_of_spaces(schema))
        try:
            begin_timeline(store, damaged.info.region_id, timeline)
        finally:
            store.close()

    async def _salvage(self, damaged: Damaged) -> None:
        entry = self._catalogue.tables[damaged.table]
        old = damaged.info
        (new,) = await self._catalogue.reserve(damaged.table, [(old.start, old.end)])
        source, target = self._folders.path(old.encoded), self._folders.path(new.encoded)
        self._folders.destroy(new.encoded)
        try:
            found = salvage(self._engine, source, target, entry.schema, can_be_opened=damaged.can_be_opened)
            self._logs.bring_in_salvaged(old, target, self._result.left.append)
        except ColumnarError as error:
            self._folders.destroy(new.encoded)
            await self._catalogue.forget_dropped([new])
            self._logs.lack(old, "it is damaged", self._result.left.append)
            advice = "restore the table from a snapshot, or the store from a backup"
            self._result.left.append(f"{damaged.table} {old.encoded}: nothing can be saved ({error.text}); {advice}")
            return
        await self._catalogue.exchange(damaged.table, [old], [new])
        said = f"{damaged.table} {old.encoded}: {found.pairs} stored values saved into {new.encoded}"
        self._result.done.append(said)
        if found.engine_repair:
            self._result.left.append(f"{damaged.table} {old.encoded}: {found.engine_repair}; compare with a backup")
        self._result.left += [f"{damaged.table} {old.encoded}: {gap.text}" for gap in found.lost]

    async def _fill_holes(self) -> None:
        for name, entry in sorted(self._catalogue.tables.items()):
            for fault in faults_of(entry.regions):
                if isinstance(fault, Hole):
                    new = await self._catalogue.reserve(name, [(fault.start, fault.end)])
                    self._folders.destroy(new[0].encoded)
                    self._folders.make([new[0].encoded])
                    await self._catalogue.exchange(name, [], new)
                    self._result.done.append(f"{name}: an empty region {new[0].encoded} where none was")
                else:
                    both = f"{fault.left.encoded} and {fault.right.encoded}"
                    advice = (
                        "nobody can tell which is right; restore the table from a snapshot or the store from a backup"
                    )
                    self._result.left.append(f"{name}: regions {both} hold the same rows; {advice}")

    def _move_aside(self) -> None:
        for name in folders_nobody_names(os.listdir(self._regions), self._catalogue).orphans:
            os.makedirs(self._aside, exist_ok=True)
            target, number = os.path.join(self._aside, name), 1
            while os.path.exists(target):
                number += 1
                target = os.path.join(self._aside, f"{name}.{number}")
            os.rename(os.path.join(self._regions, name), target)
            self._result.done.append(f"{REGIONS}/{name} moved to {LOST_AND_FOUND}/{os.path.basename(target)}")
        if os.path.isdir(self._aside):
            sync_folder(self._aside)
        sync_folder(self._regions)


def _writer(meta: Region) -> Callable[[list[RowMutation]], Awaitable[None]]:
    async def write(mutations: list[RowMutation]) -> None:
        durable = meta.apply_many(mutations).durable
        assert durable is not None, "the catalogue is synced"
        await asyncio.shield(durable)

    return write
