"""Splits and merges as the owner of the regions carries them out; the master decides on them (``RegionChange``).

    begin     the successors' stores are made and nearly filled while the old regions serve
    finish    quiesce followers -> pause requests -> make -> COMMIT, by a request to the master -> successors serve

Invariants:
    I1. A failure before the commit has no effect: the old regions continue to serve.
    I2. While the outcome of the commit is unknown, neither old nor new regions are served until ``settle``:
        otherwise writes made meanwhile could be lost.
    I3. Only the owner of all old regions carries a change out; the change's epoch is the highest epoch of these
        regions.
    I4. A change ends with its leader: without a commit it is called off.  After a commit whose answer is lost, the
        tables that a later leader publishes settle it; that leader has read the catalogue, and commits no older change.
        The leader that was asked to commit may publish the old regions before it commits, so that only the successors
        in its tables, or a message about this change, settle the change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice, pairwise
from typing import Final, NamedTuple

from columnar.errors import NotServingRegion, OutcomeUnknown, RegionTooBusy
from columnar.limits import MIB, STEP_CELLS
from columnar.model.region_info import RegionInfo
from columnar.model.region_messages import RegionChange, RegionLoad
from columnar.model.row_groups import RowGroups
from columnar.regions.life.region_state import State
from columnar.regions.life.retry import retry_until_ready
from columnar.regions.read.family_view import FamilyView
from columnar.regions.region import Region
from columnar.regions.replace.region_replacement import Merging, Replacement, Splitting, clean_up
from columnar.regions.server import RegionServer
from columnar.regions.tables import ServedTable
from columnar.storage.api import FileSpan, Store, StoreClosed
from columnar.storage.layout import END_OF_ROW, range_start, split_cell_key

TRIES: Final = 5  # to make the successors within a pause; requests are served between two tries


@contextmanager
def _closed_as_not_serving(info: RegionInfo) -> Iterator[None]:
    """Raise NotServingRegion if the store is closed during the work, for example by a disable of the table."""
    try:
        yield
    except StoreClosed as closed:
        raise NotServingRegion(f"region {info.encoded} was closed meanwhile; try again") from closed


class UnsureChange(NamedTuple):
    """A change whose commit has an unknown outcome."""

    work: Replacement
    leader: int  # the epoch of the master that was asked to commit it


class ChangingRegions:
    """Owned by the loop."""

    def __init__(
        self, server: RegionServer, commit: Callable[[RegionChange], Awaitable[None]], region_bytes: int
    ) -> None:  # fmt: skip
        """``commit`` returns when the catalogue names the successors.

        ``region_bytes`` is a region's size bound if its table sets none.
        """
        self._server = server
        self._commit = commit
        self._region_bytes = region_bytes
        self._in_progress: dict[RegionChange, Replacement] = {}
        self._at_work: set[RegionChange] = set()  # of these, those that a request of the master works on now
        self._unsure: dict[RegionChange, UnsureChange] = {}  # until ``settle`` or ``settle_table``
        self.leader: Callable[[], int] = lambda: 0  # the epoch of the master that sends requests
        self.at: Callable[[str], None] = lambda _step: None  # called after each step, for tests that stop there
        self.on_committed: Callable[[RegionChange], None] = lambda _change: None  # before successors are opened
        self.on_found_committed: Callable[[RegionChange], None] = lambda _change: None  # by ``settle_table``

    async def middle(self, info: RegionInfo) -> bytes | None:
        region = await self._server.opened(self._served(info.table), info)
        with region.work.kept_up(), _closed_as_not_serving(info):
            await region.work.run_aside(region.store.files.flush)  # the engine's size estimates cover files only
            return await middle_row(region)

    async def begin_change(self, change: RegionChange) -> None:
        hosting = self._server.hosting.state
        for info in change.gone:
            if not hosting.owns(info.region_id):
                raise NotServingRegion(f"region {info.encoded} is not owned here; ask again")
        if max(hosting.epoch_of(info.region_id) for info in change.gone) != change.epoch:
            raise NotServingRegion(f"region {change.gone[0].encoded} is not owned at epoch {change.epoch}; ask again")
        kind = Splitting if len(change.gone) == 1 else Merging
        work = kind(self._server, self._served(change.gone[0].table), change)
        with _closed_as_not_serving(change.gone[0]):
            await work.begin_replacement()
        self._in_progress[change] = work
        with self._working(change), _closed_as_not_serving(change.gone[0]):
            await work.prepare()

    async def finish(self, change: RegionChange) -> float:
        """Carry out the pause, the commit and the takeover.  Returns how long requests waited at most, in seconds."""
        work = self._in_progress.get(change)
        if work is None:
            raise NotServingRegion("the split or merge was called off meanwhile")
        with self._working(change):
            async with self._server.listener.changing():
                with _closed_as_not_serving(change.gone[0]):
                    await self._make(work)
                self.at("made")
                await self._committed(change, work)
                work.succeed()
                self.at("succeeded")
        return work.paused_s

    @contextmanager
    def _working(self, change: RegionChange) -> Iterator[None]:
        """Call the change off if the work on it fails before the commit."""
        self._at_work.add(change)
        try:
            yield
        except BaseException:
            self.call_off(change)
            raise
        finally:
            self._at_work.discard(change)

    async def _make(self, work: Replacement) -> None:
        for _ in range(TRIES):
            await work.quiesce_followers()
            self.at("held")
            await work.pause_requests()
            self.at("shut")
            if await work.make():
                return
            work.let_in()
        raise RegionTooBusy(
            f"a split or merge of {work.change.gone[0].table} was called off: {TRIES} times requests would have waited "
            "for too long; the disk is slow or busy, try again"
        )

    async def _committed(self, change: RegionChange, work: Replacement) -> None:
        work.check_wanted()
        leader = self.leader()
        try:
            await self._commit(change)
        except (OutcomeUnknown, asyncio.CancelledError) as error:
            self._unsure[change] = UnsureChange(self._in_progress.pop(change), leader)
            work.suspend(f"what became of its split or merge is known when the disk takes writes again ({error})")
            raise
        del self._in_progress[change]
        self.on_committed(change)

    def call_off(self, change: RegionChange) -> None:
        work = self._in_progress.pop(change, None)
        if work is not None:
            work.leave()

    def settle(self, change: RegionChange) -> None:
        """Let the old regions serve again: the catalogue names them."""
        unsure = self._unsure.pop(change, None)
        if unsure is not None:
            unsure.work.resume()

    def settle_for(self, info: RegionInfo) -> None:
        """Settle each change that keeps the region blocked: the catalogue names the region."""
        for change in [change for change in self._unsure if info in change.gone]:
            self.settle(change)

    def leader_ended(self) -> None:
        """End the changes of a leader whose link has ended, or which another leader follows.

        A change whose commit was requested has the outcome of that request: it fails with the link, and the change
        stays unsure until the next leader publishes its tables.
        """
        for change, work in list(self._in_progress.items()):
            if change in self._at_work:
                work.call_off_soon("the master that began the split or merge leads no more; try again")
            else:
                self.call_off(change)

    def settle_table(self, table: str, named: Sequence[RegionInfo]) -> None:
        """Settle the table's unsure changes by the regions that the catalogue names, as far as this proves anything."""
        for change, unsure in list(self._unsure.items()):
            if change.gone[0].table != table:
                continue
            if all(info in named for info in change.fresh):
                del self._unsure[change]
                unsure.work.succeed_late()
                self.on_found_committed(change)
            elif self.leader() > unsure.leader:
                self.settle(change)

    def regions_of(self, table: str, named: list[RegionInfo]) -> list[RegionInfo]:
        """Return the table's regions as this server serves them; ``named``: the regions that the catalogue names.

        Until the master answers the commit of a change, the change continues and the old regions are served.
        """
        served = named
        for change in self._in_progress:
            if change.gone[0].table == table and all(info in served for info in change.fresh):
                kept = [info for info in served if info not in change.fresh]
                served = sorted([*kept, *change.gone], key=lambda info: info.start)
        return served

    async def reclaim_space(self, info: RegionInfo) -> None:
        await clean_up(await self._server.opened(self._served(info.table), info))

    def loads(self) -> tuple[RegionLoad, ...]:
        """Return the size and the size bound of each open region.  Costs some 10 us a region."""
        return tuple(
            RegionLoad(region.info, region.store.files.size_bytes(), region.table.max_filesize or self._region_bytes)
            for region in self._server.all_open()
            if region.table.may_split and self._server.hosting.state_of(region) is State.OPEN
        )

    def _served(self, table: str) -> ServedTable:
        served = self._server.tables.find(table.encode())
        if served is None:
            raise NotServingRegion(f"table {table} was dropped meanwhile")
        return served


