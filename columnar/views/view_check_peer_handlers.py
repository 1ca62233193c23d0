"""Handlers of an owner of regions for the requests of a check (``cluster.peer_requests``), about its own regions only.

A walk answers after SLICE_S, at the end of its present row, so that no request takes long.  The governor runs the walk
in steps, and the region is not closed before the walk ends.  If the region is to be closed, the walk ends early and the
gateway retries.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
from asyncio import Future, shield
from collections.abc import Awaitable, Callable, Iterator
from functools import lru_cache
from time import monotonic, perf_counter
from typing import Any, Final, TypeVar

from columnar.cluster.peer_requests import (
    EntriesSnapshot,
    EntriesSnapshots,
    GroupsFound,
    GroupsPart,
    ReadGroupMembers,
    ReadSourceRows,
    RepairGroup,
    RepairResult,
    Said,
    SayAgain,
    SourceFound,
    SourcePart,
)
from columnar.errors import RegionNotLocal, ViewError
from columnar.flows.governor import STEP_S, Governor
from columnar.model.mutation import RowMutation
from columnar.model.view_definition import from_json
from columnar.operations.access import TableAccess
from columnar.regions.life.region_state import State
from columnar.regions.life.retry import retry_until_ready
from columnar.regions.log.change_record import ChangeRecord
from columnar.regions.read.row_reader import fetch_row
from columnar.regions.region import Region
from columnar.regions.server import RegionServer
from columnar.views.contributions import Rules, operation_of, rules_of
from columnar.views.digests import check_buckets
from columnar.views.group_repair import removed, repair_group_in_steps
from columnar.views.walks import (
    GroupsWalk,
    MembersWalk,
    SourceRows,
    SourceWalk,
    inspect_member,
)

SLICE_S: Final = 0.5
SNAPSHOTS_PER_STEP: Final = 16  # some 0.3 ms
NOBODY: Final = "check"  # the follower in the record that gives a row a new sequence: no follower has this name

R = TypeVar("R")


class ViewCheckPeerHandlers:
    """``answers`` has the handler for each class of request; each handler raises errors of ``columnar.errors``."""

    def __init__(
        self,
        access: TableAccess,
        server: RegionServer,
        governor: Governor,
        definition: Callable[[str], bytes],
    ) -> None:
        """``definition`` returns the definition of a table's view, or raises ViewError if the table is no view."""
        self._access = access
        self._server = server
        self._governor = governor
        self._definition = definition
        self.answers: dict[type[Any], Callable[[Any], Awaitable[Any]]] = {
            SourcePart: self.source_part,
            GroupsPart: self.groups_part,
            ReadSourceRows: self.read_source_rows,
            ReadGroupMembers: self.read_group_members,
            SayAgain: self.say_again,
            RepairGroup: self.repair_group,
        }

    # --- walks ---------------------------------------------------------------------------------------

    async def source_part(self, message: SourcePart) -> SourceFound:
        rules = self._side(message.view, message.side)
        walk = SourceWalk(message.start)
        source, is_over = SourceRows(rules), _over_in(SLICE_S)

        def work(region: Region) -> Iterator[None]:
            is_summed = message.is_summed or not message.buckets
            return walk.walk_rows(region, source, message.buckets, is_over, is_summed=is_summed)

        if message.buckets:
            check_buckets(message.buckets)
        if not await self._walked(rules.table, message.start, work):
            return SourceFound(is_not_local=True)
        return SourceFound(walk.next_row, walk.digest.pack(), walk.rows, walk.rejected, tuple(walk.entries))

    async def groups_part(self, message: GroupsPart) -> GroupsFound:
        self._rules(message.view)
        is_over = _over_in(SLICE_S)
        if message.buckets:
            check_buckets(message.buckets)
            some = MembersWalk(message.start, message.after)

            def work(region: Region) -> Iterator[None]:
                return some.walk_members(region, message.buckets, is_over, is_summed=message.is_summed)

            if not await self._walked(message.view, message.start, work):
                return GroupsFound(is_not_local=True)
            return GroupsFound(some.next_row, some.after, some.digest.pack(), entries=tuple(some.entries))
        walk = GroupsWalk(message.start, message.after)
        if not await self._walked(message.view, message.start, lambda region: walk.walk_groups(region, is_over)):
            return GroupsFound(is_not_local=True)
        return GroupsFound(walk.next_row, walk.after, walk.digest.pack(), walk.groups, walk.members, tuple(walk.wrong))

    async def _walked(self, table: str, row: bytes, work: Callable[[Region], Iterator[None]]) -> bool:
        """Run the walk.  Returns False if another server owns the region of the row, or will soon."""
        region = await self._region(table, row)
        if region is None:
            return False
        with region.work.kept_up():
            await in_steps(self._governor, self._while_open(region, work(region)))
        return self._is_open(region)

    def _while_open(self, region: Region, work: Iterator[None]) -> Iterator[None]:
        if not self._is_open(region):  # it may be paused before the first step
            return
        for _ in work:
            yield
            if not self._is_open(region):
                return

    def _is_open(self, region: Region) -> bool:
        return region.is_open and self._server.hosting.state_of(region) in (State.OPEN, State.READ_ONLY)

    async def _region(self, table: str, row: bytes) -> Region | None:
        """Return the region of the row, or None if another server owns it."""
        served = self._access.table(table.encode())
        try:
            return await retry_until_ready(lambda: self._access.region_for(self._access.again(served), row))
        except RegionNotLocal:
            return None

    # --- snapshots -----------------------------------------------------------------------------------

    async def read_source_rows(self, message: ReadSourceRows) -> EntriesSnapshots:
        rules = self._side(message.view, message.side)
        source = SourceRows(rules)
        return await self._snapshot_each(
            rules.table, message.rows, _itself, lambda region, row: source.inspect_row(region, row)
        )

    async def read_group_members(self, message: ReadGroupMembers) -> EntriesSnapshots:
        self._rules(message.view)
        return await self._snapshot_each(
            message.view, message.members, _first, lambda region, one: inspect_member(region, *one)
        )

    async def _snapshot_each(
        self,
        table: str,
        message: tuple[R, ...],
        row_of: Callable[[R], bytes],
        take_snapshot: Callable[[Region, R], EntriesSnapshot],
    ) -> EntriesSnapshots:
        found: list[EntriesSnapshot | None] = []
        for number, one in enumerate(message):
            if number % SNAPSHOTS_PER_STEP == 0:
                await self._server.reply_memory.loop_budget.wait_for_budget()
            region = await self._region(table, row_of(one))
            found.append(None if region is None else take_snapshot(region, one))
        return tuple(found)

    # --- repairs -------------------------------------------------------------------------------------

    async def say_again(self, message: SayAgain) -> Said:
        rules = self._side(message.view, message.side)
        region = await self._region(rules.table, message.row)
        if region is None:
            return Said(is_not_local=True)
        source = SourceRows(rules)
        record = ChangeRecord(message.row, region.now_ms, (), (), NOBODY)
        logged = region.log_records([record], {})  # nothing else runs until the row is read
        sequence, spec = region.log.written_to, source.spec(region)
        raw_row = fetch_row(region.store, region.views, message.row, spec.projection)
        given = source.given(region, message.row, raw_row, spec)
        at = (sequence.origin, sequence.epoch, sequence.n)
        writes = tuple(RowMutation(one.group, (operation_of(rules, one, at),)) for one in given.shares.values())
        await _shielded(logged)
        return Said(at, writes)

    async def repair_group(self, message: RepairGroup) -> RepairResult:
        self._rules(message.view)
        region = await self._region(message.view, message.group)
        if region is None:
            return RepairResult(is_not_local=True)
        counts = [0, 0]
        if message.members:
            removed(region, message.group, message.members)
            return RepairResult()
        with region.work.kept_up():
            await in_steps(
                self._governor, self._while_open(region, repair_group_in_steps(region, message.group, counts))
            )
        if not self._is_open(region):
            return RepairResult(is_not_local=True)
        durable = region.syncs.barrier_any()
        if durable is not None:
            await _shielded(durable)
        return RepairResult(counts[0], counts[1])

    # --- definitions ---------------------------------------------------------------------------------

    def _rules(self, view: str) -> tuple[Rules, ...]:
        return _rules_in(self._definition(view))

    def _side(self, view: str, side: int) -> Rules:
        rules = self._rules(view)
        if not 0 <= side < len(rules):
            raise ViewError(f"view {view} has no source {side}")
        return rules[side]


def _itself(row: bytes) -> bytes:
    return row


def _first(member: tuple[bytes, bytes]) -> bytes:
    return member[0]


def _over_in(seconds: float) -> Callable[[], bool]:
    ends_s = monotonic() + seconds
    return lambda: monotonic() >= ends_s


@lru_cache(maxsize=64)
def _rules_in(definition: bytes) -> tuple[Rules, ...]:
    return rules_of(from_json(definition))


async def _shielded(durable: Future[None]) -> None:
    """Wait without cancelling ``durable``, for which other tasks wait, too."""
    await shield(durable)


async def in_steps(governor: Governor, work: Iterator[None]) -> None:
    """Run ``work`` in the governor's steps until its end; raise what it raises.  A cancelled caller ends ``work``."""
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def step() -> bool:
        if ended.done():  # cancelled
            return False
        ends_s = perf_counter() + STEP_S
        try:
            for _ in work:
                if perf_counter() >= ends_s:
                    return True
        except Exception as error:  # noqa: BLE001 - raised again in the caller's task
            ended.set_exception(error)
            return False
        ended.set_result(None)
        return False

    governor.soon(step)
    await ended
