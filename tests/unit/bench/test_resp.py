"""Redis's protocol, in pieces of any size."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.resp import RedisError, Replies, command

STREAM = b"+OK\r\n:7\r\n$5\r\na\r\nbc\r\n$-1\r\n*-1\r\n*2\r\n*2\r\n$1\r\nx\r\n*0\r\n:-3\r\n$0\r\n\r\n"
REPLIES: list[Any] = [b"OK", 7, b"a\r\nbc", None, None, [[b"x", []], -3], b""]


def test_a_command_is_an_array_of_its_words() -> None:
    assert command("XACK", b"\r\n", 12) == b"*3\r\n$4\r\nXACK\r\n$2\r\n\r\n\r\n$2\r\n12\r\n"


@pytest.mark.parametrize("size", [1, 2, 3, 7, len(STREAM)])
def test_replies_come_whole_from_pieces_of_any_size(size: int) -> None:
    replies, found = Replies(), []
    for begin in range(0, len(STREAM), size):
        found += replies.feed(STREAM[begin : begin + size])
    assert found == REPLIES


def test_an_error_is_a_reply() -> None:
    found = list(Replies().feed(b"-LOADING in a moment\r\n:1\r\n"))
    assert isinstance(found[0], RedisError)
    assert str(found[0]) == "LOADING in a moment"
    assert found[1] == 1


def test_another_stream_is_refused() -> None:
    with pytest.raises(ValueError, match="no reply of Redis begins with"):
        list(Replies().feed(b"HTTP/1.1 200 OK\r\n"))
