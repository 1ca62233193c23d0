"""A link whose frames wait for a lease: they go out in order, none that was recalled, and not for ever."""

from __future__ import annotations

import asyncio

from columnar.cluster.peer_link import State
from columnar.model.region_messages import CloseTable
from tests.support.linked_pair import Pair, paired


@paired
async def test_both_ends_hear_once_that_the_link_is_open(pair: Pair) -> None:
    await pair.opened()
    assert sorted(pair.opens, key=id) == sorted([pair.near, pair.far], key=id)
    assert await pair.call().ended == b"cba"
    assert len(pair.opens) == 2


@paired
async def test_frames_without_a_lease_wait_and_go_out_in_order(pair: Pair) -> None:
    await pair.opened()
    pair.has_lease = False
    calls = [pair.call(b"%d" % n) for n in range(10)]
    asking = asyncio.ensure_future(pair.near.send_request(CloseTable("t")))
    await pair.until_withheld()
    pair.near.check_invariants()
    assert all(told.heard == [] for told in calls)
    assert pair.far_side.calls == []
    pair.has_lease = True
    await asyncio.gather(asking, *(told.ended for told in calls))
    assert [told.heard for told in calls] == [["written", b"%d" % n] for n in range(10)]
    pair.near.check_invariants()


@paired
async def test_an_answer_without_a_lease_waits_and_no_request_is_read_meanwhile(pair: Pair) -> None:
    await pair.opened()
    pair.has_lease = False
    first = asyncio.ensure_future(pair.far.send_request(CloseTable("t")))
    await pair.until_withheld()
    second = asyncio.ensure_future(pair.far.send_request(CloseTable("u")))
    await asyncio.sleep(0.05)
    assert pair.near_side.asks == [CloseTable("t")]
    pair.has_lease = True
    await asyncio.gather(first, second)
    assert pair.near_side.asks == [CloseTable("t"), CloseTable("u")]


@paired
async def test_each_write_asks_for_the_lease(pair: Pair) -> None:
    """Two large calls are two writes; the lease ends between them."""
    await pair.opened()
    pair.near.pause_writing()
    calls = [pair.call(b"x" * (300 << 10)) for _ in range(2)]
    questions = pair.questions
    is_valid = iter([True, False])
    pair.gate.is_open = lambda: next(is_valid, pair._asked())  # type: ignore[method-assign]
    pair.has_lease = False
    pair.near.resume_writing()
    await pair.until_withheld()
    assert [told.heard[:1] for told in calls] == [["written"], []]
    pair.near.check_invariants()
    pair.has_lease = True
    assert await calls[1].ended == b"x" * (300 << 10)
    assert pair.questions > questions


@paired
async def test_a_link_without_a_lease_for_too_long_ends(pair: Pair) -> None:
    await pair.opened()
    pair.far_side.is_silent = True
    written = pair.call()
    await pair.far_side.until(1)
    pair.has_lease = False
    waiting = pair.call()
    assert (await written.ended, await waiting.ended) == ("link broke", "not sent")
    assert "no lease" in pair.near.why
    assert pair.gate.waiting_count == 0


def test_a_link_to_the_leader_outlasts_the_lease_however_long_it_is_over() -> None:
    async def test() -> None:
        pair = Pair(outlasts_lease=True)
        await pair.opened()
        pair.has_lease = False
        waiting = pair.call()
        await pair.until_withheld()
        questions = pair.questions
        await asyncio.sleep(3 * pair.gate._wait_s)
        assert pair.questions > questions
        assert waiting.heard == []
        assert pair.gate.waiting_count == 1
        pair.near.check_invariants()
        pair.has_lease = True
        assert await waiting.ended == b"cba"
        pair.has_lease = False
        waiting = pair.call()
        await asyncio.sleep(2 * pair.gate._wait_s)
        pair.near.end("as a test would have it")
        assert waiting.heard == ["not sent"]
        assert pair.gate.waiting_count == 0
        pair.far.end("as a test would have it")

    asyncio.run(test())


@paired
async def test_an_end_of_the_link_leaves_nothing_at_the_gate(pair: Pair) -> None:
    await pair.opened()
    pair.has_lease = False
    waiting = pair.call()
    await pair.until_withheld()
    pair.near.end("as a test would have it")
    assert waiting.heard == ["not sent"]
    assert pair.gate.waiting_count == 0


@paired
async def test_a_recalled_frame_is_not_sent_when_the_lease_comes_back(pair: Pair) -> None:
    await pair.opened()
    pair.has_lease = False
    recalled, kept = pair.call(b"ab"), pair.call(b"cd")
    await pair.until_withheld()
    pair.near.forget_call(recalled.number)  # type: ignore[attr-defined]
    pair.near.check_invariants()
    pair.has_lease = True
    assert await kept.ended == b"dc"
    assert recalled.heard == []
    assert len(pair.far_side.calls) == 1


@paired
async def test_the_greeting_needs_no_lease(pair: Pair) -> None:
    pair.has_lease = False
    await pair.connect()
    while len(pair.opens) < 2:  # noqa: ASYNC110 - as above
        await asyncio.sleep(0)
    assert (pair.near.state, pair.far.state) == (State.OPEN, State.OPEN)