WALKED_BYTES: Final = 16 * MIB  # a region up to this size is read from end to end, in steps: some 0.1 s
WALKED_ROWS: Final = 500_000  # read of a region whose files show no two rows, to take the middle of these rows
SEEKS_PER_FILE: Final = 16
FILES_SOUGHT_IN: Final = 256
_KEY_BYTES: Final = 24  # of a key, taken as a number, after the common prefix of the file's keys


class Weight(NamedTuple):
    """A part of a region: about ``size_bytes`` bytes at ``row``, or between it and the row of the next Weight."""

    row: bytes
    size_bytes: int


async def middle_row(region: Region) -> bytes | None:
    """Return the first row of the second half of a region: it divides the region's bytes about evenly.

    In a table with ROW_GROUP the row is the first of a group.  Returns None if the region has fewer than two rows, or
    groups.  A small region is read completely, in steps.  A large region is not read: the engine knows the first key,
    the last key and the size of each of its files, and a few seeks between the two keys find rows that exist.
    """
    weights: list[Weight] = []
    groups = region.table.row_groups
    if region.store.files.size_bytes() > WALKED_BYTES:
        weights = _from_files(region)
    found = middle_of(weights, region.info, groups)
    if found is None:
        found = middle_of(await _walked(region), region.info, groups)
    return found if found is not None or groups is None else _second_group(region, groups)


