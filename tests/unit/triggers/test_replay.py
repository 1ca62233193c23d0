"""Replays: from a time, as far as the log goes, or from the beginning; each region carries a wish out once."""

from __future__ import annotations

from typing import Any

import pytest

from columnar.errors import HostError, IllegalArgument, TriggerError
from columnar.flows.delivery_cursor import Cursor, pack_cursor
from columnar.flows.follower_name import trigger
from columnar.model.derivations import BEGINNING, Replay
from columnar.model.trigger_registration import start_at
from columnar.regions.log.change_record import Sequence
from columnar.triggers import replaying
from columnar.triggers.replaying import REPLAY
from tests.support.fake_links import runs
from tests.unit.triggers.test_dispatcher import Bench, on_bench
from tests.unit.triggers.test_effects_of_calls import did

KEPT = {"CHANGE_LOG": "1"}  # second of the bench's clock, which goes on a millisecond with each look
SEQUENCE, IS_BACKFILL, IS_REPEAT = 3, 8, 13


def taken(bench: Bench) -> list[list[Any]]:
    """The changes of the calls sent, which are answered."""
    calls = runs(*bench.main.sent)
    bench.main.sent.clear()
    for call in calls:
        did(bench, call[0])
    return [call[4][0] for call in calls]


async def deliver(bench: Bench, *rows: bytes) -> None:
    for row in rows:
        await bench.put(row)
        while taken(bench):
            await bench.settle()


def marked(bench: Bench, row: bytes = b"a") -> int:
    """The log has a mark of now; the time after it."""
    region = bench.region(row)
    while not region.log.retention.marks() or region.log.retention.marks()[-1][1] < region.log.written_to:
        bench.hub.upkeep.save(region)
    return region.now_ms


async def all_taken(bench: Bench) -> list[list[Any]]:
    found: list[list[Any]] = []
    while not await bench.keeper.wait_delivered("t", "", 0.0):
        await bench.main.until(lambda: bench.main.sent)
        found += taken(bench)
    return found


@on_bench(attributes=KEPT)
async def test_changes_since_a_time_come_again_as_repeats(bench: Bench) -> None:
    await bench.add("t")
    await deliver(bench, b"old")
    since_ms = marked(bench)
    await deliver(bench, b"a", b"b", b"a")
    await bench.triggers.replay("t", since_ms)
    again = await all_taken(bench)
    assert sorted(change[1] for change in again) == [b"a", b"a", b"b"]
    assert all(change[IS_REPEAT] and not change[IS_BACKFILL] for change in again)
    first, second = (change[SEQUENCE] for change in again if change[1] == b"a")
    assert first < second, "those of a row in their order"
    await bench.put(b"new")
    ((change),) = taken(bench)
    assert not change[IS_REPEAT]


@on_bench(attributes=KEPT)
async def test_a_replay_goes_on_where_it_was_after_a_restart_and_is_carried_out_once(bench: Bench) -> None:
    await bench.add("t", side_by_side=1)
    await deliver(bench, b"old")
    since_ms = marked(bench)
    await deliver(bench, b"a", b"b")
    await bench.triggers.replay("t", since_ms)
    await bench.main.until(lambda: bench.main.sent)
    (first,) = taken(bench)
    assert (first[1], first[IS_REPEAT]) == (b"a", True)
    await bench.restart()
    bench.region(b"a")
    (second,) = await all_taken(bench)
    assert (second[1], second[IS_REPEAT]) == (b"b", True)
    await bench.restart()
    bench.region(b"a")
    assert await all_taken(bench) == []


@on_bench(regions=2, attributes=KEPT)
async def test_a_wish_that_is_on_disk_is_carried_out_when_regions_open(bench: Bench) -> None:
    await bench.add("t")
    await deliver(bench, b"00", b"01")
    since_ms = max(marked(bench, b"00"), marked(bench, b"01"))
    await deliver(bench, b"00a", b"01a")

    def dies(step: str) -> None:
        if step == "replayed":
            raise KeyboardInterrupt

    bench.triggers.at = dies
    with pytest.raises(KeyboardInterrupt):
        await bench.triggers.replay("t", since_ms)
    assert taken(bench) == []
    await bench.restart()
    assert bench.keeper.triggers.known("t").replay == Replay(1, since_ms)
    for row in (b"00", b"01"):
        bench.region(row)
    assert sorted(change[1] for change in await all_taken(bench)) == [b"00a", b"01a"]


@on_bench(regions=2)
async def test_a_replay_from_the_beginning_shows_every_row_once(bench: Bench) -> None:
    await bench.add("t")
    await deliver(bench, b"00", b"01", b"00")
    await bench.triggers.replay("t", BEGINNING)
    again = await all_taken(bench)
    assert sorted((change[1], change[IS_BACKFILL]) for change in again) == [(b"00", True), (b"01", True)]
    await bench.triggers.replay("t", BEGINNING)
    assert len(await all_taken(bench)) == 2, "another wish"


@on_bench()
async def test_a_time_that_no_log_reaches_is_refused_with_the_way_out(bench: Bench) -> None:
    await bench.add("t")
    await deliver(bench, b"a")
    with pytest.raises(TriggerError, match=r"keeps no changes.* --from beginning .* CHANGE_LOG="):
        await bench.triggers.replay("t", 1_000)
    with pytest.raises(IllegalArgument, match="begins at a time"):
        await bench.triggers.replay("t", -5)
    with pytest.raises(TriggerError, match="there is no trigger"):
        await bench.triggers.replay("none", BEGINNING)
    assert bench.triggers.derivations.known("t").replay is None


