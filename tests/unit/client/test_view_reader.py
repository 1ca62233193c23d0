"""Reads of views, over tables that were written by hand: as a person would reckon them from the sources' rows."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest

from columnar.client import view_reader
from columnar.client.errors import IllegalArgument as Refused
from columnar.client.view_cells import Key, Member
from columnar.client.view_reader import ViewReader
from columnar.errors import IllegalArgument
from columnar.model.key_parts import joined
from columnar.model.view_definition import Source, View
from tests.support.hand_made_view import Rows, written
from tests.support.seeds import seed
from tests.support.serving import Serving

NAMES = (b"", b"a", b"a\0", b"a\0\x01", b"ab", b"b", b"\0", b"\xff", b"\xff\xff")
PAGES = {
    b"p1": {b"meta:author": b"ann", b"meta:bytes": b"100", b"meta:score": b"3", b"meta:title": b"One"},
    b"p2": {b"meta:author": b"ann", b"meta:bytes": b"-20", b"meta:score": b"12.5", b"meta:title": b"Two"},
    b"p3": {b"meta:author": b"ann", b"meta:bytes": b"5"},
    b"p4": {b"meta:author": b"bob", b"meta:score": b"-1"},
}
AUTHORS = View(
    "authors",
    Source(
        "pages",
        key=("meta:author",),
        sums={"bytes": "meta:bytes"},
        averages={"score": "decimal(meta:score, 1)", "size": "meta:bytes"},
        order="decimal(meta:score, 1) desc",
        include=("meta:title",),
    ),
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    serving = Serving(Path(tmp_path_factory.mktemp("views")) / "store").start()
    yield serving
    serving.stop()


@pytest.fixture(scope="module")
def authors(store: Serving) -> ViewReader:
    return written(store.connect(), AUTHORS, PAGES, withdrawn=(b"p0", b"p2x"))


def test_a_group(authors: ViewReader) -> None:
    ann = authors.get(b"ann")
    assert (ann.key, ann.count, ann.sums) == (b"ann", 3, {"bytes": 85})
    assert ann.averages == {"score": Decimal("7.75"), "size": pytest.approx(85 / 3)}
    assert (ann.lowest, ann.highest) == (Decimal("0.3") * 10, Decimal("12.5"))
    bob = authors.get(b"bob", extremes=False)
    assert (bob.count, bob.averages["size"], bob.lowest) == (1, None, None)
    nobody = authors.get(b"nobody")
    assert (nobody.count, nobody.sums, nobody.highest) == (0, {"bytes": 0}, None)


def test_the_order(authors: ViewReader) -> None:
    first, second = authors.top(b"ann")
    assert (first.row, first.order, first.columns) == (b"p2", Decimal("12.5"), {b"meta:title": b"Two"})
    assert (second.row, second.order) == (b"p1", 3)
    assert [one.row for one in authors.top(b"ann", 1)] == [b"p2"]
    assert [one.row for one in authors.top(b"ann", 5, after=first)] == [b"p1"]
    assert authors.top(b"nobody") == []
    assert authors.top(b"ann", 0) == []


def test_members_without_those_that_were_withdrawn(authors: ViewReader, monkeypatch: pytest.MonkeyPatch) -> None:
    everyone = authors.members(b"ann")
    assert [one.row for one in everyone] == [b"p1", b"p2", b"p3"]
    assert [one.order for one in everyone] == [3, Decimal("12.5"), None]
    assert everyone[2].columns == {}
    assert [one.row for one in authors.members(b"ann", 1)] == [b"p1"], "the page begins with a withdrawn member"
    assert [one.row for one in authors.members(b"ann", 2, after=everyone[0])] == [b"p2", b"p3"]
    assert authors.members(b"~nobody") == []


def test_groups_that_are_there(authors: ViewReader) -> None:
    assert [(one.key, one.count) for one in authors.groups()] == [(b"ann", 3), (b"bob", 1)]
    assert [one.key for one in authors.groups(b"b")] == [b"bob"]
    assert [one.key for one in authors.groups(limit=1)] == [b"ann"]
    assert [one.key for one in authors.groups(after=b"ann")] == [b"bob"]
    assert authors.groups(b"a", after=b"bob") == []


def test_what_is_asked_wrongly(authors: ViewReader) -> None:
    for wrong, says in (
        (lambda: authors.get((b"a", b"b")), "1 part, not 2: meta:author"),
        (lambda: authors.sides(b"ann"), "no join"),
        (lambda: list(authors.pairs(b"ann")), "no join"),
        (lambda: authors.members(b"ann", side="left"), "no side 'left'"),
        (lambda: authors.groups((b"a", b"b")), "1 to 1 parts"),
    ):
        with pytest.raises(IllegalArgument, match=says):
            wrong()
    with pytest.raises(Refused, match="slice of a row"):
        authors.members(b"ann", 1) and authors._connection.table(b"authors").slice(b"ann", b"m", limit=0)


# --- several parts, spread -------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "spread"), [(1, 1), (2, 1), (3, 4), (4, 16)])
def test_keys_of_several_parts_and_spread_groups(
    store: Serving, monkeypatch: pytest.MonkeyPatch, number: int, spread: int
) -> None:
    rng = Random(seed(number))
    monkeypatch.setattr(view_reader, "PAGE", 3)
    monkeypatch.setattr(view_reader, "SCANNED_ROWS", 2)
    parts = rng.choice((1, 2))
    source = Source(
        "s", key=("f:a", "f:b")[:parts], sums={"n": "f:n"}, order=f"text(f:o) {rng.choice(('asc', 'desc'))}"
    )
    view = View(f"spread{number}", source, spread=spread)
    rows: dict[bytes, dict[bytes, bytes]] = {}
    for one in range(60):
        row = b"%c%02d" % (rng.choice(b"\0\1a\xff"), one)
        rows[row] = {b"f:n": b"%d" % rng.randrange(-9, 9), b"f:o": rng.choice(NAMES) + b"%d" % rng.randrange(3)}
        for column in (b"f:a", b"f:b"):
            rows[row][column] = rng.choice(NAMES[1:])
    reader = written(store.connect(), view, rows, withdrawn=(b"0", b"b", b"\xffz"))

    expected: dict[Key, list[bytes]] = {}
    for row in sorted(rows):
        several = (rows[row][b"f:a"], rows[row][b"f:b"])
        expected.setdefault(several if parts == 2 else several[0], []).append(row)
    for key, members in expected.items():
        group = reader.get(key)
        orders = [rows[row][b"f:o"] for row in members]
        assert (group.count, group.sums["n"]) == (len(members), sum(int(rows[row][b"f:n"]) for row in members))
        assert (group.lowest, group.highest) == (min(orders), max(orders))
        assert [one.row for one in _paged(reader, key)] == members
        top = reader.top(key, 4)
        assert [one.order for one in top] == sorted(orders, reverse=source.order.endswith("desc"))[:4]
        rest = reader.top(key, 99, after=top[-1])
        assert {one.row for one in top + rest} == set(members)
    in_order = sorted(expected, key=lambda key: key if isinstance(key, bytes) else joined(key))
    found = reader.groups(limit=999)
    assert [(one.key, one.count) for one in found] == [(key, len(expected[key])) for key in in_order]
    for key in in_order[:5]:
        assert [one.key for one in reader.groups(limit=999, after=key)] == in_order[in_order.index(key) + 1 :]
        prefix = (key[0], b"") if isinstance(key, tuple) else key[:1]
        begins = [
            other
            for other in in_order
            if (isinstance(other, tuple) and other[0] == key[0]) or (isinstance(other, bytes) and other[:1] == key[:1])
        ]
        assert [one.key for one in reader.groups(prefix, 999)] == begins


def _paged(reader: ViewReader, key: Key) -> list[Member]:
    found: list[Member] = []
    while page := reader.members(key, 3, after=found[-1] if found else None):
        found += page
    return found


# --- joins -----------------------------------------------------------------------------------------

ORDERS: Rows = {b"o1": {b"f:who": b"ann", b"f:n": b"3"}, b"o2": {b"f:who": b"ann"}, b"o3": {b"f:who": b"bob"}}
PEOPLE: Rows = {b"ann": {b"f:city": b"Rome"}, b"cid": {b"f:city": b"Oslo"}}


@pytest.fixture(scope="module")
def join(store: Serving) -> ViewReader:
    left = Source("orders", key=("f:who",), sums={"n": "f:n"}, order="f:n")
    right = Source("people", key=("row",), include=("f:city",))
    return written(store.connect(), View("joined", left, right), ORDERS, PEOPLE, withdrawn=(b"o0", b"zoe"))


def test_a_join(join: ViewReader) -> None:
    left, right = join.sides(b"ann")
    assert (left.count, left.sums, left.lowest, right.count) == (2, {"n": 3}, 3, 1)
    assert [one.row for one in join.members(b"ann")] == [b"o1", b"o2"]
    (ann,) = join.members(b"ann", side="right")
    assert (ann.row, ann.side, ann.columns) == (b"ann", "right", {b"f:city": b"Rome"})
    assert [one.row for one in join.top(b"ann")] == [b"o1"]
    with pytest.raises(IllegalArgument, match="sides"):
        join.get(b"ann")
    with pytest.raises(IllegalArgument, match="'inner', 'left' or 'outer'"):
        list(join.pairs(b"ann", "right"))  # type: ignore[arg-type]


def test_pairs(join: ViewReader) -> None:
    def of(key: bytes, kind: view_reader.Kind = "inner") -> list[tuple[bytes | None, bytes | None]]:
        return [(a.row if a else None, b.row if b else None) for a, b in join.pairs(key, kind)]

    assert of(b"ann") == of(b"ann", "outer") == [(b"o1", b"ann"), (b"o2", b"ann")]
    assert (of(b"bob"), of(b"bob", "left")) == ([], [(b"o3", None)])
    assert (of(b"cid"), of(b"cid", "left"), of(b"cid", "outer")) == ([], [], [(None, b"cid")])
    assert of(b"nobody", "outer") == []


def test_pairs_of_sides_that_are_more_than_a_page(store: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view_reader, "PAGE", 2)
    view = View("wide", Source("a", key=("f:k",)), Source("b", key=("f:k",)))
    lefts, rights = ({b"%c%d" % (letter, n): {b"f:k": b"k"} for n in range(5)} for letter in b"lr")
    reader = written(store.connect(), view, lefts, rights)
    found = [(a.row, b.row) for a, b in reader.pairs(b"k") if a and b]
    assert found == [(one, other) for one in lefts for other in rights]


class _Generations:
    """A connection that notes which names it is asked for."""

    def __init__(self) -> None:
        self.views, self.asked = self, list[str]()

    def wait(self, name: str, _token: str, _timeout_ms: int) -> bool:
        self.asked.append(name)
        return True

    def table(self, name: str) -> Any:
        self.asked.append(name)
        return self

    def rows(self, _rows: list[bytes], **_asked: Any) -> list[Any]:
        return []


def test_a_read_after_a_write_waits_for_the_generation_that_it_reads() -> None:
    """A reader remembers its generation for some seconds; the one that was swapped in may have the write before it."""
    connection, view = _Generations(), View("by_a", Source("t", ("f:a",)))
    reader = ViewReader(cast(Any, connection), lambda: (view, "by_a@1"))
    assert reader.get(b"x", after="7-1-1").count == 0
    assert connection.asked == ["by_a@1", "by_a@1"]
