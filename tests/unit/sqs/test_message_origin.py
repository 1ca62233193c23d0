"""The origin of a message of a dead-letter queue, as the store's move has written it."""

from __future__ import annotations

import pytest

from columnar.queues.dead_letter_moves import moved_message
from columnar.queues.keys import Message, Subqueue
from columnar.queues.queue_rows import Found
from columnar.sqs.message_origin import Origin, origin_of, own_headers


def test_a_move_tells_the_origin() -> None:
    message = Message(b"", ((b"a", b"b"),), b"body")
    moved = moved_message(b"thumbs", Found(258, 0, Subqueue(255, b""), 3, 0, message, b"why"))
    headers = dict(moved.headers)
    assert origin_of(moved.name, headers) == Origin(b"thumbs", 258)
    assert own_headers(headers) == {b"a": b"b"}


@pytest.mark.parametrize(
    ("name", "source"),
    [
        (b"", b"thumbs"),
        (b"dead-1", b"thumbs"),
        (b"dead-" + b"a" * 32 + b"-99999999999999999999", b"thumbs"),
        (b"dead-" + b"a" * 32 + b"-x", b"thumbs"),
        (b"dead-" + b"a" * 32 + b"-5", b""),
        (b"dead-" + b"a" * 32 + b"-5", b"a/b"),
        (b"dead-" + b"a" * 32 + b"-5", b"\xff"),
    ],
)
def test_names_and_headers_of_others_tell_none(name: bytes, source: bytes) -> None:
    assert origin_of(name, {b"dead-from": source}) is None
