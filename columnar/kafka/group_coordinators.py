"""The groups whose coordinator this server is: it owns the row of their committed offsets.

A group's state is memory.  When its row gets another owner, the members' next requests reach that server, which knows
none of them, so they join again; the committed offsets are in the row.

A request that waits, a join or a sync, is given up when its client goes (checked every CHECK_S), and answered with
NOT_COORDINATOR when this server loses the row.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final
from uuid import uuid4

from columnar.errors import IllegalArgument, RegionNotLocal, RegionTooBusy, RegionUnavailable
from columnar.kafka.errors import KafkaError
from columnar.kafka.group_messages import (
    BEAT,
    COMMIT,
    DESCRIBE,
    JOIN,
    LEAVE,
    SYNC,
    Values,
    pack_message,
    unpack_message,
)
from columnar.kafka.group_state import Answer, GroupState, Join, Joined, Synced
from columnar.model.topic import GROUP_BYTES, TOPICS_TABLE
from columnar.operations.access import Caller, TableAccess
from columnar.regions.life.retry import retry_until_ready
from columnar.regions.region import Region
from columnar.topics.group_offsets import GROUPS as GROUPS_BEGIN

GROUPS: Final = 10_000  # in memory
CHECK_S: Final = 1.0
ROW_BYTES: Final = len(GROUPS_BEGIN) + GROUP_BYTES
_TABLE: Final = TOPICS_TABLE.encode()
_NAME_CHARACTERS: Final = 100  # of a client's name in the ids of its members


class _Group:
    """A group, the requests that wait for it, and the timer of its next event."""

    def __init__(self, region: Region) -> None:
        self.region = region
        self.state = GroupState(_new_id)
        self.waiting: dict[int, tuple[asyncio.Future[Joined | Synced], Callable[[], bool]]] = {}
        self._check_s: float | None = None  # when waiting requests are checked next; None: not planned
        self._timer: asyncio.TimerHandle | None = None

    def next_check_s(self, now_s: float) -> float | None:
        """Return when to check waiting requests, or None.  Further requests of the group do not put the check off."""
        if not self.waiting:
            self._check_s = None
        elif self._check_s is None:
            self._check_s = now_s + CHECK_S
        return self._check_s

    def begin_check(self) -> None:
        self._check_s = None

    def plan_event(self, timer: asyncio.TimerHandle) -> None:
        self._timer = timer

    def cancel_event(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def resolve(self, answers: Sequence[Answer]) -> None:
        for one in answers:
            future, _ = self.waiting.pop(one.token, (None, None))
            if future is not None and not future.done():
                future.set_result(one.reply)


class GroupCoordinators:
    def __init__(self, access: TableAccess) -> None:
        self._access = access
        self._groups: dict[bytes, _Group] = {}
        self._tokens = itertools.count(1)

    async def answer(self, caller: Caller, row: bytes, message: bytes) -> bytes:
        """Answer a message.  Raises RegionNotLocal if another server coordinates the group."""
        if not row.startswith(GROUPS_BEGIN) or len(row) > ROW_BYTES:
            raise IllegalArgument("this is not the row of a group of consumers")
        asked = unpack_message(message)
        kind = asked["kind"]
        region = await retry_until_ready(partial(self._region, row), caller.has_gone)
        group = self._group(row, region)
        now_s = asyncio.get_running_loop().time()
        try:
            if kind in (JOIN, SYNC):
                return pack_message(kind, await self._wait(caller, row, group, asked))
            return pack_message(kind, self._at_once(group, asked, now_s))
        finally:
            self._plan(row, group)

    def _at_once(self, group: _Group, asked: Values, now_s: float) -> Values:
        state, kind, member = group.state, asked["kind"], str(asked.get("member", ""))
        generation = int(asked.get("generation", -1))
        if kind == BEAT:
            return {"error": int(state.beat(member, generation, now_s))}
        if kind == COMMIT:
            return {"error": int(state.check_commit(member, generation, now_s))}
        if kind == LEAVE:
            error, answers = state.leave_group(member, now_s)
            group.resolve(answers)
            return {"error": int(error)}
        if kind == DESCRIBE:
            return _described(state)
        raise IllegalArgument(f"this server knows no request {kind[:20]!r} to a group; install one version on all")

    async def _wait(self, caller: Caller, row: bytes, group: _Group, asked: Values) -> Values:
        token, now_s = next(self._tokens), asyncio.get_running_loop().time()
        future: asyncio.Future[Joined | Synced] = asyncio.get_running_loop().create_future()
        group.waiting[token] = future, caller.has_gone
        state, member = group.state, str(asked.get("member", ""))
        try:
            if asked["kind"] == JOIN:
                group.resolve(state.join_group(token, _join_of(asked, member), now_s))
            else:
                given = [(str(one[0]), bytes(one[1])) for one in asked.get("assignments", ())]
                group.resolve(state.sync_group(token, member, int(asked.get("generation", -1)), given, now_s))
            self._plan(row, group)
            reply = await future
        finally:
            if group.waiting.pop(token, None) is not None:
                state.gone(token, asyncio.get_running_loop().time())
        return _values_of(reply)

    # --- groups and their time ---------------------------------------------------------------------------

    def _region(self, row: bytes) -> Region:
        return self._access.writable(self._access.table(_TABLE), row)

    def _group(self, row: bytes, region: Region) -> _Group:
        group = self._groups.get(row)
        if group is not None and group.region is not region:  # it was elsewhere, or is another part of a split
            self._forget(row, group)
            group = None
        if group is None:
            if len(self._groups) >= GROUPS:
                self._forget_empty()
            if len(self._groups) >= GROUPS:
                raise RegionTooBusy(f"{GROUPS} groups have members at this server; try later")
            group = self._groups[row] = _Group(region)
        return group

    def _forget_empty(self) -> None:
        for row, group in list(self._groups.items()):
            if group.state.is_forgettable and not group.waiting:
                self._forget(row, group)

    def _forget(self, row: bytes, group: _Group) -> None:
        del self._groups[row]
        group.cancel_event()
        for future, _ in group.waiting.values():
            if not future.done():
                future.set_result(Synced(KafkaError.NOT_COORDINATOR))
        group.waiting.clear()

    def _plan(self, row: bytes, group: _Group) -> None:
        """Have the group's next event at its time."""
        if self._groups.get(row) is not group:
            return
        group.cancel_event()
        loop = asyncio.get_running_loop()
        times = [one for one in (group.state.next_s(), group.next_check_s(loop.time())) if one is not None]
        due_s = min(times, default=None)
        if due_s is None:
            del self._groups[row]  # it has no members, and nobody waits
            return
        group.plan_event(loop.call_at(due_s, self._pass_time, row, group))

    def _pass_time(self, row: bytes, group: _Group) -> None:
        now_s = asyncio.get_running_loop().time()
        try:
            is_ours = self._region(row) is group.region
        except RegionUnavailable:
            is_ours = True  # it is not open at the moment
        except RegionNotLocal:
            is_ours = False
        if not is_ours:
            self._forget(row, group)
            return
        group.begin_check()
        for token, (future, has_gone) in list(group.waiting.items()):
            if has_gone() and not future.done():
                del group.waiting[token]
                group.state.gone(token, now_s)
                future.set_result(Synced(KafkaError.REBALANCE_IN_PROGRESS))
        group.resolve(group.state.pass_time(now_s))
        self._plan(row, group)


