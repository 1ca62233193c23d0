"""Totals kept by triggers: exact through kills of the worker and of the store, and mistakes that are said."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from columnar.client import Connection
from tests.support.serving import Serving
from tests.support.store_process import StoreProcess
from tests.support.trigger_functions import MODULE

AUTHORS = [b"alice", b"bob", b"carol"]
PAGES = [b"page/%02d" % n for n in range(40)]


def make(connection: Connection) -> None:
    connection.create_table(b"authors", {"n": {}, "m": {}, "o": {}}, splits=[b"bob"])
    connection.create_table(b"pages", {"f": {}}, splits=[b"page/20"])
    connection.triggers.add("tallies", b"pages", f"{MODULE}:tallies", [b"f"], attempts=2)
    connection.triggers.add("gives", b"pages", f"{MODULE}:gives", [b"f"], before=True)
    connection.triggers.add("steps", b"pages", f"{MODULE}:tallies_in_steps", [b"f"])


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    serving = Serving(tmp_path / "data").start()
    make(serving.connect())
    yield serving
    serving.stop()


def totals(connection: Connection) -> dict[bytes, dict[bytes, int]]:
    found: Any = connection.table(b"authors").scan(columns=[b"n"])
    return {
        row: {name: int.from_bytes(value, "big", signed=True) for name, value in cells.items()} for row, cells in found
    }


def test_a_counter_is_exact_through_kills_of_worker_and_store(tmp_path: Path) -> None:
    store = StoreProcess(tmp_path / "data", MODULE)
    store.start()
    make(connection := store.connect())
    rng = random.Random(20261124)
    edits, pages = Counter[bytes](), dict[bytes, tuple[bytes, int]]()
    for kill in (store.kill_workers, store.kill, store.kill_workers, store.kill):
        for _ in range(3):
            with connection.table(b"pages").batch() as batch:
                for page in rng.sample(PAGES, 30):
                    author, size = rng.choice(AUTHORS), rng.randrange(10, 99)
                    batch.put(page, {b"f:author": author, b"f:size": b"%d" % size})
                    edits[author] += 1
                    pages[page] = author, size
        kill()  # changes are being delivered
        if kill == store.kill:
            store.start()
            connection = store.connect()
    assert connection.triggers.wait("tallies", timeout_ms=60_000)
    assert connection.triggers.wait("gives", timeout_ms=60_000)
    assert connection.triggers.wait("steps", timeout_ms=60_000)
    assert connection.triggers.dead_letters() == []
    expected = {
        author: {b"n:edits": 2 * count, b"n:twice": 2 * count, b"n:steps": 3 * count} for author, count in edits.items()
    }
    for author, size in pages.values():
        expected[author][b"n:pages"] = expected[author].get(b"n:pages", 0) + 1
        expected[author][b"n:bytes"] = expected[author].get(b"n:bytes", 0) + size
    assert totals(connection) == expected
    for author in AUTHORS:
        ordered = [value for _, value in sorted(connection.table(b"authors").row(author, columns=[b"o"]).items())]
        assert len(ordered) == expected[author].get(b"n:pages", 0)
        found = connection.table(b"authors").members(author)
        given = {source for source, member in found.items() if source.startswith(b"gives")}
        assert given == {b"gives\x00\x01" + page for page, (whose, _) in pages.items() if whose == author}
        sizes = [member.order for _, member in sorted(found.items()) if member.order is not None]
        assert sorted(sizes) == sorted(b"%d" % size for whose, size in pages.values() if whose == author)
    assert store.stop() == 0


def test_mistakes_end_as_dead_letters_that_say_what_to_do(serving: Serving) -> None:
    connection = serving.connect()
    connection.create_table(b"out", {"f": {}})
    pages = connection.table(b"pages")
    pages.put(b"a", {b"f:author": b"alice", b"f:do": b"no such family"})
    pages.put(b"b", {b"f:author": b"bob", b"f:do": b"two books"})
    assert connection.triggers.wait("tallies")
    letters = {letter.row: letter.error for letter in connection.triggers.dead_letters("tallies")}
    assert "has no family gone for members: columnar alter authors --add gone" in letters[b"a"]
    assert "gives to row bob of authors by a Tally and by a Contribute" in letters[b"b"]
    assert connection.triggers.wait("gives")
    assert connection.triggers.wait("steps")
    assert totals(connection)[b"bob"] == {b"n:pages": 1, b"n:steps": 3}, "the slice with both is refused whole"


def test_what_is_tallied_behind_a_checkpoint_counts_in_a_run_that_begins_there(serving: Serving) -> None:
    connection = serving.connect()
    connection.table(b"pages").put(b"a", {b"f:author": b"alice", b"f:do": b"die"})
    assert connection.triggers.wait("steps")
    assert totals(connection)[b"alice"][b"n:steps"] == 3
