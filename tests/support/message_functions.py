"""Functions that serve queues in tests; they run in the worker process of the store under test."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

from columnar.client import Append, Connection
from columnar.triggers.api import Effect, Later, Message, Put, Tally

MODULE = __name__


def store(message: Message) -> Iterator[Effect]:
    """Yield a cell under the message's body, with what the function was given."""
    yield Put("made", message.body, {b"f:of": message.queue, b"f:attempt": b"%d" % message.attempt})
    for name, value in message.headers.items():
        yield Put("made", message.body, {b"f:h-" + name: value})


def obey(message: Message, client: Connection) -> None:
    """Note the attempt in the row of the message's body, then do what the header ``do`` says."""
    client.table(b"made").mutate(message.body, [Append(b"f:log", b"%d," % message.attempt)])
    order = message.headers.get(b"do", b"")
    if order == b"raise":
        raise RuntimeError(f"as told at attempt {message.attempt}")
    if order == b"later" and not client.table(b"made").row(message.body).get(b"f:again"):
        client.table(b"made").put(message.body, {b"f:again": b"1"})
        raise Later(0.05)
    if order == b"hang" and message.attempt == 1:
        threading.Event().wait()
    if order == b"exit" and message.attempt == 1:
        os._exit(3)


def tally(message: Message) -> Iterator[Effect]:
    """Count the message, once however often the function runs for it."""
    yield Tally("tallies", b"all", {b"n:messages": 1})
