"""Triggers that the tests register; they run in the worker process of the store under test."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
from collections.abc import Iterator

from columnar.client import Append, Connection
from columnar.triggers.api import Barrier, Change, Checkpoint, Contribute, Delete, Effect, Later, Put, Send, Tally

MODULE = __name__
not_a_function = "text"


def note(change: Change, client: Connection, audit: bytes = b"audit") -> None:
    """Append the delivery, with values in hex, to a cell of the row, which records the order."""
    changes = ",".join(f"{c.kind}|{c.column.decode()}|{c.timestamp}|{c.value.hex()}" for c in change.changes)
    now = ",".join(f"{k.decode()}={v.hex()}" for k, v in sorted(change.now.items()))
    before = ",".join(f"{k.decode()}={v.hex()}" for k, v in sorted(change.before.items()))
    entry = ";".join(
        [
            change.sequence,
            str(change.attempt),
            str(change.timestamp),
            str(int(change.is_backfill)),
            changes,
            now,
            before,
        ]
    )
    client.table(audit).mutate(change.row, [Append(b"a:log", entry.encode("latin-1") + b"\n")])


def note_other(change: Change, client: Connection) -> None:
    note(change, client, b"audit2")


def obey(change: Change, client: Connection) -> None:
    """Note the change, then do what the row says in f:do."""
    note(change, client)
    order = change.now.get(b"f:do", b"")
    if order == b"raise":
        print("about to fail\udcff")
        raise RuntimeError(f"as told \udcff at attempt {change.attempt}")
    if order == b"hang":
        threading.Event().wait()
    if order == b"exit":
        os._exit(3)
    if order == b"segv":
        ctypes.string_at(0)
    if order == b"sys.exit":
        sys.exit("as told")
    if order == b"raise twice" and change.attempt <= 2:
        raise RuntimeError("not yet")
    if order == b"garbage":
        os.write(int(sys.argv[sys.argv.index("--link") + 1]), b"\xff" * 64)
        threading.Event().wait()


def index(change: Change, client: Connection) -> None:
    """Keep ``index``: a row for each value of f:v, with a column for each row with that value."""
    here = change.now.get(b"f:v")
    gone = {c.value for c in change.changes if c.kind == "put" and c.column == b"f:v"}
    gone |= {value for column, value in change.before.items() if column == b"f:v"}
    table = client.table(b"index")
    for value in gone - {here}:
        table.delete(value, columns=[b"i:" + change.row], timestamp=change.timestamp)
    if here is not None:
        table.put(here, {b"i:" + change.row: b""}, timestamp=change.timestamp)


def keep_tags(change: Change, client: Connection) -> None:
    """Keep ``index`` by the pieces of f:v, from the images alone."""
    table = client.table(b"index")
    for tag in change.gone("f:v", split=","):
        table.delete(tag, columns=[b"i:" + change.row], timestamp=change.stamp)
    for tag in change.came("f:v", split=","):
        table.put(tag, {b"i:" + change.row: b""}, timestamp=change.stamp)


def index_and_note(change: Change, client: Connection) -> None:
    note(change, client)
    index(change, client)


# --- what yields ---------------------------------------------------------------------------------


def spread(change: Change) -> Iterator[Effect]:
    """Yield a cell in row N of ``out`` for each N below ``f:count``, or as f:do says; a checkpoint each hundred."""
    cells = {cell.column: cell.value for cell in change.changes if cell.kind == "put"}
    order = cells.get(b"f:do", b"")
    if order == b"delete":
        yield Delete("out", b"0000")
    elif order == b"later" and not change.progress:
        yield Checkpoint(b"5")
        raise Later(0.01)
    elif order == b"delete unmarked":
        yield Delete("plain", b"r")
    for number in range(int(change.progress or b"0"), int(cells.get(b"f:count", b"0"))):
        if number % 100 == 0:
            yield Checkpoint(b"%d" % number)
        yield Put("out", b"%04d" % number, {b"f:" + change.row: cells.get(b"f:value", b"")})


def spread_with_client(change: Change, client: Connection) -> Iterator[Effect]:
    """Yield one cell more than the table ``out`` has for this row already."""
    held = client.table(b"out").row(change.row)
    yield Put("out", change.row, {b"f:%04d" % len(held): change.sequence.encode()})


# --- what gives to totals ----------------------------------------------------------------------------


def tallies(change: Change) -> Iterator[Effect]:
    """Tally each change of f:author for the author; f:do breaks a rule."""
    for cell in change.changes:
        if cell.column == b"f:author":
            yield Tally("authors", cell.value, {b"n:edits": 1})
            yield Tally("authors", cell.value, {b"n:edits": 1, b"n:twice": 2})
    if change.now.get(b"f:do") == b"no such family":
        yield Tally("authors", b"x", {b"n:edits": 1}, members="gone")
    if change.now.get(b"f:do") == b"two books":
        yield Checkpoint(b"1")
        yield Contribute("authors", change.now[b"f:author"], {b"n:edits": 1})


def tallies_in_steps(change: Change) -> Iterator[Effect]:
    """Tally each change of f:author three times, between checkpoints and barriers; f:do lets the first run die."""
    (author,) = {cell.value for cell in change.changes if cell.column == b"f:author"}
    for step in range(int(change.progress or b"0"), 3):
        yield Tally("authors", author, {b"n:steps": 1})
        if step == 0:
            yield Checkpoint(b"1")
        yield Barrier()
        if change.now.get(b"f:do") == b"die" and not change.progress:
            os._exit(3)


def gives(change: Change) -> Iterator[Effect]:
    """Contribute pages and bytes of each author, as the rows are now, ordered by size."""
    author, size = change.now.get(b"f:author"), change.now.get(b"f:size", b"0")
    old = change.before.get(b"f:author")
    if old is not None:
        yield Contribute("authors", old, None)
    if author is not None:
        yield Contribute("authors", author, {b"n:pages": 1, b"n:bytes": int(size)}, {b"f:size": size}, order=size)


def forks(change: Change) -> Iterator[Effect]:
    """Fork; f:do says whether the copy of the process returns, stays, or becomes a program."""
    order = change.now.get(b"f:do", b"")
    if order == b"program":
        subprocess.Popen(["sleep", "600"])
    elif os.fork() == 0 and order == b"stays":
        threading.Event().wait()
    yield Put("forked", change.row, {b"f:v": b"1"})


def mail(change: Change) -> Iterator[Effect]:
    """Send what the row has in f:mail to the queue that f:to names, and write that it was sent; fail the first time."""
    for number in range(2):
        yield Send(change.now[b"f:to"], change.now[b"f:mail"] + b"%d" % number, headers={b"row": change.row})
    yield Put("out", change.row, {b"f:mailed": change.now[b"f:mail"]})
    if change.attempt == 1:
        yield Barrier()
        raise RuntimeError("after the messages are in the queue")


def refuse(change: Change) -> Iterator[Effect]:
    raise ValueError(f"as told, of {change.row!r}")
    yield
