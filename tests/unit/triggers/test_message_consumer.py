"""Messages of a served queue as calls of the dispatcher: how each ends, whatever becomes of its call."""

from __future__ import annotations

from typing import Any

from columnar.model.message_delivery import DONE, RETURNED, End, How, ServedMessage
from columnar.model.queue_service import service_of
from columnar.triggers.message_consumer import MessageConsumer
from tests.support.fake_links import USED_US, runs
from tests.unit.triggers.test_dispatcher import Bench, on_bench
from tests.unit.triggers.test_effects_of_calls import did, out, put

PUSHED_MS = 1_795_868_882_562


def message(n: int, attempt: int = 1) -> ServedMessage:
    return ServedMessage(b"jobs", n, b"body %d" % n, b"name", b"g", 3, attempt, PUSHED_MS, ((b"k", b"v"),), b"before")


class Queue:
    """A served queue on a bench, and the ends of its messages."""

    def __init__(self, bench: Bench, **settings: Any) -> None:
        self.consumer = MessageConsumer(service_of("jobs", "m:f", **settings), bench.dispatcher)
        self.ends: dict[int, End] = {}
        self._bench = bench
        registration = self.consumer.registration
        bench.dispatcher.common.know(registration, 0.0)
        costs = bench.dispatcher.common.fair._triggers[registration.name].costs
        costs.is_measured, costs.mean_s = True, USED_US / 1e6  # as after the first call, which runs alone

    def deliver(self, *messages: ServedMessage) -> None:
        for one in messages:
            self.consumer.deliver(one, lambda end, n=one.n: self.ends.__setitem__(n, end))

    def calls(self) -> list[tuple[int, bytes]]:
        """Number and body of each call since the last time."""
        found = [
            (number + at, body[2])
            for number, _, _, _, messages, _, _, _ in runs(*self._bench.main.sent)
            for at, body in enumerate(messages)
        ]
        self._bench.main.sent.clear()
        return found

    async def until_ended(self, n: int) -> End:
        await self._bench.settle()
        self._bench.dispatcher.intake.advance_moved()
        return self.ends.pop(n)


@on_bench()
async def test_a_message_is_done_when_its_effects_are_on_disk_and_they_bear_its_stamp(bench: Bench) -> None:
    queue = Queue(bench)
    queue.deliver(message(7, attempt=3))
    ((number, name, function, side_by_side, messages, progress, is_batch, owner),) = runs(*bench.main.sent)
    assert (name, function, side_by_side, progress, is_batch, owner) == ("queue:jobs", "m:f", 8, None, False, "")
    assert messages == [[b"jobs", 7, b"body 7", b"name", b"g", 3, 3, PUSHED_MS, {b"k": b"v"}, b"before"]]
    did(bench, number, "done", put(b"x"))
    bench.dispatcher.intake.advance_moved()
    assert queue.ends == {}, "nothing is on disk"
    assert await queue.until_ended(7) == DONE
    assert out(bench, b"x") == {b"f:a": (b"1", PUSHED_MS)}
    bench.dispatcher.state.check_invariants()


@on_bench()
async def test_a_message_that_comes_again_while_it_runs_is_ended_by_that_run(bench: Bench) -> None:
    """Its lease was over, as after a stop of the process of some seconds."""
    queue, ends = Queue(bench), list[tuple[str, End]]()
    queue.consumer.deliver(message(7), lambda end: ends.append(("first", end)))
    ((number, body),) = queue.calls()
    queue.consumer.deliver(message(7, attempt=2), lambda end: ends.append(("second", end)))
    assert ends == [("first", RETURNED)]
    assert (queue.calls(), body) == ([], b"body 7")
    did(bench, number)
    await bench.settle()
    bench.dispatcher.intake.advance_moved()
    assert ends == [("first", RETURNED), ("second", DONE)]
    queue.deliver(message(7, attempt=3))
    ((number, _),) = queue.calls()
    did(bench, number, "failed", error="no")
    assert (await queue.until_ended(7)).how is How.FAILED
    assert queue.consumer.state.open_count == 0
    bench.dispatcher.state.check_invariants()