@on_bench(attributes=KEPT)
async def test_a_time_before_the_log_is_refused_with_the_time_it_reaches(bench: Bench) -> None:
    await bench.add("t")
    await deliver(bench, b"a")
    marked(bench)
    with pytest.raises(TriggerError, match=r"reaches back to 1970-01-01T00:00:0.* only; columnar trigger replay t"):
        await bench.triggers.replay("t", 1)


@on_bench(attributes=KEPT)
async def test_what_is_shown_again_stays_in_the_log_however_old(bench: Bench) -> None:
    await bench.add("t")
    await deliver(bench, b"older", b"old")
    since_ms = marked(bench)
    await deliver(bench, b"a")
    await bench.triggers.pause("t")
    await bench.triggers.replay("t", since_ms)
    region = bench.region(b"a")
    later_ms = region.now_ms + 3_000
    while region.now_ms < later_ms:
        bench.hub.upkeep.save(region)
    assert region.log.counts.records == 2, "what nobody needs is gone"
    await bench.triggers.resume("t")
    assert [change[1] for change in await all_taken(bench)] == [b"a"]


@on_bench(attributes=KEPT)
async def test_open_changes_stay_open_and_a_removed_trigger_leaves_no_mark(bench: Bench) -> None:
    await bench.add("t", attempts=100)
    await bench.put(b"stuck")
    ((call),) = runs(*bench.main.sent)
    bench.main.sent.clear()
    did(bench, call[0], "failed", error="Error: no")
    since_ms = marked(bench)
    await deliver(bench, b"a")
    await bench.triggers.replay("t", since_ms)
    again = await all_taken(bench)
    assert sorted((change[1], change[7]) for change in again) == [(b"a", 1), (b"stuck", 2)]
    region = bench.region(b"a")
    assert region.mark(REPLAY + b"t") is not None
    await bench.triggers.remove("t")
    assert region.mark(REPLAY + b"t") is None


# --- a trigger that starts at a time ---------------------------------------------------------------------


@on_bench(regions=2, attributes=KEPT)
async def test_a_trigger_that_starts_at_a_time_is_shown_changes_since_then_as_new_ones(bench: Bench) -> None:
    bench.hub.table_installed("t")  # its log is kept, though nobody follows yet
    await bench.put(b"00old", b"01old")
    since_ms = max(marked(bench, b"00"), marked(bench, b"01"))
    await bench.put(b"00a", b"01a", b"00a")
    await bench.add("t", from_where=start_at(since_ms))
    await bench.put(b"00new")
    found = await all_taken(bench)
    assert sorted(change[1] for change in found) == [b"00a", b"00a", b"00new", b"01a"]
    assert not any(change[IS_REPEAT] or change[IS_BACKFILL] for change in found)
    await bench.restart()
    for row in (b"00", b"01"):
        bench.region(row)
    assert await bench.keeper.wait_delivered("t", "", 10.0)
    assert taken(bench) == [], "it starts once"
    await bench.triggers.replay("t", since_ms)
    again = await all_taken(bench)
    assert sorted(change[1] for change in again) == [b"00a", b"00a", b"00new", b"01a"]
    assert all(change[IS_REPEAT] for change in again)


@on_bench(regions=2, attributes=KEPT)
async def test_a_region_that_opens_later_starts_at_the_time_too(bench: Bench) -> None:
    bench.hub.table_installed("t")  # its log is kept, though nobody follows yet
    await bench.put(b"00old", b"01old")
    since_ms = max(marked(bench, b"00"), marked(bench, b"01"))
    await bench.put(b"00a", b"01a")

    def dies(step: str) -> None:
        if step == "running":
            raise HostError("as told")

    bench.triggers.at = dies
    with pytest.raises(HostError, match="as told"):
        await bench.add("t", from_where=start_at(since_ms))
    await bench.restart()
    for row in (b"00", b"01"):
        bench.region(row)
    assert sorted(change[1] for change in await all_taken(bench)) == [b"00a", b"01a"]


@on_bench(regions=2, attributes=KEPT)
async def test_a_log_that_is_empty_is_whole_from_when_it_is_asked(bench: Bench) -> None:
    """A region without a write holds up no replay of the others for ever."""
    bench.hub.table_installed("t")
    await bench.put(b"00old")
    since_ms = marked(bench, b"00")
    with pytest.raises(TriggerError, match=r"reaches back to 1970-01-01T00:00:0.* only; trigger t that starts"):
        await bench.add("t", from_where=start_at(1))
    since_ms = max(since_ms, bench.region(b"01").now_ms)
    await bench.put(b"00a", b"01a")
    await bench.add("t", from_where=start_at(since_ms))
    assert sorted(change[1] for change in await all_taken(bench)) == [b"00a", b"01a"]


@on_bench()
async def test_a_start_that_no_log_reaches_is_refused_with_the_way_out(bench: Bench) -> None:
    await bench.put(b"a")
    with pytest.raises(TriggerError, match=r"keeps no changes.*starts from the beginning .* CHANGE_LOG="):
        await bench.add("t", from_where="2026-01-31T12:00Z")
    assert bench.triggers.derivations.find("t") is None


@on_bench()
async def test_the_bytes_of_the_mark(bench: Bench) -> None:
    region = bench.region(b"a")
    region.log.cursors.save_cursor("links", pack_cursor(Cursor(Sequence(7, 2, 300), ())))
    replaying.carry_out(trigger("links"), Replay(3, BEGINNING), region, starts=False)
    read_to = "0000000000000007" + "00000002" + "000000000000012c"
    assert region.mark(b"replay/links") == bytes.fromhex("0000000000000003" + read_to)
    assert region.mark(b"backfill/links") == b"@"
    assert replaying.repeats_to(region, trigger("links")) == Sequence(7, 2, 300)
