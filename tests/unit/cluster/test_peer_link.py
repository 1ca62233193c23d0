"""A link to a peer: each call ends once, whatever breaks; one write per iteration; bounds; bad peers are left."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from columnar.cluster import peer_frames, peer_link, row_forms
from columnar.cluster.frame_writer import QueuedFrame
from columnar.cluster.hello import HELLO, Hello
from columnar.cluster.link_errors import LinkBroke, NotSent
from columnar.cluster.peer_link import Refused, State
from columnar.cluster.refusals import Moved, Unknown
from columnar.errors import IllegalArgument
from columnar.model.region_messages import CloseTable, MiddleRow
from tests.support.linked_pair import CLUSTER, REGION, S2, Pair, Told, paired


@paired
async def test_a_call_goes_out_as_it_is_and_its_reply_comes_back(pair: Pair) -> None:
    await pair.opened()
    told = pair.call(b"message")
    assert told.heard == [], "nothing is written within the call"
    assert await told.ended == b"egassem"
    assert told.heard == ["written", b"egassem"]
    (frame,) = pair.far_side.calls
    assert (frame.service, frame.buffer[frame.message_start : frame.end]) == (row_forms.THRIFT1, b"message")


@paired
async def test_both_sides_may_ask(pair: Pair) -> None:
    await pair.opened()
    assert await asyncio.gather(pair.near.send_request(MiddleRow(REGION)), pair.far.send_request(CloseTable("u"))) == [
        b"m",
        None,
    ]
    assert pair.far_side.asks == [MiddleRow(REGION)]
    assert pair.near_side.asks == [CloseTable("u")]


@paired
async def test_answers_come_in_any_order(pair: Pair) -> None:
    await pair.opened()
    pair.far_side.is_silent = True
    calls = [pair.call(b"%d" % n) for n in range(3)]
    await pair.far_side.until(3)
    for frame in reversed(pair.far_side.calls):
        pair.far.answer(frame.number, frame.buffer[frame.message_start : frame.end])
    assert [await told.ended for told in calls] == [b"0", b"1", b"2"]


@paired
async def test_what_one_iteration_sends_goes_out_in_one_write(pair: Pair) -> None:
    await pair.opened()
    writes: list[int] = []
    transport = pair.near._transport
    assert transport is not None

    class Noting:
        def __getattr__(self, name: str) -> Any:
            return getattr(transport, name)

        def writelines(self, parts: list[Any]) -> None:
            writes.append(len(parts))
            transport.writelines(parts)

        def write(self, joined: bytes) -> None:
            writes.append(joined.count(b"abc"))
            transport.write(joined)

    pair.near._writer._transport = Noting()  # type: ignore[assignment]
    calls = [pair.call() for _ in range(5)]
    await asyncio.gather(*(told.ended for told in calls))
    assert writes == [5]
    writes.clear()
    large = [pair.call(bytes(30_000)) for _ in range(3)]
    await asyncio.gather(*(told.ended for told in large))
    assert writes == [6], "a head and a message each, without a copy of all"


@paired
async def test_calls_wait_for_the_peers_hello(pair: Pair) -> None:
    told = pair.call()
    asking = asyncio.ensure_future(pair.near.send_request(MiddleRow(REGION)))
    await asyncio.sleep(0)
    assert told.heard == []
    await pair.connect()
    assert await told.ended == b"cba"
    assert await asking == b"m"


@pytest.mark.parametrize("refusal", [Moved(REGION, S2, 9), Unknown("no such table"), IllegalArgument("no")])
def test_a_refusal_reaches_calls_and_asks(refusal: Any) -> None:
    @paired
    async def scene(pair: Pair) -> None:
        await pair.opened()
        pair.far_side.refusal = refusal
        heard = await pair.call().ended
        assert str(heard) == str(refusal)
        assert type(heard) is type(refusal)
        with pytest.raises(type(refusal) if isinstance(refusal, Exception) else Refused) as caught:
            await pair.near.send_request(CloseTable("t"))
        assert str(refusal) in str(caught.value)

    scene()


@paired
async def test_a_fault_of_the_answerer_is_a_refusal_and_the_link_stays(pair: Pair) -> None:
    await pair.opened()
    pair.far_side.failure = ZeroDivisionError("a fault")
    assert "a fault" in str(await pair.call().ended)
    with pytest.raises(Exception, match="a fault"):
        await pair.near.send_request(CloseTable("t"))
    pair.far_side.failure = None
    assert await pair.call().ended == b"cba"


# --- ends ------------------------------------------------------------------------------------------


@paired
async def test_a_broken_link_tells_written_calls_from_others(pair: Pair) -> None:
    await pair.opened()
    pair.far_side.is_silent = True
    written = pair.call()
    asked = asyncio.ensure_future(pair.near.send_request(CloseTable("t")))
    await pair.far_side.until(2)
    queued = pair.call()
    asking = asyncio.ensure_future(pair.near.send_request(CloseTable("u")))
    await asyncio.sleep(0)
    pair.near._writer._flush_is_planned = True  # the next write does not come any more
    pair.near.end("as a test would have it")
    assert written.heard == ["written", "link broke"]
    assert queued.heard[-1] == ("link broke" if "written" in queued.heard else "not sent")
    with pytest.raises(LinkBroke):
        await asked
    with pytest.raises((NotSent, LinkBroke)):
        await asking
    assert pair.ends == [pair.near]


@paired
async def test_a_peer_that_goes_away_ends_the_link(pair: Pair) -> None:
    await pair.opened()
    pair.far_side.is_silent = True
    told = pair.call()
    await pair.far_side.until(1)
    pair.far.end("killed")
    assert await told.ended == "link broke"
    assert pair.near.state is State.ENDED
    assert pair.call().heard == ["not sent"]
    with pytest.raises(NotSent):
        await pair.near.send_request(CloseTable("t"))


@paired
async def test_a_peer_of_another_cluster_is_left(pair: Pair) -> None:
    pair.far = pair._link(S2, pair.far_side, "another")
    told = pair.call()
    await pair.connect()
    assert await told.ended == "not sent"
    assert "of cluster another" in pair.near.why


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x00\x00\x01garbage that is no frame",
        peer_frames.request_frame(1, "close_table", {"table": "t"}),
        peer_frames.hello({"cluster": 7}),
        peer_frames.hello(HELLO.encode(Hello(CLUSTER, S2))) * 2,
    ],
)
def test_bad_frames_end_the_link(data: bytes) -> None:
    @paired
    async def scene(pair: Pair) -> None:
        told = pair.call()
        here, there = socket.socketpair()
        await asyncio.get_running_loop().create_connection(lambda: pair.near, sock=here)
        with there:
            there.sendall(data)
            assert await told.ended in ("not sent", "link broke")
        assert pair.near.why.startswith("the peer's frames are bad")

    scene()


@paired
async def test_an_answer_that_cannot_be_read_ends_the_link_and_its_ask(pair: Pair) -> None:
    await pair.opened()
    pair.far_side.is_silent = True
    asking = asyncio.ensure_future(pair.near.send_request(MiddleRow(REGION)))
    await pair.far_side.until(1)
    pair.far._send(QueuedFrame(peer_frames.response_frame(pair.near._last_number, 7), b"", None))
    with pytest.raises(LinkBroke):
        await asking
    assert pair.near.state is State.ENDED


@paired
async def test_an_ask_that_the_peer_does_not_know_leaves_the_link_open(pair: Pair) -> None:
    await pair.opened()
    told = Told()
    pair.near._begin(99, peer_frames.request_frame(99, "of a newer version", {}), b"", told)
    assert "no message that this version knows" in str(await told.ended)
    assert await pair.call().ended == b"cba"


# --- taking back, bounds ---------------------------------------------------------------------------


@paired
async def test_a_call_that_was_recalled_never_reaches_the_peer(pair: Pair) -> None:
    await pair.opened()
    gone, kept = pair.call(b"gone"), pair.call(b"kept")
    pair.near.forget_call(gone.number)  # type: ignore[attr-defined]
    pair.near.check_invariants()
    assert await kept.ended == b"tpek"
    assert gone.heard == []
    assert len(pair.far_side.calls) == 1


@paired
async def test_a_late_answer_to_a_forgotten_call_is_dropped(pair: Pair) -> None:
    await pair.opened()
    pair.far_side.is_silent = True
    told = pair.call()
    await pair.far_side.until(1)
    pair.near.forget_call(told.number)  # type: ignore[attr-defined]
    pair.far.answer(pair.far_side.calls[0].number, b"late")
    await pair.far.send_request(CloseTable("t"))
    assert told.heard == ["written"]


@paired
async def test_an_ask_that_is_cancelled_before_it_was_written_is_not_sent(pair: Pair) -> None:
    await pair.opened()
    asking = asyncio.ensure_future(pair.near.send_request(CloseTable("t")))
    pair.near.pause_writing()
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.wait([asking])
    pair.near.check_invariants()
    pair.near.resume_writing()
    assert await pair.call().ended == b"cba"
    assert pair.far_side.asks == []


@paired
async def test_a_call_beyond_the_bound_of_waiting_frames_is_not_sent(pair: Pair) -> None:
    await pair.opened()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(peer_link, "PEER_QUEUED_BYTES", 1_000)
        pair.near.pause_writing()
        first = pair.call(b"x" * 2_000)
        for _ in range(5):
            await asyncio.sleep(0)
        assert (first.heard, pair.call().heard) == ([], ["not sent"])
        pair.near.resume_writing()
        assert await first.ended == b"x" * 2_000
        assert await pair.call().ended == b"cba"


@paired
async def test_messages_larger_than_a_sockets_buffer_pass_whole(pair: Pair) -> None:
    await pair.opened()
    message = bytes(range(256)) * 40_000
    calls = [pair.call(message) for _ in range(3)]
    for told in calls:
        assert await told.ended == message[::-1]
    assert pair.near.queued_bytes == 0
