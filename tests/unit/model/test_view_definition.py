"""Definitions of views: what is refused, and with which words; their JSON."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from columnar.errors import DamagedData, IllegalArgument, NoSuchColumnFamily
from columnar.model.flow_graph import Flow, Graph, Place
from columnar.model.schema import Family, make_table
from columnar.model.view_definition import (
    Source,
    View,
    bound,
    check_families,
    checked,
    from_json,
    to_json,
    total_columns,
)
from columnar.views.contributions import rules_of
from columnar.views.declaring import check_no_cycle, kept_as

PAGES = Source(
    "pages",
    key=("meta:author",),
    where=("meta:deleted absent",),
    sums={"bytes": "meta:bytes"},
    averages={"score": "decimal(meta:score, 2)"},
    order="meta:score desc",
    include=("meta:title",),
)
BY_AUTHOR = View("pages_by_author", PAGES)
JOIN = View("orders_of_people", Source("people", ("row",), families=("p",)), Source("orders", ("o:person",)))


def test_a_definition_that_is_right_stays_as_it_is() -> None:
    for view in (BY_AUTHOR, JOIN, replace(BY_AUTHOR, spread=16)):
        assert checked(view) == view
        assert from_json(to_json(view)) == view
        rules_of(view)


def view(**changes: Any) -> View:
    return View("v", replace(PAGES, **changes))


@pytest.mark.parametrize(
    ("mistaken", "said"),
    [
        (replace(BY_AUTHOR, name=""), "use letters"),
        (replace(BY_AUTHOR, name="a b"), "use letters"),
        (replace(BY_AUTHOR, name="columnar:views"), "choose another namespace"),
        (replace(BY_AUTHOR, name="pages.2"), "a dot and a number"),
        (replace(BY_AUTHOR, name="pages"), "not the view itself"),
        (replace(BY_AUTHOR, spread=0), "1 to 256"),
        (replace(BY_AUTHOR, spread=257), "1 to 256"),
        (replace(JOIN, spread=2), "a join is not spread"),
        (replace(JOIN, join=replace(PAGES, key=("row", "f:q"))), "same number of parts"),
        (view(key=()), "name one, as key="),
        (view(key=("f:a",) * 9), "1 to 8 parts"),
        (view(table="columnar:queues"), "store's own"),
        (view(table="a/b"), "use letters"),
        (view(sums={"count": "f:a"}), "kept of every group"),
        (view(averages={"count": "f:a"}), "kept of every group"),
        (view(sums={"": "f:a"}), "letters, digits"),
        (view(sums={"a.b": "f:a"}), "letters, digits"),
        (view(sums={"score": "f:a"}), "a sum and an average"),
        (view(sums={f"s{i}": "f:a" for i in range(101)}), "at most 100"),
        (view(include=("f:a", "f:b", "f:a")), "f:a is included twice"),
        (view(families=("a/b",)), "Family|family"),
    ],
)
def test_a_mistaken_definition_is_told_what_would_be_right(mistaken: View, said: str) -> None:
    with pytest.raises(IllegalArgument, match=said):
        checked(mistaken)


@pytest.mark.parametrize(
    ("mistaken", "said"),
    [
        (view(key=("author",)), "view v: key 'author': write family:qualifier"),
        (view(key=("key[0]",)), "a table, not a view"),
        (view(where=("f:q<5",)), "view v: condition"),
        (view(sums={"n": "total"}), "view v: number"),
        (view(averages={"n": "total"}), "view v: number"),
        (view(order="f:q down"), "view v: order"),
        (view(include=("title",)), "view v: column 'title'"),
        (View("v", Source("t", ("row[0:8]",))), r"families=\('f',\)"),
    ],
)
def test_a_mistaken_text_names_the_view(mistaken: View, said: str) -> None:
    with pytest.raises(IllegalArgument, match=said):
        rules_of(checked(mistaken))


def test_totals_have_their_columns() -> None:
    assert [qualifier for _, qualifier in total_columns(PAGES)] == [b"count", b"bytes", b"score.sum", b"score.count"]
    assert total_columns(Source("t", ("row",)), b"r") == ((b"v", b"r.count"),)


def test_what_a_record_must_hold() -> None:
    (rules,) = rules_of(BY_AUTHOR)
    assert rules.images == {b"meta": frozenset({b"author", b"deleted", b"bytes", b"score", b"title"})}
    (rules,) = rules_of(View("v", Source("t", ("each f:",), where=("f:q exists", "g:q exists"), families=("h",))))
    assert rules.images == {b"f": None, b"g": frozenset({b"q"}), b"h": None}


def test_a_view_of_a_view_knows_how_many_parts_its_keys_have() -> None:
    tags = View("tags", Source("pages", ("each m:tags split ','", "m:author")))
    of_tags = View("authors_of_tag", Source("tags", ("key[0]",)))
    with pytest.raises(IllegalArgument, match="not a view"):
        rules_of(of_tags)
    known = {"tags": tags}
    (rules,) = rules_of(bound(of_tags, known))
    assert rules.images == {b"v": None}
    assert bound(of_tags, {"tags": replace(tags, spread=4)}).source.key_parts == 3
    assert bound(bound(of_tags, known), {}) == of_tags
    assert from_json(to_json(bound(of_tags, known))) == bound(of_tags, known)


def test_families_of_a_source_are_there_and_do_not_expire() -> None:
    table = make_table("pages", [Family("meta"), Family("seen", ttl_s=60)])
    check_families("v", table, frozenset({b"meta"}))
    with pytest.raises(IllegalArgument, match="expire after 60 s"):
        check_families("v", table, frozenset({b"meta", b"seen"}))
    with pytest.raises(NoSuchColumnFamily):
        check_families("v", table, frozenset({b"body"}))


def test_a_cycle_of_views_is_refused_with_its_path() -> None:
    a, b = View("a", Source("t", ("f:x",))), View("b", Source("a", ("key[0]",)))
    known = {"a": a, "b": b}
    flows = [kept_as(one, rules_of(bound(one, known))).flow for one in (a, b)]
    check_no_cycle(flows[0], Graph(flows))
    turned = bound(View("a", Source("b", ("key[0]",))), known)
    with pytest.raises(
        IllegalArgument, match=r"view a would follow its own changes: b/v -> view a -> a/v -> view b -> b/v"
    ):
        check_no_cycle(kept_as(turned, rules_of(turned)).flow, Graph(flows))
    writer = Flow("trigger", "back", (Place("b"),), (Place("t", "f"),))
    with pytest.raises(IllegalArgument, match="trigger back"):
        check_no_cycle(flows[0], Graph([*flows, writer]))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b'{"version": 2}',
        b'{"version": 1, "name": "v", "sources": [], "spread": 1}',
        b'{"version": 1, "name": "v", "sources": [{"table": "t", "key": ["row"]}], "spread": 1, "speed": 2}',
        b'{"version": 1, "name": "v", "sources": [{"table": "t", "key": ["row"], "having": "x"}], "spread": 1}',
        b'{"version": 1, "name": "v", "sources": [{"key": ["row"]}], "spread": 1}',
    ],
)
def test_bytes_that_are_no_definition(data: bytes) -> None:
    with pytest.raises(DamagedData):
        from_json(data)
