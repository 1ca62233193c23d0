"""A server's tables follow the routes where regions come or go, and cost nothing where only owners change."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from columnar.clock import StoreClock
from columnar.cluster.routes import Routes
from columnar.errors import NotServingRegion
from columnar.model.owner import Incarnation, OwnershipPeriod
from columnar.model.owner_messages import Address, Addresses
from columnar.model.region_info import RegionInfo
from columnar.model.region_location import Location, NewOwner
from columnar.model.region_messages import BeginChange, PauseDeliveries, Publish, RegionChange
from columnar.model.route import ChangeRoutes, ReplaceRoutes, Route
from columnar.model.schema import Family, make_table
from columnar.regions.tables import ServedTable, Tables
from columnar.roles.server_rpc_handlers import ServerRpcHandlers

S1, S2 = Incarnation("s1", 1), Incarnation("s2", 1)
LEFT, RIGHT = RegionInfo("t", 1, b"", b"m"), RegionInfo("t", 2, b"m", b"")
HALVES = (RegionInfo("t", 3, b"m", b"s"), RegionInfo("t", 4, b"s", b""))


class Asked:
    def __init__(self) -> None:
        self.looks = 0
        self.kept: list[RegionInfo] | None = None  # the regions that a split here keeps the table at
        self.tables = Tables()
        self.served = ServedTable(make_table("t", [Family("a")]), True, [LEFT, RIGHT])
        self.tables.install(self.served)
        self.leader = 7  # the epoch of the leader that is followed
        self.done: list[Any] = []
        changing = SimpleNamespace(
            regions_of=self._regions_of, settle_table=lambda *_: None, leader=lambda: self.leader
        )
        owner = SimpleNamespace(
            answers=dict.fromkeys((Publish, BeginChange, PauseDeliveries), self._note), changing=changing
        )
        owning = SimpleNamespace(dropped=lambda _regions: None)
        self.asks = ServerRpcHandlers(
            S1,
            cast(Any, owner),
            cast(Any, owning),
            Routes(),
            self.tables,
            cast(Any, None),
            StoreClock(lambda: 0),
        )
        self.number = 1
        self.heard: list[set[str]] = []
        self.asks.on_routes = lambda tables: self.heard.append(set(tables))
        self._ask(ReplaceRoutes(1, (Route(LEFT, S1, 1), Route(RIGHT, S1, 1))))
        self.looks = 0

    def _regions_of(self, _table: str, named: list[RegionInfo]) -> list[RegionInfo]:
        self.looks += 1
        return self.kept or named

    async def _note(self, message: Any) -> None:
        self.done.append(message)

    def _ask(self, message: Any) -> None:
        asyncio.run(self.asks.answers[type(message)](message))

    def change(self, gone: tuple[RegionInfo, ...], *routes: Route) -> list[RegionInfo]:
        self.number += 1
        self._ask(ChangeRoutes(self.number, gone, routes))
        return list(self.served.regions)


def test_changes_of_owners_look_at_no_region() -> None:
    asked = Asked()
    for epoch in range(2, 100):
        assert asked.change((), Route(RIGHT, S2, epoch)) == [LEFT, RIGHT]
    assert asked.looks == 0
    assert asked.heard[-1] == {"t"}, "whoever waits for an owner hears of it"


def test_regions_that_come_and_go_are_followed() -> None:
    asked = Asked()
    halves = [Route(half, S1, 1) for half in HALVES]
    assert asked.change((RIGHT,), *halves) == [LEFT, *HALVES]


def test_a_table_that_a_split_here_kept_from_following_does_so_at_the_next_change() -> None:
    asked = Asked()
    asked.kept = [LEFT, RIGHT]
    assert asked.change((RIGHT,), *(Route(half, S1, 1) for half in HALVES)) == [LEFT, RIGHT]
    asked.kept = None
    assert asked.change((), Route(LEFT, S2, 2)) == [LEFT, *HALVES]


# --- the owners that clients are told ------------------------------------------------------------------

ADDRESSES = Addresses((Address(S1, "h1", 1), Address(S2, "h2", 2)))


def test_an_owner_is_named_once_its_address_is_known() -> None:
    asked = Asked()
    asked.change((), Route(RIGHT, S2, 5))
    assert asked.asks.locate(RIGHT) is None
    assert asked.asks.new_owner("t", b"z") is None, "the call is forwarded"
    asked._ask(ADDRESSES)
    assert asked.asks.locate(RIGHT) == Location(b"m", b"", "s2", 1, "h2", 2, 5)
    assert asked.asks.new_owner("t", b"z") == NewOwner("h2", 2, 1, 5)
    assert asked.asks.locate(LEFT) == Location(b"", b"m", "s1", 1, "h1", 1, 1)
    assert asked.asks.new_owner("t", b"a") is None, "this server's own, which may be opening it"
    assert asked.asks.new_owner("none", b"a") is None
    assert asked.asks.locate(RegionInfo("t", 9, b"m", b"")) is None


def test_the_owner_of_a_moving_region_is_its_source_until_the_source_itself_is_asked() -> None:
    asked = Asked()
    asked._ask(ADDRESSES)
    asked.change((), Route(LEFT, S2, 2, OwnershipPeriod(S1, 1)), Route(RIGHT, S1, 6, OwnershipPeriod(S2, 5)))
    assert asked.asks.locate(RIGHT) == Location(b"m", b"", "s2", 1, "h2", 2, 5), "which serves until it has closed it"
    assert asked.asks.new_owner("t", b"z") == NewOwner("h2", 2, 1, 5)
    assert asked.asks.new_owner("t", b"a") == NewOwner("h2", 2, 1, 2), "this server was the source and refuses the row"


def test_a_blocked_region_has_no_owner_to_name() -> None:
    """The forwarded call is refused with the reason."""
    asked = Asked()
    asked._ask(ADDRESSES)
    asked.change((), Route(RIGHT, S2, 6, blocked_reason="it is damaged"))
    assert asked.asks.new_owner("t", b"z") is None


def test_an_earlier_leader_leaves_nothing_that_nobody_ends() -> None:
    """Its request may have come over its link, and begin after the link's end."""
    asked = Asked()
    change = RegionChange((LEFT,), HALVES, 1)
    for message in (Publish(make_table("t", [Family("a")]), True, ()), BeginChange(change), PauseDeliveries()):
        answer = asked.asks.answers_by_leader[type(message)]
        with pytest.raises(NotServingRegion, match="another master leads"):
            asyncio.run(answer(Incarnation("master", 6), message))
        assert asked.done == []
        asyncio.run(answer(Incarnation("master", 7), message))
        assert asked.done.pop() is message
