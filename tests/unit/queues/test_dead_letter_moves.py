"""Dead messages on their way to another queue: moved once, whatever ends meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from columnar.cluster.peer_requests import QueuedMessage
from columnar.errors import (
    IllegalArgument,
    NotServingRegion,
    OutcomeUnknown,
    RegionNotLocal,
    RegionUnavailable,
)
from columnar.operations import row_desks
from columnar.queues import dead_letter_moves, keys
from columnar.queues.dead_letter_moves import DeadLetterMoves
from columnar.queues.queue_pushes import QueuePushes
from columnar.queues.queue_rows import Found
from tests.support.queue_house import CTX, Q, Queues, queues
from tests.support.service_calls import answer_of
from tests.unit.queues.test_ends_of_messages import desk_of, killed


class Elsewhere:
    """The other queue: fails as often as it is told, and loses answers."""

    def __init__(self, house: Queues, *outcomes: Exception | None) -> None:
        self.outcomes = list(outcomes)
        self.pushes = QueuePushes(house.desks, lambda: None)
        self.called = 0
        self.moves = DeadLetterMoves(self.push)
        house.desks.move_dead_to(self.moves.begin_moves)

    async def ended(self) -> None:
        """Return when nothing is being moved."""
        await asyncio.gather(*self.moves._running.values())

    async def push(self, queue: bytes, messages: Sequence[QueuedMessage]) -> None:
        self.called += 1
        failure = self.outcomes.pop(0) if self.outcomes else None
        if not isinstance(failure, NotServingRegion):  # else nothing was done
            await self.pushes.push(queue, messages)
        if failure is not None:
            raise failure


async def moved(house: Queues, other: Elsewhere, queue: bytes = b"others") -> list[Any]:
    """The messages of the other queue, once nothing is being moved."""
    await other.ended()
    return list(await answer_of(house.methods.columnarQueuePop(CTX, queue, 100, 0, 0)))


@queues
async def test_dead_messages_go_to_another_queue_with_what_is_known_of_them(house: Queues) -> None:
    other = Elsewhere(house)
    await house.configure(deadTo=b"others")
    await killed(house, b"one", b"two", group=b"g", headers={b"h": b"v"})
    found = await moved(house, other)
    assert [(one.body, one.group, one.attempts) for one in found] == [(b"one", b"g", 1), (b"two", b"g", 1)]
    number = found[0].headers.pop(b"dead-id")
    assert int(number) < int(found[0].id), "that of the message in its own queue"
    assert found[0].headers == {b"h": b"v", b"dead-from": Q, b"dead-error": b"broken", b"dead-attempts": b"1"}
    assert (await house.stats()).dead == 0
    assert await house.dead() == []


@queues
async def test_a_lost_answer_doubles_no_dead_message(house: Queues, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead_letter_moves, "FIRST_PAUSE_S", 0.001)
    lost = OutcomeUnknown("the answer is lost")
    other = Elsewhere(house, NotServingRegion("nobody has it"), lost, lost)
    await house.configure(deadTo=b"others")
    await killed(house, b"one", b"two")
    assert [one.body for one in await moved(house, other)] == [b"one", b"two"]
    assert (other.called, (await house.stats()).dead) == (4, 0)
    assert (await house.stats_of(b"others")).pushed == 2


@queues
async def test_dead_messages_are_moved_when_the_setting_comes_and_after_a_restart(house: Queues) -> None:
    await killed(house, b"one")
    other = Elsewhere(house)
    await house.configure(deadTo=b"others")
    assert [one.body for one in await moved(house, other)] == [b"one"]
    house.desks.move_dead_to(lambda _desk: None)  # the store ends before they are moved
    await killed(house, b"two")
    assert (await house.stats()).dead == 1
    house.begin_again()
    other = Elsewhere(house)
    await house.stats()
    assert [one.body for one in await moved(house, other)] == [b"two"]


class Waiting(Elsewhere):
    """Another queue whose server is slow: a push waits for ``go_on``."""

    def __init__(self, house: Queues) -> None:
        super().__init__(house)
        self.go_on = asyncio.Event()

    async def push(self, queue: bytes, messages: Sequence[QueuedMessage]) -> None:
        await self.go_on.wait()
        await super().push(queue, messages)


@queues
async def test_a_desk_that_was_replaced_while_its_dead_messages_moved_counts_nothing(house: Queues) -> None:
    other = Waiting(house)
    await house.configure(deadTo=b"others")
    await killed(house, b"one")
    while not desk_of(house).background.moving:  # noqa: ASYNC110
        await asyncio.sleep(0)
    desk_of(house).note_broken()
    await house.push(b"two")
    other.go_on.set()
    assert [one.body for one in await moved(house, other)] == [b"one"]
    house.begin_again()
    stats = await house.stats()
    assert (stats.messages, stats.dead, stats.pushed) == (1, 0, 2)


@queues
async def test_a_dead_message_on_its_way_to_another_queue_does_not_come_back(house: Queues) -> None:
    other = Waiting(house)
    await house.configure(deadTo=b"others")
    await killed(house, b"one")
    while not desk_of(house).background.moving:  # noqa: ASYNC110
        await asyncio.sleep(0)
    number = (await house.dead())[0].id
    assert (await house.redrive(), await house.redrive([number])) == (0, 0)
    other.go_on.set()
    assert [one.body for one in await moved(house, other)] == [b"one"]
    assert await house.pop() == []
    assert ((await house.stats()).messages, desk_of(house).background.moving) == (0, frozenset())


def test_a_desk_that_is_forgotten_while_its_dead_messages_move_counts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_desks, "DESKS_BYTES", 1)

    @queues
    async def counted(house: Queues) -> None:
        other = Waiting(house)
        await house.configure(deadTo=b"others")
        await killed(house, b"one")
        for _ in range(2):
            await house.stats_of(b"third")  # there is room for one desk
        await house.push(b"new")
        other.go_on.set()
        assert [one.body for one in await moved(house, other)] == [b"one"]
        found = await house.stats()
        assert (found.messages, found.dead, found.pushed) == (1, 0, 2)
        assert await house.dead() == []

    counted()


@queues
async def test_dead_messages_are_moved_by_the_desk_that_follows_another(house: Queues) -> None:
    other = Waiting(house)
    await house.configure(deadTo=b"others")
    await killed(house, b"one")
    await asyncio.sleep(0)
    house.server.eviction.evict(house.region(Q))
    await house.stats()  # opens the region again, while the old desk still waits for an answer
    other.go_on.set()
    assert [one.body for one in await moved(house, other)] == [b"one"]
    assert ((await house.stats()).dead, (await house.stats_of(b"others")).pushed) == (0, 1)


@queues
async def test_dead_messages_wait_for_a_queue_whose_region_opens_late(
    house: Queues, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_letter_moves, "FIRST_PAUSE_S", 0.001)
    late = RegionUnavailable("r", asyncio.get_running_loop().create_future(), is_opening=True)
    other = Elsewhere(house, late, RegionNotLocal("t", "r"))
    await house.configure(deadTo=b"others")
    await killed(house, b"one")
    assert [one.body for one in await moved(house, other)] == [b"one"]


@queues
async def test_what_the_other_queue_cannot_take_stays(house: Queues, caplog: pytest.LogCaptureFixture) -> None:
    other = Elsewhere(house, IllegalArgument("it takes none of these"))
    await house.configure(deadTo=b"others")
    await killed(house, b"one")
    await other.ended()
    assert "stay: it takes none of these" in caplog.text
    assert [one.body for one in await house.dead()] == [b"one"]
    await house.configure(deadTo=b"third")
    assert [one.body for one in await moved(house, other, b"third")] == [b"one"]
    with pytest.raises(IllegalArgument, match="go to another queue"):
        await house.configure(deadTo=Q)


def test_a_message_without_room_for_more_headers_is_moved_as_it_is() -> None:
    for headers in (
        tuple((b"%d" % number, b"") for number in range(keys.HEADERS - 2)),
        ((b"large", b"x" * 60_000),) * 17,
    ):
        full = Found(7, 0, keys.Subqueue(255, b""), 3, 0, keys.Message(b"", headers, b"x" * 27_500), b"e" * 1_000)
        assert dead_letter_moves.moved_message(Q, full).headers == headers
