"""The calls of a tweet: the bytes that a client of Thrift would send, and replies that it would read."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from thriftpy2.transport.memory import TCyMemoryBuffer

from benchmarks.flows_plan import tweet_id, tweet_text, user_key
from benchmarks.flows_steps import (
    BATCH_FOLLOWERS,
    Steps,
    Tweet,
    batched,
    followers_in,
    get_followers,
    get_in,
    get_own,
    is_there,
    one_by_one,
    own_only,
    spread,
)
from columnar.bench.calls import batch, call, puts
from columnar.bench.protocols import BINARY, REPLY, BadReply
from columnar.wire import idl

TWEET = Tweet(user_key(1), tweet_id(5), tweet_text(5))
FOLLOWERS = [user_key(2), user_key(3)]
LOOK = call("getRow", b"followers", TWEET.author, {})
OWN = call("mutateRow", b"timeline", TWEET.author, puts([(b"own:" + TWEET.id, TWEET.text)]), {})


def reply(method: str, success: object = None) -> bytes:
    buffer = TCyMemoryBuffer()
    protocol = BINARY.protocol(buffer)
    result = getattr(idl.SERVICE, f"{method}_result")()
    if success is not None:
        result.success = success
    protocol.write_message_begin(method, REPLY, 0)
    protocol.write_struct(result)
    protocol.write_message_end()
    message = bytes(buffer.getvalue())
    return len(message).to_bytes(4, "big") + message


def row_of(followers: Sequence[bytes], value: bytes = b"1") -> bytes:
    columns = {b"f:" + follower: idl.hbase.TCell(value=value, timestamp=7) for follower in followers}
    return reply("getRow", [idl.hbase.TRowResult(row=TWEET.author, columns=columns)])


def said(steps: Steps, *replies: bytes) -> list[bytes]:
    """The frames of the steps, which end with the last reply."""
    found = [next(steps)]
    for number, one in enumerate(replies):
        try:
            found.append(steps.send(one))
        except StopIteration:
            assert number == len(replies) - 1, "the steps ended before the last reply"
            return found
    raise AssertionError("the steps go on")


def copies(followers: Sequence[bytes]) -> list[tuple[bytes, list[tuple[bytes, bytes]]]]:
    return [(follower, [(b"in:" + TWEET.id, TWEET.text)]) for follower in followers]


def test_sync_writes_one_follower_after_the_other() -> None:
    put = reply("mutateRow")
    each = [call("mutateRow", b"timeline", key, puts(cells), {}) for key, cells in copies(FOLLOWERS)]
    assert said(one_by_one(TWEET), put, row_of(FOLLOWERS), put, put) == [OWN, LOOK, *each]


def test_batched_writes_the_own_timeline_and_the_others_at_once() -> None:
    rows = [*copies(FOLLOWERS), (TWEET.author, [(b"own:" + TWEET.id, TWEET.text)])]
    whole = call("mutateRows", b"timeline", batch(rows), {})
    assert said(batched(TWEET), row_of(FOLLOWERS), reply("mutateRows")) == [LOOK, whole]


def test_a_worker_writes_the_others_alone_and_nothing_for_nobody() -> None:
    whole = call("mutateRows", b"timeline", batch(copies(FOLLOWERS)), {})
    assert said(spread(TWEET), row_of(FOLLOWERS), reply("mutateRows")) == [LOOK, whole]
    assert said(spread(TWEET), reply("getRow", [])) == [LOOK]


def test_an_author_of_many_followers_writes_one_batch_after_the_other() -> None:
    many = [user_key(user) for user in range(BATCH_FOLLOWERS + 2)]
    own, done = (TWEET.author, [(b"own:" + TWEET.id, TWEET.text)]), reply("mutateRows")
    first, rest = copies(many[:BATCH_FOLLOWERS]), call("mutateRows", b"timeline", batch(copies(many[-2:])), {})
    frames = said(batched(TWEET), row_of(many), done, done)
    assert frames == [LOOK, call("mutateRows", b"timeline", batch([*first, own]), {}), rest]
    frames = said(spread(TWEET), row_of(many), done, done)
    assert frames == [LOOK, call("mutateRows", b"timeline", batch(first), {}), rest]


def test_the_application_before_a_queue_or_a_trigger_writes_the_own_timeline() -> None:
    assert said(own_only(TWEET), reply("mutateRow")) == [OWN]


def test_probes_ask_for_one_cell() -> None:
    assert get_own(TWEET) == call("get", b"timeline", TWEET.author, b"own:" + TWEET.id, {})
    assert get_in(FOLLOWERS[0], TWEET) == call("get", b"timeline", FOLLOWERS[0], b"in:" + TWEET.id, {})
    assert is_there(reply("get", [idl.hbase.TCell(value=b"x", timestamp=7)]))
    assert not is_there(reply("get", []))


def test_a_row_of_many_followers_is_read() -> None:
    many = [user_key(user) for user in range(2_000)]
    assert followers_in(row_of(many)) == many


@pytest.mark.parametrize(
    "bad",
    [
        reply("mutateRow"),
        row_of(FOLLOWERS)[:-1],
        row_of(FOLLOWERS)[:40],
        row_of(FOLLOWERS, value=b"longer"),
        reply("getRow", [idl.hbase.TRowResult(row=TWEET.author, columns={b"f:short": idl.hbase.TCell(b"1", 7)})]),
    ],
)
def test_another_reply_is_an_error(bad: bytes) -> None:
    with pytest.raises(BadReply):
        followers_in(bad)
    steps = batched(TWEET)
    assert next(steps) == get_followers(TWEET.author)
    with pytest.raises(BadReply):
        steps.send(bad)
