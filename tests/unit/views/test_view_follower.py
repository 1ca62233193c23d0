"""The follower of a view: changes are in it, rows that were there are shown, and nothing is missed at any place."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from columnar.errors import NotAllowed, RegionTooBusy
from columnar.flows import applier
from columnar.flows.delivery_cursor import unpack_cursor
from columnar.flows.effects import Write
from columnar.model import region_messages as messages
from columnar.model.mutation import Delete, Put, RowMutation
from columnar.model.view_definition import Source, View
from columnar.views import backfill, local_views, share_writes
from columnar.views.follower import MAX_IN_FLIGHT, ROOM_S, ViewFollower
from columnar.views.share_writes import BATCH_RECORDS
from columnar.views.view_manager import follower_name
from tests.support.view_house import ViewHouse, by_a, in_view_house


@in_view_house
async def test_changes_are_in_the_view(house: ViewHouse) -> None:
    await house.make_source()
    await house.add(by_a())
    await house.put_cells("t", b"1", a=b"x", n=b"3")
    await house.put_cells("t", b"2", a=b"x", n=b"4")
    await house.put_cells("t", b"3", a=b"y", n=b"-1")
    await house.settled("by_a")
    assert await house.totals("by_a") == {b"x": {"count": 2, "n": 7}, b"y": {"count": 1, "n": -1}}
    await house.put_cells("t", b"1", a=b"y")
    await house.write("t", b"2", Delete(b"f", b"a"))
    await house.settled("by_a")
    assert await house.totals("by_a") == {b"y": {"count": 2, "n": 2}}
    done = house.keeper.hub.figures.of(follower_name("by_a"), 0.0)
    assert (done.delivered, done.failed) == (5, 0), "the page of flows shows a rate"


@in_view_house
async def test_views_with_contrary_conditions_have_each_row_once(house: ViewHouse) -> None:
    """An empty cell is there; a row passes from one view to the other with the cell."""
    await house.make_source()
    for name, where in (("live", "f:deleted absent"), ("gone", "f:deleted exists")):
        await house.add(View(name, Source("t", key=("f:a",), where=(where,))))

    async def counts() -> tuple[dict[bytes, dict[str, int]], dict[bytes, dict[str, int]]]:
        await house.settled("live")
        await house.settled("gone")
        return await house.totals("live"), await house.totals("gone")

    one: dict[bytes, dict[str, int]] = {b"x": {"count": 1}}
    await house.put_cells("t", b"1", a=b"x", deleted=b"")
    assert await counts() == ({}, one)
    await house.write("t", b"1", Delete(b"f", b"deleted"))
    assert await counts() == (one, {})
    await house.put_cells("t", b"1", deleted=b"yes")
    assert await counts() == ({}, one)


@in_view_house
async def test_a_constant_key_makes_a_total_of_the_whole_table(house: ViewHouse) -> None:
    await house.make_source("t", ("f",), b"5")
    await house.put_cells("t", b"1", a=b"x", n=b"3")
    await house.add(View("all", Source("t", key=("'all'",), sums={"n": "f:n"}, families=("f",))))
    await house.put_cells("t", b"7", n=b"4")
    await house.put_cells("t", b"8", a=b"y")
    await house.settled("all")
    assert await house.totals("all") == {b"all": {"count": 3, "n": 7}}
    await house.write("t", b"7", Delete(b"f", None))
    await house.settled("all")
    assert await house.totals("all") == {b"all": {"count": 2, "n": 3}}, "a row without cells is none"


@in_view_house
async def test_rows_that_were_there_are_shown(house: ViewHouse) -> None:
    await house.make_source("t", ("f",), b"5")
    for n in range(40):
        await house.put_cells("t", b"%d" % n, a=b"%d" % (n % 3), n=b"%d" % n)
    await house.add(by_a())
    assert house.state("by_a") == "building"
    await house.settled("by_a")
    expected: dict[bytes, dict[str, int]] = {}
    for n in range(40):
        held = expected.setdefault(b"%d" % (n % 3), {"count": 0, "n": 0})
        held["count"] += 1
        held["n"] += n
    assert await house.totals("by_a") == expected
    await house.views.check_view_builds()
    assert house.state("by_a") == "live"
    (look,) = house.owner.views.view_statuses()
    assert (look.built_rows, look.rejected_rows, look.lag_changes, look.last_error) == (40, 0, 0, "")


@in_view_house
async def test_rows_that_cannot_be_read_are_counted(house: ViewHouse) -> None:
    await house.make_source("t", ("f",), b"5")
    for row, n in ((b"1", b"1"), (b"2", b"many"), (b"6", b"1"), (b"7", b"more")):
        await house.put_cells("t", row, a=b"x", n=n)
    await house.add(by_a())
    await house.settled("by_a")

    def rejected() -> int:
        return house.owner.views.view_statuses()[0].rejected_rows

    assert await house.totals("by_a") == {b"x": {"count": 2, "n": 2}}
    assert rejected() == 2
    await house.put_cells("t", b"2", n=b"5")
    await house.put_cells("t", b"1", n=b"bad")
    await house.put_cells("t", b"3", a=b"x", n=b"bad")
    await house.settled("by_a")
    assert rejected() == 3
    again = await house.restarted()
    await again.settled("by_a")
    assert again.owner.views.view_statuses()[0].rejected_rows == 3
    assert await again.totals("by_a") == {b"x": {"count": 2, "n": 6}}
    await again.close()


@in_view_house
async def test_a_join_has_the_members_of_both_sides(house: ViewHouse) -> None:
    await house.make_source("people")
    await house.make_source("orders")
    await house.put_cells("people", b"ann", id=b"1", name=b"Ann")
    await house.add(View("both", Source("people", ("f:id",)), Source("orders", ("f:who",), sums={"paid": "f:paid"})))
    await house.put_cells("orders", b"o1", who=b"1", paid=b"5")
    await house.put_cells("orders", b"o2", who=b"2", paid=b"6")
    await house.settled("both")
    assert await house.totals("both") == {
        b"1": {"l.count": 1, "r.count": 1, "r.paid": 5},
        b"2": {"r.count": 1, "r.paid": 6},
    }
    await house.views.check_view_builds()
    assert house.state("both") == "live"
    await house.views.drop("both")
    assert house.server.policy_of("people") is None
    assert house.server.policy_of("orders") is None


@in_view_house
async def test_both_sides_of_a_join_may_be_one_table(house: ViewHouse) -> None:
    await house.make_source()
    await house.add(View("met", Source("t", ("f:a",)), Source("t", ("f:b",))))
    await house.put_cells("t", b"1", a=b"x", b=b"y")
    await house.put_cells("t", b"2", a=b"y", b=b"y")
    await house.settled("met")
    assert await house.totals("met") == {b"x": {"l.count": 1}, b"y": {"l.count": 1, "r.count": 2}}


@in_view_house
async def test_a_view_of_a_view(house: ViewHouse) -> None:
    """Distinct: each pair is one group of the first, and one member of the second."""
    await house.make_source()
    await house.add(View("pairs", Source("t", ("f:a", "f:b"))))
    await house.add(View("distinct", Source("pairs", ("key[0]",), where=("v:count exists",))))
    for n, (a, b) in enumerate([(b"x", b"1"), (b"x", b"1"), (b"x", b"2"), (b"y", b"1")]):
        await house.put_cells("t", b"%d" % n, a=a, b=b)
    for view in ("pairs", "distinct"):
        await house.settled(view)
    assert await house.totals("distinct") == {b"x": {"count": 2}, b"y": {"count": 1}}
    await house.write("t", b"2", Delete(b"f", None))
    for view in ("pairs", "distinct"):
        await house.settled(view)
    assert await house.totals("distinct") == {b"x": {"count": 1}, b"y": {"count": 1}}


@in_view_house
async def test_a_wait_for_one_change_ends_with_it(house: ViewHouse) -> None:
    await house.make_source()
    await house.add(by_a())
    await house.settled("by_a")
    token = await house.put_cells("t", b"1", a=b"x", n=b"3")
    await house.settled("by_a", token)
    assert await house.totals("by_a") == {b"x": {"count": 1, "n": 3}}


@in_view_house
async def test_a_build_goes_on_where_it_was(house: ViewHouse) -> None:
    await house.make_source()
    for n in range(30):
        await house.put_cells("t", b"%02d" % n, a=b"x", n=b"1")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backfill, "STEP_ROWS", 4)
        patch.setattr(backfill, "PIECE_ROWS", 8)
        await house.add(by_a())
        (follower,) = house.keeper.hub.followers.of(follower_name("by_a"))
        while follower.progress.done == b"":  # type: ignore[attr-defined]  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0)
        assert follower.progress.done == b"07\x00"  # type: ignore[attr-defined]
        assert not follower.is_prepared
        house.keeper.hub.upkeep.save(follower.region)
        again = await house.restarted()
        while not again.keeper.hub.followers.of(follower_name("by_a")):  # noqa: ASYNC110 - its region opens
            await asyncio.sleep(0)
        (follower,) = again.keeper.hub.followers.of(follower_name("by_a"))
        assert follower.progress.done == b"07\x00"  # type: ignore[attr-defined]
        await again.settled("by_a")
        assert await again.totals("by_a") == {b"x": {"count": 30, "n": 30}}
        await again.close()


@in_view_house
async def test_a_target_that_is_disabled_is_waited_for(house: ViewHouse) -> None:
    await house.make_source()
    await house.add(by_a())
    await house.settled("by_a")
    served = house.served("by_a")
    served.enabled = False
    await house.put_cells("t", b"1", a=b"x", n=b"3")
    while not house.owner.views.view_statuses()[0].last_error:  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0.001)
    assert "by_a is disabled" in house.owner.views.view_statuses()[0].last_error
    assert house.owner.views.view_statuses()[0].lag_changes == 1
    served.enabled = True
    await house.settled("by_a")
    assert await house.totals("by_a") == {b"x": {"count": 1, "n": 3}}


@in_view_house
async def test_while_a_store_is_copied_no_view_changes(house: ViewHouse) -> None:
    await house.make_source()
    await house.add(by_a())
    await house.settled("by_a")
    await house.owner.request_peer(messages.PauseDeliveries())
    await house.put_cells("t", b"1", a=b"x", n=b"3")
    assert not await house.owner.views.wait_delivered("by_a", "", 0.02)
    assert await house.totals("by_a") == {}
    await house.owner.request_peer(messages.ReleaseDeliveries())
    await house.settled("by_a")
    assert await house.totals("by_a") == {b"x": {"count": 1, "n": 3}}


@in_view_house
async def test_a_merge_waits_for_a_build(house: ViewHouse) -> None:
    await house.make_source("t", ("f",), b"5")
    await house.put_cells("t", b"1", a=b"x", n=b"bad")
    await house.put_cells("t", b"7", a=b"x", n=b"1")
    house.owner.views._governor.soon = lambda _step: None  # type: ignore[method-assign,assignment]
    await house.add(by_a())
    await house.views.check_view_builds()
    assert house.state("by_a") == "building", "no region has shown its rows"
    first, second = house.served("t").regions
    with pytest.raises(RegionTooBusy, match="view by_a has not yet seen all of its rows"):
        await house.regions.merge(first, second)


@in_view_house
async def test_splits_and_merges_keep_numbers_exact(house: ViewHouse) -> None:
    await house.make_source()
    for n in range(10):
        await house.put_cells("t", b"%d" % n, a=b"x", n=b"bad" if n in (2, 7, 8) else b"1")
    await house.add(by_a())
    await house.settled("by_a")
    assert house.owner.views.view_statuses()[0].rejected_rows == 3
    await house.regions.split(house.served("t").regions[0], b"5")
    await house.settled("by_a")
    while house.owner.views.view_statuses()[0].rejected_rows != 3:  # noqa: ASYNC110 - it is counted again
        await asyncio.sleep(0.001)
    await house.put_cells("t", b"8", n=b"2")
    await house.settled("by_a")
    assert house.owner.views.view_statuses()[0].rejected_rows == 2
    await house.views.check_view_builds()
    assert house.state("by_a") == "live"
    first, second = house.served("t").regions
    await house.regions.merge(first, second)
    await house.put_cells("t", b"2", n=b"3")
    await house.settled("by_a")
    assert house.owner.views.view_statuses()[0].rejected_rows == 1
    assert await house.totals("by_a") == {b"x": {"count": 9, "n": 12}}


@in_view_house
async def test_a_row_with_more_versions_counts_as_its_newest(house: ViewHouse) -> None:
    await house.make_source()
    await house.add(by_a())
    await house.write("t", b"1", Put(b"f", b"a", b"new", 100), Put(b"f", b"n", b"1", 100))
    await house.write("t", b"1", Put(b"f", b"a", b"old", 50))
    await house.settled("by_a")
    assert await house.totals("by_a") == {b"new": {"count": 1, "n": 1}}


@in_view_house
async def test_changes_that_come_again_change_nothing(house: ViewHouse) -> None:
    """A cursor that was saved before they were done: as after a kill."""
    await house.make_source()
    await house.add(by_a())
    await house.settled("by_a")
    region = await house.server.opened(house.served("t"), house.served("t").regions[0])
    house.keeper.hub.upkeep.save(region)
    before = region.log.cursors.cursor("view:by_a")
    assert before is not None
    await house.put_cells("t", b"1", a=b"x", n=b"3")
    await house.put_cells("t", b"1", a=b"y", n=b"4")
    await house.settled("by_a")
    for follower in house.keeper.hub.followers.of(follower_name("by_a")):
        house.keeper.hub.listener.drop(follower)
    region.log.cursors.save_cursor("view:by_a", before)
    again = await house.restarted()
    await again.settled("by_a")
    assert await again.totals("by_a") == {b"y": {"count": 1, "n": 4}}
    await again.close()


def test_guards_stay_while_something_may_be_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_views, "GUARDS_S", 0.0)

    @in_view_house
    async def run(house: ViewHouse) -> None:
        await house.make_source()
        await house.add(by_a())
        needed_from = house.owner.views.guards_needed_from
        assert await needed_from("t", 5) is None
        assert await needed_from("by_a", 5) == 0, "it is being built"
        await house.settled("by_a")
        await house.views.check_view_builds()
        region = await house.server.opened(house.served("t"), house.served("t").regions[0])
        region.apply(RowMutation(b"1", (Put(b"f", b"a", b"x"),)))
        assert await needed_from("by_a", 5) == 0, "it lags"
        await house.settled("by_a")
        assert await needed_from("by_a", 5) == 5
        saved = region.log.cursors.cursor("view:by_a")
        assert saved is not None
        assert unpack_cursor(saved).read_to == region.log.last_to_wait_for, "the cursor says so on disk"
        house.keeper.hub.upkeep.pause_saving()
        assert await needed_from("by_a", 5) == 0, "cursors stand still"
        house.keeper.hub.upkeep.release()
        await house.changes.disable(b"t")
        assert await needed_from("by_a", 5) == 0, "what is left in a disabled table comes later"

    run()


@in_view_house
async def test_a_view_that_cannot_be_written_has_a_bounded_number_of_open_changes(house: ViewHouse) -> None:
    await house.make_source()
    await house.add(by_a())
    await house.settled("by_a")
    target = await house.server.opened(house.served("by_a"), house.served("by_a").regions[0])
    source = await house.server.opened(house.served("t"), house.served("t").regions[0])
    target.refuses_writes = True
    count, applied = MAX_IN_FLIGHT + BATCH_RECORDS + 1, None
    for first in range(0, count, 500):
        numbers = range(first, min(count, first + 500))
        puts = [RowMutation(b"%05d" % n, (Put(b"f", b"a", b"%02d" % (n % 50)), Put(b"f", b"n", b"1"))) for n in numbers]
        applied = source.apply_many(puts)
    assert applied is not None
    assert applied.durable is not None
    await asyncio.shield(applied.durable)
    (follower,) = house.keeper.hub.followers.of(follower_name("by_a"))
    while follower.state.open_count < MAX_IN_FLIGHT:  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0.001)
    for _ in range(50):
        await asyncio.sleep(0)
    follower.save()
    saved = source.log.cursors.cursor("view:by_a")
    assert saved is not None
    assert len(unpack_cursor(saved).open) == MAX_IN_FLIGHT
    assert len(saved) < 40_000, "it is written every half second"
    target.refuses_writes = False
    await house.settled("by_a")
    assert sum(one["count"] for one in (await house.totals("by_a")).values()) == count


def test_a_batch_that_is_full_is_written_while_changes_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share_writes, "BATCH_RECORDS", 3)

    @in_view_house
    async def run(house: ViewHouse) -> None:
        await house.make_source()
        await house.add(by_a())
        await house.settled("by_a")
        shares: list[int] = []
        write = house.keeper.applier.apply

        def noted(writes: list[Write], *more: Any, **named: Any) -> applier.Job:
            shares.append(sum(len(mutation.operations) for _, mutation in writes))
            return write(writes, *more, **named)

        monkeypatch.setattr(house.keeper.applier, "apply", noted)
        source = await house.server.opened(house.served("t"), house.served("t").regions[0])
        source.apply_many([RowMutation(b"%d" % n, (Put(b"f", b"a", b"x"),)) for n in range(8)])
        await house.settled("by_a")
        assert await house.totals("by_a") == {b"x": {"count": 8}}
        assert shares == [3, 3, 2]

    run()


@in_view_house
async def test_cells_that_expire_unheard_are_refused(house: ViewHouse) -> None:
    await house.make_source("t", ("f", "g"))
    expiring = (Put(b"f", b"a", b"x", None, 60_000), Put(b"f", b"n", b"1"))
    await house.write("t", b"1", *expiring)
    await house.add(by_a())
    with pytest.raises(NotAllowed, match=r"a put into f:a of t has a time to live: view by_a reads the family"):
        await house.write("t", b"2", *expiring)
    await house.write("t", b"2", Put(b"g", b"a", b"x", None, 60_000))
    while not house.owner.views.view_statuses()[0].last_error:  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0.001)
    assert "row 1 of t has a time to live in f:a" in house.owner.views.view_statuses()[0].last_error
    await house.write("t", b"1", Put(b"f", b"a", b"y"))
    await house.settled("by_a")
    assert await house.totals("by_a") == {b"y": {"count": 1, "n": 1}}


@in_view_house
async def test_no_share_leaves_before_the_bound_of_its_rows_is_on_disk(house: ViewHouse) -> None:
    """Else a build that is killed would not know which changes the view has to hear of (``progress`` I1)."""
    await house.make_source()
    await house.put_cells("t", b"1", a=b"x", n=b"3")
    saved: list[asyncio.Future[None]] = []

    def save(self: ViewFollower) -> asyncio.Future[None]:
        saved.append(asyncio.get_running_loop().create_future())
        return saved[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ViewFollower, "save_durably", save)
        await house.add(by_a())
        while not saved:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0)
        await house.put_cells("t", b"1", a=b"y")
        for _ in range(50):
            await asyncio.sleep(0)
        assert await house.totals("by_a") == {}
        saved[0].set_result(None)
        await house.settled("by_a")
    assert await house.totals("by_a") == {b"y": {"count": 1, "n": 3}}


@in_view_house
async def test_hops_go_through_a_view(house: ViewHouse) -> None:
    """A trigger on it may write what the view follows: such a cycle ends by the number of its hops alone."""
    await house.make_source()
    await house.add(by_a())
    await house.add(View("above", Source("by_a", ("v:count",))))
    await house.apply(RowMutation(b"r", (Put(b"f", b"a", b"x"), Put(b"f", b"n", b"1")), hops=3))
    await house.settled("by_a")
    (info,) = house.served("by_a").regions
    region = await house.server.opened(house.served("by_a"), info)
    assert [record.hops for _, record in region.log.read_records(None)] == [4]


@in_view_house
async def test_a_view_that_finds_the_applier_full_goes_on_when_there_is_room(house: ViewHouse) -> None:
    """Others have filled it, and their effects end without a word to the view: its own timer is all that it has."""
    await house.make_source()
    await house.add(by_a())
    await house.put_cells("t", b"1", a=b"x", n=b"3")
    await house.settled("by_a")
    (follower,) = house.keeper.hub.followers.of(follower_name("by_a"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(applier, "WAITING_BYTES", 0)
        await house.put_cells("t", b"2", a=b"y", n=b"4")
        await asyncio.sleep(3 * ROOM_S)
        assert await house.totals("by_a") == {b"x": {"count": 1, "n": 3}}
    async with asyncio.timeout(5):
        while len(await house.totals("by_a")) < 2:  # noqa: ASYNC110 - whoever waits for the view would wake it
            await asyncio.sleep(0.001)
    assert await house.totals("by_a") == {b"x": {"count": 1, "n": 3}, b"y": {"count": 1, "n": 4}}
    assert follower.state.last_error == "", "a full applier is no failure"