def _new_id(client: str) -> str:
    return f"{client[:_NAME_CHARACTERS]}-{uuid4()}"


def _join_of(asked: Values, member: str) -> Join:
    session_ms = int(asked.get("session_ms", 0))
    rebalance_ms = int(asked.get("rebalance_ms", -1))
    return Join(
        member,
        str(asked.get("client", "")),
        str(asked.get("host", "")),
        session_ms / 1_000,
        (session_ms if rebalance_ms < 0 else rebalance_ms) / 1_000,
        str(asked.get("protocol_type", "")),
        tuple((str(one[0]), bytes(one[1])) for one in asked.get("protocols", ())),
        bool(asked.get("needs_id", False)),
    )


def _values_of(reply: Joined | Synced) -> Values:
    if isinstance(reply, Synced):
        return {"error": int(reply.error), "assignment": reply.assignment}
    return {
        "error": int(reply.error),
        "member": reply.member,
        "generation": reply.generation,
        "protocol": reply.protocol,
        "leader": reply.leader,
        "members": reply.members,
    }


def _described(state: GroupState) -> Values:
    members: list[Any] = [
        (one.id, one.client, one.host, one.metadata(state.protocol), one.assignment) for one in state.members.values()
    ]
    return {
        "state": state.phase.value, "protocol_type": state.protocol_type, "protocol": state.protocol,
        "members": members,
    }  # fmt: skip