@on_bench()
async def test_each_kind_of_end_is_reported_and_the_dispatcher_keeps_nothing(bench: Bench) -> None:
    queue = Queue(bench)
    queue.deliver(message(1), message(2), message(3), message(4))
    numbers = {body: number for number, body in queue.calls()}
    did(bench, numbers[b"body 1"], "failed", error="Traceback\nError: no")
    did(bench, numbers[b"body 2"], "later", error=30.0)
    did(bench, numbers[b"body 3"], "blocked", error="its module cannot be imported")
    did(bench, numbers[b"body 4"], "done", put(b"x", table=b"nowhere"))
    failed, later, blocked = [await queue.until_ended(n) for n in (1, 2, 3)]
    assert (failed.how, failed.why) == (How.FAILED, "Traceback\nError: no")
    assert later.how is How.LATER
    assert 29.0 < later.seconds <= 30.0
    assert (blocked.how, blocked.why) == (How.BLOCKED, "its module cannot be imported")
    assert 0 < blocked.seconds <= 5.0
    unwritten = await queue.until_ended(4)
    assert unwritten.how is How.FAILED
    assert "nowhere" in unwritten.why
    assert queue.consumer.state.open_count == 0
    assert bench.dispatcher.calls_in_flight() == 0
    assert await bench.keeper.dead_letters("queue:jobs", 10) == [], "the queue has its own dead messages"
    bench.dispatcher.state.check_invariants()


@on_bench()
async def test_a_worker_that_dies_has_its_messages_run_again_one_by_one(bench: Bench) -> None:
    queue = Queue(bench)
    queue.deliver(message(1), message(2))
    assert len(queue.calls()) == 2
    bench.main.die()
    bench.main.start()
    assert queue.ends == {}, "nobody knows which one it was"
    for _ in range(2):
        await bench.ward.until(lambda: runs(*bench.ward.sent))
        ((number, *_, messages, _, _, _),) = runs(*bench.ward.sent)
        bench.ward.sent.clear()
        n = messages[0][1]
        if n == 1:
            bench.ward.listener.take_frame(["began", [number]])  # its module is imported
            bench.ward.die("ended with status 3")
            bench.ward.start()
            end = await queue.until_ended(1)
            assert (end.how, end.why) == (How.FAILED, "the worker process went while it ran: ended with status 3")
        else:
            bench.ward.answer(number)
            bench.ward.start()
            assert await queue.until_ended(2) == DONE


@on_bench()
async def test_a_message_that_hangs_fails_and_others_do_not(bench: Bench) -> None:
    queue = Queue(bench, timeout_ms=20)
    queue.deliver(message(1), message(2))
    numbers = {body: number for number, body in queue.calls()}
    bench.main.listener.take_frame(["began", [numbers[b"body 1"]]])
    await bench.main.until(lambda: bench.main.kills)
    bench.main.die()
    bench.main.start()
    assert (await queue.until_ended(1)).how is How.FAILED
    assert 2 not in queue.ends
    ((number, body),) = queue.calls()
    assert body == b"body 2"
    did(bench, number)
    assert await queue.until_ended(2) == DONE


@on_bench()
async def test_what_has_not_begun_is_returned_and_a_closed_consumer_reports_nothing(bench: Bench) -> None:
    queue = Queue(bench, side_by_side=1)
    queue.deliver(message(1), message(2))
    ((number, _),) = queue.calls()
    queue.consumer.withdraw()
    assert queue.ends == {2: RETURNED}
    queue.ends.clear()
    queue.consumer.close()
    did(bench, number)
    bench.dispatcher.intake.advance_moved()
    assert queue.ends == {}
    assert not queue.consumer.is_present
    later = Queue(bench)
    later.deliver(message(3))
    ((number, body),) = later.calls()
    did(bench, number)
    assert (body, await later.until_ended(3)) == (b"body 3", DONE)
