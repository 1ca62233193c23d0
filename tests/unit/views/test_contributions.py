"""What a row gives to groups, one rule at a time; random ones: ``tests/model/test_views_model.py``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from columnar.model.number_cells import order_of
from columnar.model.view_definition import Source, View, bound
from columnar.views.contributions import Rules, Share, contributions, difference, rules_of, spread_part
from tests.support.recompute import recomputed

DESC = order_of("m:score desc")


def rules(**changes: Any) -> Rules:
    source = replace(Source("pages", ("m:author",)), **changes)
    (found,) = rules_of(View("v", source))
    return found


def image(**cells: bytes) -> dict[bytes, bytes]:
    return {b"m:" + name.encode(): value for name, value in cells.items()}


def test_a_row_gives_its_amounts_to_its_group() -> None:
    held = rules(
        sums={"bytes": "m:bytes"}, averages={"score": "m:score"}, order="m:score desc", include=("m:title", "m:none")
    )
    row = image(author=b"ann", bytes=b"100", score=b"7", title=b"Home", other=b"x")
    key = DESC.key(row)
    share = Share(b"ann", b"p1", (1, 100, 7, 1), key, ((b"m:title", b"Home"),))
    assert contributions(held, b"p1", row).shares == {b"ann": share}
    without = Share(b"ann", b"p1", (1, 0, 0, 0))
    assert contributions(held, b"p1", image(author=b"ann")).shares == {b"ann": without}


def test_a_row_without_the_cell_or_against_a_condition_gives_nothing_and_is_not_rejected() -> None:
    held = rules(where=("m:deleted absent", "number(m:size)!=0"))
    for row in (image(), image(size=b"1"), image(author=b"a", size=b"0"), image(author=b"a", deleted=b"1")):
        given = contributions(held, b"p1", row)
        assert (given.shares, given.rejected) == ({}, "")
    assert contributions(held, b"p1", image(author=b"a", size=b"3")).shares


def test_a_row_that_cannot_be_read_gives_nothing_at_all_and_is_rejected() -> None:
    held = rules(key=("each t:",), sums={"n": "m:n"}, order="m:o")
    good = {b"t:x": b"", b"t:y": b"", b"m:n": b"1"}
    assert set(contributions(held, b"p1", good).shares) == {b"x", b"y"}
    for bad in ({b"m:n": b"one"}, {b"m:o": b"first"}, {b"t:": b""}):
        given = contributions(held, b"p1", good | bad)
        assert (given.shares, bool(given.rejected)) == ({}, True)


def test_a_change_moves_a_row_between_groups() -> None:
    held = rules()
    found = difference(held, b"p1", image(author=b"ann"), image(author=b"bob"))
    assert found.shares == (Share(b"ann", b"p1", None), Share(b"bob", b"p1", (1,)))
    assert difference(held, b"p1", image(), image(author=b"bob")).shares == (Share(b"bob", b"p1", (1,)),)
    assert difference(held, b"p1", image(author=b"bob"), image()).shares == (Share(b"bob", b"p1", None),)


def test_a_change_within_a_group_is_one_share() -> None:
    held = rules(sums={"n": "m:n"})
    before, after = image(author=b"ann", n=b"1"), image(author=b"ann", n=b"5")
    assert difference(held, b"p1", before, after).shares == (Share(b"ann", b"p1", (1, 5)),)


def test_a_change_of_what_the_view_does_not_read_is_no_write() -> None:
    held = rules(sums={"n": "m:n"}, include=("m:title",))
    before = image(author=b"ann", n=b"1", title=b"x")
    assert difference(held, b"p1", before, before | image(other=b"1")).shares == ()
    assert difference(held, b"p1", before, before | image(n=b"1.0")).shares == ()
    assert difference(held, b"p1", before, before | image(title=b"y")).shares != ()


def test_only_groups_that_differ_are_written() -> None:
    held = rules(key=("each m:tags split ','",))
    found = difference(held, b"p1", image(tags=b"a,b,c"), image(tags=b"c,d,b"))
    assert found.shares == (Share(b"a", b"p1", None), Share(b"d", b"p1", (1,)))


def test_rejected_rows_are_counted_as_they_come_and_go() -> None:
    held = rules(sums={"n": "m:n"})
    good, bad = image(author=b"ann", n=b"1"), image(author=b"ann", n=b"x")
    came = difference(held, b"p1", good, bad)
    assert (came.shares, came.rejected_more) == ((Share(b"ann", b"p1", None),), 1)
    assert "x" in came.rejected
    assert difference(held, b"p1", bad, bad).rejected_more == 0
    assert difference(held, b"p1", bad, good).rejected_more == -1
    assert difference(held, b"p1", bad, {}).rejected_more == -1


def test_a_row_is_there_by_the_families_that_are_named() -> None:
    held = rules(key=("row[0:1]",), families=("f",))
    assert set(contributions(held, b"ab", {b"f:x": b""}).shares) == {b"a"}
    assert contributions(held, b"ab", {b"ff:x": b"", b"g:x": b""}).shares == {}


def test_sides_of_a_join_have_a_letter() -> None:
    view = View("v", Source("people", ("row",), order="p:n", families=("p",)), Source("orders", ("o:person",)))
    people, orders = rules_of(view)
    (mine,) = contributions(people, b"ann", {b"p:n": b"1"}).shares.values()
    (theirs,) = contributions(orders, b"o1", {b"o:person": b"ann"}).shares.values()
    assert (mine.group, mine.member, theirs.group, theirs.member) == (b"ann", b"lann", b"ann", b"ro1")
    assert (mine.order or b"")[:1] == b"l"
    assert (people.totals, orders.totals) == (((b"v", b"l.count"),), ((b"v", b"r.count"),))
    found = recomputed([(people, [(b"ann", {b"p:n": b"1"})]), (orders, [(b"o1", {b"o:person": b"ann"})])])
    assert found.groups[b"ann"].totals([people, orders]) == {b"v:l.count": 1, b"v:r.count": 1}


def test_a_spread_group_is_cut_by_the_source_row() -> None:
    (held,) = rules_of(View("v", Source("t", ("f:a",)), spread=16))
    rows = [b"row %d" % number for number in range(1_000)]
    groups = [next(iter(contributions(held, row, {b"f:a": b"x"}).shares)) for row in rows]
    assert groups == [b"x\0\1" + part.replace(b"\0", b"\0\xff") for part in (spread_part(row, 16) for row in rows)]
    assert len(set(groups)) == 16
    assert max(groups.count(group) for group in set(groups)) < 100
    assert spread_part(b"row 1", 16) == b"\x0a", "on disk: another hash needs another version"


def test_the_group_of_a_view_is_there_while_it_has_a_total() -> None:
    tags = View("tags", Source("pages", ("m:tag", "m:author")))
    (held,) = rules_of(bound(View("authors", Source("tags", ("key[0]",))), {"tags": tags}))
    assert set(contributions(held, b"x\0\1ann", {b"v:count": b"\0" * 7 + b"\2"}).shares) == {b"x"}
    assert contributions(held, b"x\0\1ann", {b"m:p1": b"a withdrawn member"}).shares == {}


def test_the_order_of_columns_in_an_image_changes_nothing() -> None:
    held = rules(key=("each m:",), include=("m:b", "m:a"))
    cells = {b"m:a": b"1", b"m:b": b"2", b"m:c": b"3"}
    turned = dict(reversed(cells.items()))
    assert difference(held, b"p1", cells, turned).shares == ()
    assert list(contributions(held, b"p1", cells).shares) == list(contributions(held, b"p1", turned).shares)


def test_totals_wrap_as_counters_do_and_a_total_of_zero_is_no_cell() -> None:
    held = rules(sums={"n": "m:n"})
    highest = b"%d" % ((1 << 63) - 1)
    found = recomputed([(held, [(b"1", image(author=b"a", n=highest)), (b"2", image(author=b"a", n=b"1"))])])
    assert found.groups[b"a"].totals([held]) == {b"v:count": 2, b"v:n": -(1 << 63)}
    found = recomputed([(held, [(b"1", image(author=b"a", n=b"5")), (b"2", image(author=b"a", n=b"-5"))])])
    assert found.groups[b"a"].totals([held]) == {b"v:count": 2}


def test_a_row_is_there_by_what_the_view_reads_of_it_alone() -> None:
    """Images may hold what other followers asked for (I1)."""
    held = rules(key=("row[0:1]",), sums={"n": "m:n"})
    assert contributions(held, b"r1", image(other=b"1")).shares == {}
    assert not difference(held, b"r1", {}, image(other=b"1")).shares
    (given,) = contributions(held, b"r1", image(other=b"1", n=b"2")).shares.values()
    assert (given.group, given.amounts, given.carry) == (b"r", (1, 2), ())
