"""(pure) The calls that a client makes for a tweet, one after the other, in each variant of the experiment.

Steps are a generator: it yields the frame of a call and is sent the reply.  All keys have one length, so a call is
packed once and cut where a key or a text stands.

    one_by_one    own timeline, followers, then one put for each of them: what a thread of the paper does
    batched       followers, then batches: the own timeline and the first followers, then the others
    own_only      own timeline only; a worker or a trigger does the rest
    spread        followers, then batches for all of them: the rest, as a worker behind a queue does it

A batch has BATCH_FOLLOWERS rows of followers at most, so that an author with very many followers delays others little.

The followers are read from the store each time, as the paper's application does.

Knows nothing of sockets and clocks.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from struct import Struct
from typing import Any, Final

from thriftpy2.transport.memory import TCyMemoryBuffer

from benchmarks.flows_plan import (
    FOLLOWERS,
    FOLLOWERS_FAMILY,
    ID_BYTES,
    IN,
    KEY_BYTES,
    MARK,
    OWN,
    TIMELINE,
    TWEET_BYTES,
)
from columnar.bench.calls import LIST_SUCCESS, VOID_SUCCESS, call, mutation, puts
from columnar.bench.protocols import BINARY, FRAME_HEAD, BadReply
from columnar.wire import idl

Steps = Generator[bytes, bytes, None]  # frames out, replies in; BadReply


@dataclass(frozen=True, slots=True)
class Tweet:
    author: bytes  # row key
    id: bytes
    text: bytes


BATCH_FOLLOWERS: Final = 1_000
StepsOf = Callable[[Tweet], Steps]

_U32: Final = Struct(">I")
_KEY: Final = b"\x01" * KEY_BYTES  # placeholder of a key that is put in later; a call has no such bytes otherwise
_ID: Final = b"\x02" * ID_BYTES
_TEXT: Final = b"\x03" * TWEET_BYTES

_PUT_OK: Final = BINARY.good_begin("mutateRow", VOID_SUCCESS)
_BATCH_OK: Final = BINARY.good_begin("mutateRows", VOID_SUCCESS)
_ROW_OK: Final = BINARY.good_begin("getRow", LIST_SUCCESS)
_CELLS_OK: Final = BINARY.good_begin("get", LIST_SUCCESS)

# A row in the reply to getRow: 0b 0001 key, 0d 0002 0b 0c count:u32 column*, 00; and the 00 of the result after it.
_ROW_HEAD: Final = 3 + _U32.size + KEY_BYTES + 5
_COLUMN: Final = len(FOLLOWERS_FAMILY) + 1 + KEY_BYTES
_CELL: Final = _U32.size + _COLUMN + (3 + _U32.size + len(MARK)) + (3 + 8) + 1  # name, 0b 0001 value, 0a 0002 i64, 00
_KEY_AT: Final = _U32.size + len(FOLLOWERS_FAMILY) + 1


def cut(packed: bytes, *parts: bytes) -> list[bytes]:
    """Return the bytes before, between and after the parts, which stand in this order."""
    found = []
    for part in parts:
        before, stands, packed = packed.partition(part)
        assert stands, "each part stands in what was packed"
        found.append(before)
    return [*found, packed]


def _put(family: bytes) -> list[bytes]:
    cell = mutation(family + b":" + _ID, _TEXT)
    return cut(call("mutateRow", TIMELINE, _KEY, [cell], {}), _KEY, _ID, _TEXT)


def _batched_row(family: bytes) -> bytes:
    buffer = TCyMemoryBuffer()
    row = idl.hbase.BatchMutation(row=_KEY, mutations=puts([(family + b":" + _ID, _TEXT)]))
    BINARY.protocol(buffer).write_struct(row)
    return bytes(buffer.getvalue())


_OWN: Final = _put(OWN)
_IN: Final = _put(IN)
_FOLLOWERS_CALL: Final = cut(call("getRow", FOLLOWERS, _KEY, {}), _KEY)
_OWN_CELL: Final = cut(call("get", TIMELINE, _KEY, OWN + b":" + _ID, {}), _KEY, _ID)
_IN_CELL: Final = cut(call("get", TIMELINE, _KEY, IN + b":" + _ID, {}), _KEY, _ID)
_OWN_ROW: Final = cut(_batched_row(OWN), _KEY, _ID, _TEXT)
_IN_ROW: Final = cut(_batched_row(IN), _KEY, _ID, _TEXT)
_ONE_ROW: Final[Any] = [idl.hbase.BatchMutation(row=_KEY, mutations=puts([(IN + b":" + _ID, _TEXT)]))]
_BATCH: Final = cut(call("mutateRows", TIMELINE, _ONE_ROW, {})[FRAME_HEAD:], _batched_row(IN))


def put_own(tweet: Tweet) -> bytes:
    a, b, c, d = _OWN
    return b"".join((a, tweet.author, b, tweet.id, c, tweet.text, d))


def put_in(follower: bytes, tweet: Tweet) -> bytes:
    a, b, c, d = _IN
    return b"".join((a, follower, b, tweet.id, c, tweet.text, d))


def get_followers(author: bytes) -> bytes:
    return author.join(_FOLLOWERS_CALL)


def get_own(tweet: Tweet) -> bytes:
    a, b, c = _OWN_CELL
    return b"".join((a, tweet.author, b, tweet.id, c))


def get_in(follower: bytes, tweet: Tweet) -> bytes:
    a, b, c = _IN_CELL
    return b"".join((a, follower, b, tweet.id, c))


def batch_of(tweet: Tweet, followers: list[bytes], with_own: bool) -> bytes:
    """Return the frame of one ``mutateRows`` for all rows."""
    head, tail = _BATCH
    a, b, c, d = _IN_ROW
    rest = b"".join((b, tweet.id, c, tweet.text, d))
    rows = [part for follower in followers for part in (a, follower, rest)]
    if with_own:
        a, b, c, d = _OWN_ROW
        rows += (a, tweet.author, b, tweet.id, c, tweet.text, d)
    count = _U32.pack(len(followers) + with_own)
    message = b"".join((head[: -_U32.size], count, *rows, tail))
    return _U32.pack(len(message)) + message


def followers_in(reply: bytes) -> list[bytes]:
    """Return the row keys in the reply to ``get_followers``, in their order.  Raises BadReply."""
    if BINARY.count_at(reply, _ROW_OK) == 0:
        return []
    at = FRAME_HEAD + len(_ROW_OK) + _U32.size + _ROW_HEAD
    if len(reply) < at + _U32.size:
        raise BadReply(reply)
    (count,) = _U32.unpack_from(reply, at)
    at += _U32.size
    if len(reply) != at + count * _CELL + 2:
        raise BadReply(reply)
    return [reply[key : key + KEY_BYTES] for key in range(at + _KEY_AT, at + count * _CELL, _CELL)]


def is_there(reply: bytes) -> bool:
    """Return whether the reply to ``get_own`` or ``get_in`` has a cell.  Raises BadReply."""
    return BINARY.count_at(reply, _CELLS_OK) > 0


def _good(reply: bytes, good: bytes) -> None:
    if not reply.startswith(good, FRAME_HEAD):
        raise BadReply(reply)


def one_by_one(tweet: Tweet) -> Steps:
    _good((yield put_own(tweet)), _PUT_OK)
    for follower in followers_in((yield get_followers(tweet.author))):
        _good((yield put_in(follower, tweet)), _PUT_OK)


def batched(tweet: Tweet) -> Steps:
    followers = followers_in((yield get_followers(tweet.author)))
    for begin in range(0, len(followers) or 1, BATCH_FOLLOWERS):
        batch = followers[begin : begin + BATCH_FOLLOWERS]
        _good((yield batch_of(tweet, batch, with_own=begin == 0)), _BATCH_OK)


def own_only(tweet: Tweet) -> Steps:
    _good((yield put_own(tweet)), _PUT_OK)


def spread(tweet: Tweet) -> Steps:
    followers = followers_in((yield get_followers(tweet.author)))
    for begin in range(0, len(followers), BATCH_FOLLOWERS):
        batch = followers[begin : begin + BATCH_FOLLOWERS]
        _good((yield batch_of(tweet, batch, with_own=False)), _BATCH_OK)