def middle_of(weights: list[Weight], info: RegionInfo, groups: RowGroups | None = None) -> bytes | None:
    """Return the weight's row that divides the bytes most evenly, never the region's first row; None if none does."""
    by_row: dict[bytes, int] = {}
    for row, size in weights:
        if info.contains_row(row):
            begins = row if groups is None else groups.group_of(row)
            by_row[begins] = by_row.get(begins, 0) + size
    rows = sorted(by_row)
    total, before, best = sum(by_row.values()), 0, None
    for earlier, row in pairwise(rows):
        before += by_row[earlier]
        distance = abs(total - 2 * before)
        if row > info.start and (best is None or distance < best[0]):
            best = (distance, row)
    return best[1] if best is not None else None


def _second_group(region: Region, groups: RowGroups) -> bytes | None:
    """Return the second group of a region whose first group is so large that no other was found; None without one."""
    first = min(_rows_at(region, range_start(region.info.start)), default=None)
    end = groups.end_of(groups.group_of(first)) if first is not None else b""
    rows = [row for row in _rows_at(region, range_start(end)) if region.info.contains_row(row)] if end else []
    return groups.group_of(min(rows)) if rows else None


async def _walked(region: Region) -> list[Weight]:
    by_row: dict[bytes, int] = {}
    for view in region.views.values():
        place: bytes | None = range_start(region.info.start)
        while place is not None and len(by_row) < WALKED_ROWS:
            place = await retry_until_ready(partial(_walk_step, region, view, place, by_row))
            await asyncio.sleep(0)
    return [Weight(row, size) for row, size in by_row.items()]


def _walk_step(region: Region, view: FamilyView, place: bytes, by_row: dict[bytes, int]) -> bytes | None:
    stop = range_start(region.info.end) if region.info.end else None
    key = b""
    for key, raw in islice(region.store.scan(view.space, place, stop), STEP_CELLS):
        row = split_cell_key(key)[0]
        by_row[row] = by_row.get(row, 0) + len(key) + len(raw)
    return key + b"\x00" if key else None


def _from_files(region: Region) -> list[Weight]:
    found: list[Weight] = []
    for file in _family_files(region.store.files.spans())[:FILES_SOUGHT_IN]:
        rows = sorted({row for key in _between(file) for row in _rows_at(region, key)})
        found += [Weight(row, file.size_bytes // len(rows)) for row in rows]
    return found


def _family_files(files: list[FileSpan]) -> list[FileSpan]:
    """Return the files of families' own spaces, largest first.

    Keys tell these files from others, as the engine does not name a file's space.  A cell's key contains the end of its
    row, and if it begins with 00, FF follows.  Keys of older versions and of the log begin with 00 and a different
    byte; keys of ``meta`` contain no end of a row.
    """
    cells = [
        file for file in files if END_OF_ROW in file.first and (file.first[:1] != b"\x00" or file.first[1:2] == b"\xff")
    ]
    return sorted(cells, key=lambda file: file.size_bytes, reverse=True)


def _between(file: FileSpan) -> Iterator[bytes]:
    """Yield the file's first key, then keys that, as numbers, are evenly spaced between its first and last key."""
    common = 0
    while common < min(len(file.first), len(file.last)) and file.first[common] == file.last[common]:
        common += 1
    low, high = (
        int.from_bytes(key[common : common + _KEY_BYTES].ljust(_KEY_BYTES, b"\x00"), "big")
        for key in (file.first, file.last)
    )
    yield file.first
    for step in range(1, SEEKS_PER_FILE):
        number = low + (high - low) * step // SEEKS_PER_FILE
        yield file.first[:common] + number.to_bytes(_KEY_BYTES, "big")


def _rows_at(region: Region, key: bytes) -> Iterator[bytes]:
    """Yield the first row at or after ``key`` in each family."""
    low, high = range_start(region.info.start), range_start(region.info.end) if region.info.end else None
    for view in region.views.values():
        found = _first(region.store, view.space, max(low, key), high)
        if found is not None:
            yield split_cell_key(found)[0]


def _first(store: Store, space: str, start: bytes, stop: bytes | None) -> bytes | None:
    found = next(iter(store.scan(space, start, stop)), None)
    return found[0] if found is not None else None
