"""Splits and merges, on request and by size: one at a time, each committed by one write of the catalogue.

    begin -> prepare -> [locks] hold -> shut -> make -> COMMIT -> succeed -> [unlocks] remove, clean up

Invariants:
    I1. The write of the catalogue is the commit: a crash before it leaves the old regions, after it the new
        ones.  Folders of the others stand in the catalogue as dropped, the new ones' before they are made,
        and are removed at the next start.  A folder that the catalogue does not name is never touched.
    I2. What fails before the commit changes nothing for anybody, and says so.
    I3. Where nobody knows whether the commit is on disk, neither old nor new regions are served until the
        catalogue is written anew, without it (``catalogue_mended``), or a restart has read it: else what is
        written meanwhile could be lost.

What is done with the regions is the host's (``Changing``); in which order and under which locks is said here.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Final, Protocol

from columnar.errors import (
    ColumnarError,
    IllegalArgument,
    NotServingRegion,
    OutcomeUnknown,
    RegionTooBusy,
    TableNotEnabled,
    TableNotFound,
)
from columnar.master.catalogue import Catalogue
from columnar.master.replacements import Load, Plan, check_merge, check_split, due, merge_plan, split_plan
from columnar.master.schema_changes import SchemaChanges
from columnar.model.region_info import RegionInfo

_log = logging.getLogger(__name__)

LOOK_S: Final = 30.0  # between two looks for regions that have grown too large
TRIES: Final = 5  # to make the new ones within a pause; between two of them requests are served


class Changing(Protocol):
    """One split or one merge under way; ``leave`` is called whatever becomes of it."""

    async def middle(self) -> bytes | None:
        """The row at which the region falls in two halves; None: it has fewer than two rows."""

    async def prepare(self, fresh: Sequence[RegionInfo]) -> None:
        """All that can be done while the old regions serve."""

    async def hold(self) -> None:
        """Triggers take up nothing more, and little is left to be done; again after ``let_in``."""

    async def shut(self) -> None:
        """Requests wait from here on."""

    async def make(self, fresh: Sequence[RegionInfo]) -> bool:
        """The new regions are on disk when this returns; False: requests have waited too long for it."""

    def let_in(self) -> None:
        """The end of ``shut``, where nothing came of it."""

    def discard(self, fresh: Sequence[RegionInfo]) -> None: ...

    def succeed(self, fresh: Sequence[RegionInfo]) -> None: ...

    def condemn(self, why: str) -> None: ...

    def pardon(self) -> None:
        """After ``condemn``: the old regions are those of the catalogue."""

    def leave(self) -> None: ...

    async def remove_folders(self) -> None: ...

    @property
    def is_over(self) -> bool:
        """The catalogue names the new ones, or nobody knows whether it does."""

    @property
    def shut_s(self) -> float: ...


class RegionHost(Protocol):
    """Whoever serves the regions."""

    def begin(self, infos: Sequence[RegionInfo]) -> Changing: ...

    def changing_triggers(self) -> AbstractAsyncContextManager[None]:
        """While it is held no trigger comes or goes."""

    async def clean_up(self, info: RegionInfo) -> None:
        """Give back what of a new region's files is not its own."""

    def loads(self) -> list[Load]: ...

    def free_bytes(self) -> int: ...


