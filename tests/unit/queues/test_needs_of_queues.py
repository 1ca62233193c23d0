"""The needs of docs/queues.md that ``tests.measure.queues`` shows in times and bytes, here as counts of steps.

The counts are of rows that the store reads, of fsyncs, and of messages between two of a group.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from pathlib import Path
from typing import Any

import pytest

from columnar.errors import RegionTooBusy
from columnar.queues import desk, queue_rows, queue_state
from columnar.queues.desk import LISTED_ROWS
from columnar.queues.queue_state import REFILL_ROWS
from tests.support.deep import seeds
from tests.support.queue_house import Queues, queues

POPS = 50
ROOT = Path(__file__).parents[3]


class ReadRows:
    """How many rows queues have read, those of deletions included."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        over = queue_rows.RowCursor.over
        whole_row = queue_rows.get_whole_row

        def counted_over(*given: Any, **options: Any) -> Any:
            cursor = over(*given, **options)

            class Counted:
                def next_row(_self) -> Any:
                    found = cursor.next_row()
                    self.count += found is not None
                    return found

            return Counted()

        def counted_row(*given: Any) -> Any:
            self.count += 1
            return whole_row(*given)

        monkeypatch.setattr(queue_rows, "RowCursor", type("Cursors", (), {"over": staticmethod(counted_over)}))
        monkeypatch.setattr(queue_rows, "get_whole_row", counted_row)

    async def of_pops(self, house: Queues) -> int:
        """Return the rows that POPS messages cost, from the pop to the commit, by a desk that is made for them."""
        house.begin_again()
        self.count = 0
        for _ in range(POPS):
            (found,) = await house.pop()
            assert await house.settle([found]) == [True]
        return self.count


async def fill(house: Queues, count: int, **given: Any) -> None:
    for start in range(0, count, 1_000):
        await house.push(*(b"%d" % n for n in range(start, min(count, start + 1_000))), **given)


def test_a_pop_reads_no_more_beside_many_messages_than_beside_few(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = ReadRows(monkeypatch)
    counts: list[int] = []

    @queues
    async def read(house: Queues) -> None:
        for count in (2 * REFILL_ROWS, seeds("messages beside a pop", deep=40_000, short=4_000)):
            await fill(house, count)
            counts.append(await rows.of_pops(house))

    read()
    few, many = counts
    assert few == many
    assert many <= POPS + REFILL_ROWS + LISTED_ROWS + 10, "what a desk reads in advance, and the message itself"


def test_consumed_messages_are_not_read_again_and_leave_no_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = ReadRows(monkeypatch)

    @queues
    async def turn_over(house: Queues) -> None:
        await fill(house, 2 * REFILL_ROWS)
        before = await rows.of_pops(house)
        level = len(house.stored_rows())
        for _ in range(seeds("thousands of messages through a queue", deep=25, short=4)):
            await fill(house, 1_000)
            found = await house.pop(1_000)
            assert all(await house.settle(found))
        assert len(house.stored_rows()) == level
        await house.push(*[b"x"] * POPS)
        rows.count = 0
        for _ in range(POPS):
            assert await house.settle(await house.pop()) == [True]
        assert rows.count <= before

    turn_over()


@queues
async def test_no_number_of_messages_turns_a_push_away(house: Queues, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (desk, queue_state):
        monkeypatch.setattr(module, "QUEUE_CACHED", 20)
        monkeypatch.setattr(module, "QUEUE_LEASES", 5)
    await fill(house, 3_000, group=b"g")
    (one,) = house.desks.usable_desks()
    assert one.state.cached <= 20 + REFILL_ROWS, "the rest is on disk alone"
    held = await house.pop(5)
    assert len(held) == 5
    assert await house.pop() == [], "the bound of what is in flight"
    await house.push(b"more", group=b"g")
    with pytest.raises(RegionTooBusy, match="commit some, then try again"):
        await house.push(b"late", delayMs=1_000)
    seen = [one.body for one in held]
    while held:
        assert all(await house.settle(held))
        held = await house.pop(5)
        seen += [one.body for one in held]
    assert seen == [b"%d" % n for n in range(3_000)] + [b"more"]


@queues
async def test_a_lower_priority_waits_as_long_as_higher_ones_come(house: Queues) -> None:
    await house.push(b"low", priority=1)
    for n in range(200):
        await house.push(b"high %d" % n, priority=2)
        (found,) = await house.pop()
        assert found.body == b"high %d" % n
        await house.settle([found])
    assert await house.bodies() == [b"low"]


@queues
async def test_no_group_starves_however_many_messages_others_push(house: Queues) -> None:
    """A message that is the first of its group is popped after at most one of each other group, the oldest first."""
    groups = [b"g%d" % n for n in range(10)]
    waiting = {group: deque[bytes]() for group in groups}
    passed = dict.fromkeys(groups, 0)
    for n in range(600):
        for group in (groups[0], groups[n % 3], groups[n % len(groups)]):  # some push more than is popped
            waiting[group].append(b"%d of %s" % (len(waiting[group]) + n, group))
            await house.push(waiting[group][-1], group=group)
        (found,) = await house.pop()
        assert found.body == waiting[found.group].popleft(), "within a group the oldest comes first"
        await house.settle([found])
        passed[found.group] = 0
        for group in groups:
            if group != found.group and waiting[group]:
                passed[group] += 1
                assert passed[group] <= len(groups)
    assert len(waiting[groups[0]]) > 300, "it has a backlog that grows"


@queues
async def test_many_pushers_share_an_fsync_and_none_waits_for_another(
    house: Queues, monkeypatch: pytest.MonkeyPatch
) -> None:
    await house.push(b"first")
    rows = ReadRows(monkeypatch)
    gate = house.gate
    gate.hold()
    before = gate.syncs
    pushes = [asyncio.ensure_future(house.push(b"%d" % n)) for n in range(64)]
    await asyncio.sleep(0)
    (one,) = house.desks.usable_desks()
    assert one.totals.pushed == 65, "each has written its row while no fsync has ended"
    gate.release()
    await asyncio.gather(*pushes)
    assert gate.syncs - before <= 3, "that of the first one, and one for all others"
    assert rows.count == 0, "a push reads nothing"


@queues
async def test_a_pop_needs_no_fsync_and_commits_share_one(house: Queues) -> None:
    await fill(house, 64)
    gate = house.gate
    before = gate.syncs
    found = [message for _ in range(64) for message in await house.pop()]
    assert gate.syncs == before
    gate.hold()
    commits = [asyncio.ensure_future(house.settle([one])) for one in found]
    await asyncio.sleep(0)
    (one,) = house.desks.usable_desks()
    assert one.totals.committed == 64, "each has written while no fsync has ended"
    gate.release()
    await asyncio.gather(*commits)
    assert gate.syncs - before <= 3, "that of the first one, and one for all others"


def test_each_test_that_the_page_names_is_there() -> None:
    page = (ROOT / "docs" / "queues.md").read_text()
    named = set(re.findall(r"`(test_\w+)`", page))
    folders = (ROOT / "tests" / "unit" / "queues", ROOT / "tests" / "integration")
    sources = "".join(one.read_text() for folder in folders for one in folder.glob("test_*queue*.py"))
    sources += (folders[0] / "test_desk.py").read_text()
    assert len(named) >= 10
    assert {one for one in named if f"def {one}(" not in sources} == set()
    files = {one for one in re.findall(r"`(tests/[\w/.]+)`", page) if not (ROOT / one).exists()}
    assert files == set()
