"""The events of a node's coordination, kept in order, and awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from columnar.coordination.node_record import LeaderRecord, NodeRecord

PATIENCE_S = 20.0


@dataclass
class HeardCoordination:
    """``CoordinationEvents`` that notes each event as a tuple: its name, then what it is about."""

    events: list[tuple[object, ...]] = field(default_factory=list)
    nodes: Mapping[str, NodeRecord] = field(default_factory=dict)
    leader: LeaderRecord | None = None
    ended: dict[str, tuple[NodeRecord, bool]] = field(default_factory=dict)
    _waiting: list[tuple[Callable[[], bool], asyncio.Future[None]]] = field(default_factory=list)

    def names(self) -> list[object]:
        return [event[0] for event in self.events]

    async def until(self, condition: Callable[[], bool], what: str = "it") -> None:
        """Wait until an event has made the condition true."""
        if condition():
            return
        reached: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((condition, reached))
        try:
            async with asyncio.timeout(PATIENCE_S):
                await reached
        except TimeoutError:
            raise AssertionError(f"{what} did not happen; events: {self.events}") from None

    async def until_heard(self, name: str) -> None:
        await self.until(lambda: name in self.names(), name)

    def nodes_changed(self, nodes: Mapping[str, NodeRecord]) -> None:
        self.nodes = nodes
        self._note("nodes_changed", tuple(nodes))

    def node_ended(self, key: str, record: NodeRecord, *, is_by_time: bool) -> None:
        assert key not in self.ended, "a node ends once"
        self.ended[key] = record, is_by_time
        self._note("node_ended", key, is_by_time)

    def leader_changed(self, leader: LeaderRecord | None) -> None:
        self.leader = leader
        self._note("leader_changed", None if leader is None else (leader.node, leader.epoch))

    def elected(self, epoch: int) -> None:
        self._note("elected", epoch)

    def deposed(self, why: str) -> None:
        self._note("deposed", why)

    def lease_lost(self, why: str) -> None:
        self._note("lease_lost", why)

    def service_silent(self, since_ms: int, why: str) -> None:
        self._note("service_silent", since_ms, why)

    def service_answers(self, silent_ms: int) -> None:
        self._note("service_answers", silent_ms)

    def _note(self, *event: object) -> None:
        self.events.append(event)
        for condition, reached in self._waiting:
            if not reached.done() and condition():
                reached.set_result(None)
        self._waiting = [one for one in self._waiting if not one[1].done()]