class RegionChanges:
    """Owned by the loop."""

    def __init__(self, catalogue: Catalogue, changes: SchemaChanges, host: RegionHost) -> None:
        self._catalogue = catalogue
        self._changes = changes
        self._host = host
        self._one_at_a_time = asyncio.Lock()
        self._tried: dict[int, int] = {}  # of regions that could not be split: their size then
        self._condemned: list[tuple[Changing, Plan]] = []  # until the catalogue is mended
        self._stopping = False
        self._looking: asyncio.Task[None] | None = None
        self._cleaning: set[asyncio.Task[None]] = set()
        self._clean_one = asyncio.Lock()
        self._look_now = asyncio.Event()
        self.at: Callable[[str], None] = lambda _step: None  # told each step that it is over: tests die there

    # --- on request --------------------------------------------------------------------------------

    async def split(self, parent: RegionInfo, row: bytes | None) -> list[RegionInfo]:
        """At ``row`` (None: in the middle).  The new regions, which serve when this returns."""
        async with self._one_at_a_time:
            self._check(parent)
            if row is not None:
                check_split(parent, row)
            async with self._begun([parent]) as work:
                at = row if row is not None else await work.middle()
                if at is None:
                    raise IllegalArgument(f"region {parent.encoded} has fewer than two rows and cannot be split")
                plan = split_plan(parent, at, self._catalogue.next_ids(2))
                await self._carry_out(work, plan)
        _log.info("region %s of %s is split; requests waited %.0f ms", parent.encoded, parent.table, 1e3 * work.shut_s)
        self._clean_soon(plan.fresh)
        return list(plan.fresh)

    async def merge(self, one: RegionInfo, other: RegionInfo) -> RegionInfo:
        """Neighbours, in any order.  The new region, which serves when this returns."""
        async with self._one_at_a_time:
            check_merge(one, other)
            plan = merge_plan(one, other, *self._catalogue.next_ids(1))
            for info in plan.gone:
                self._check(info)
            async with self._begun(plan.gone) as work:
                await self._carry_out(work, plan)
        _log.info("two regions of %s are merged; requests waited %.0f ms", one.table, 1e3 * work.shut_s)
        return plan.fresh[0]

    def _check(self, info: RegionInfo) -> None:
        entry = self._catalogue.tables.get(info.table)
        if self._stopping:
            raise NotServingRegion("the server is stopping; try again")
        if entry is None:
            raise TableNotFound(info.table)
        if info not in entry.regions:
            raise NotServingRegion(f"region {info.encoded} was split or merged meanwhile; ask for the regions again")
        if entry.schema.is_system:
            raise IllegalArgument(f"{info.table} is a table of the system; its one region stays as it is")
        if not entry.enabled:
            raise TableNotEnabled(info.table)

    @asynccontextmanager
    async def _begun(self, infos: Sequence[RegionInfo]) -> AsyncIterator[Changing]:
        work = self._host.begin(infos)
        try:
            yield work
        finally:
            work.leave()

    async def _carry_out(self, work: Changing, plan: Plan) -> None:
        await self._catalogue.announce(plan.fresh)
        try:
            await work.prepare(plan.fresh)
            self.at("prepared")
            async with self._changes.lock, self._host.changing_triggers():
                await self._change(work, plan)
        except BaseException:
            if not work.is_over:  # nothing was written: those to come never were
                work.discard(plan.fresh)
                await self._forget(plan.fresh)
            raise
        await self._remove(work, plan)

    async def _change(self, work: Changing, plan: Plan) -> None:
        for info in plan.gone:
            self._check(info)
        await self._make(work, plan)
        self.at("made")
        try:
            await self._catalogue.replace(list(plan.gone), list(plan.fresh))
        except (OutcomeUnknown, asyncio.CancelledError) as error:
            work.condemn(f"what became of its split or merge is known when the disk takes writes again ({error})")
            self._condemned.append((work, plan))
            raise
        self.at("committed")
        work.succeed(plan.fresh)
        self.at("succeeded")

    def catalogue_mended(self) -> None:
        """What it was told last, of unknown outcome, was taken back: old regions serve again."""
        condemned, self._condemned = self._condemned, []
        for work, plan in condemned:
            work.pardon()
            try:
                work.discard(plan.fresh)
            except ColumnarError as error:
                _log.warning("folders of regions that never came to be are removed at the next start: %s", error.text)

    async def _make(self, work: Changing, plan: Plan) -> None:
        for _ in range(TRIES):
            await work.hold()
            self.at("held")
            await work.shut()
            self.at("shut")
            if await work.make(plan.fresh):
                return
            work.let_in()
        raise RegionTooBusy(
            f"a split or merge of {plan.gone[0].table} was called off: {TRIES} times requests would have waited for "
            "too long; the disk is slow or busy, try again"
        )

    async def _remove(self, work: Changing, plan: Plan) -> None:
        """The old folders.  What fails is done at the next start: the catalogue remembers them."""
        try:
            await work.remove_folders()
            self.at("removed")
            await self._catalogue.forget_dropped(list(plan.gone))
            self.at("forgotten")
        except (OSError, ColumnarError) as error:
            _log.warning("folders of split or merged regions are removed at the next start: %s", error)

    async def _forget(self, infos: Sequence[RegionInfo]) -> None:
        try:
            await self._catalogue.forget_dropped(list(infos))
        except ColumnarError as error:
            _log.warning("the catalogue forgets regions that never came to be at the next start: %s", error.text)

    # --- afterwards --------------------------------------------------------------------------------

    def _clean_soon(self, fresh: Sequence[RegionInfo]) -> None:
        for info in fresh:
            task = asyncio.ensure_future(self._clean(info))
            self._cleaning.add(task)
            task.add_done_callback(self._cleaned)

    def _cleaned(self, task: asyncio.Task[None]) -> None:
        self._cleaning.discard(task)
        if not self._cleaning:
            self._look_now.set()  # half of what was far too large may be too large still

    async def _clean(self, info: RegionInfo) -> None:
        async with self._clean_one:
            entry = self._catalogue.tables.get(info.table)
            if self._stopping or entry is None or not entry.enabled or info not in entry.regions:
                return
            try:
                await self._host.clean_up(info)
            except ColumnarError as error:  # the engine gives it back by itself, later
                _log.info("region %s is not cleaned up now: %s", info.encoded, error.text)

    # --- by size -----------------------------------------------------------------------------------

    def start(self) -> None:
        self._looking = asyncio.ensure_future(self._look_for_ever())

    async def _look_for_ever(self) -> None:
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._look_now.wait(), LOOK_S)
            self._look_now.clear()
            while await self.split_the_largest():  # noqa: ASYNC110 - each is a split
                await asyncio.sleep(0)

    async def split_the_largest(self) -> bool:
        """Split the region that is most over its limit; False: there is none."""
        if self._cleaning or self._stopping:
            return False  # sizes are told right again when what is no longer needed is given back
        loads = self._host.loads()
        ids = {load.info.region_id for load in loads}
        self._tried = {region_id: size for region_id, size in self._tried.items() if region_id in ids}
        info = due(loads, self._tried, self._host.free_bytes())
        if info is None:
            return False
        try:
            await self.split(info, None)
        except ColumnarError as error:
            self._tried[info.region_id] = next(load.size_bytes for load in loads if load.info == info)
            _log.warning("region %s of %s is too large, but: %s", info.encoded, info.table, error.text)
        return True

    async def close(self) -> None:
        """No more are begun; what is under way is finished or called off."""
        self._stopping = True
        async with self._one_at_a_time:  # never cancelled between commit and end
            ended = [*self._cleaning, *([self._looking] if self._looking is not None else [])]
            for task in ended:
                task.cancel()
        if ended:
            await asyncio.wait(ended)
