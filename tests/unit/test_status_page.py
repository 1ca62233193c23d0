"""The status page of a store with many tables and regions: bounded, with the way to the rest."""

from __future__ import annotations

import re
from html import escape, unescape

import pytest
from werkzeug.test import Client

from columnar.model.flow_status import FlowStatus
from columnar.webui.pages import REGIONS_PER_PAGE, TABLES_PER_PAGE, status_pages
from columnar.webui.status import NOTES, RegionLine, Status, TableLine, notes_of

BOUND_BYTES = 200_000


def region(n: int, key: bytes = b"") -> RegionLine:
    return RegionLine(f"{n:032x}", key or b"%06d" % n, b"%06d" % (n + 1), True, 0, 0, 10, "")


def table(name: str, regions: int, key: bytes = b"") -> TableLine:
    return TableLine(name, ("f",), True, False, (), tuple(region(n, key) for n in range(regions)))


def visitor(*tables: TableLine) -> Client:
    status = Status("1", "here", "data", 1.0, 0.0, (), 0, 0, 0, 0, 0, tables, (), ())
    return Client(status_pages(lambda: status, tuple))


def seen(page: str) -> set[str]:
    return set(re.findall(r"<code>([0-9a-f]{32})</code>", page))


@pytest.mark.parametrize(
    "tables",
    [
        [table(f"t{n:05}", 1) for n in range(5_000)],
        [table("t", 5_000)],
        [table(f"t{n:05}", 50) for n in range(100)],
        [table("t", 300, b"\xff" * 30_000)],
    ],
    ids=["many tables", "many regions", "many of both", "long keys"],
)
def test_it_is_bounded(tables: list[TableLine]) -> None:
    visited = visitor(*tables)
    assert len(visited.get("/").data) < BOUND_BYTES
    assert len(visited.get(f"/?table={tables[0].name}").data) < BOUND_BYTES


def test_all_tables_are_reached_by_its_links() -> None:
    names = [f"t&<{n}>" for n in range(3 * TABLES_PER_PAGE + 1)]
    visited = visitor(*(table(name, 1) for name in names))
    found, place, pages = [], "/", 0
    while place:
        page = visited.get(place).get_data(as_text=True)
        found += [name for name in names if f">{escape(name)}</a>" in page]
        following = re.search(r'<a href="([^"]*)">next</a>', page)
        place, pages = unescape(following[1]) if following else "", pages + 1
    assert found == names
    assert pages == 4


def test_all_regions_of_a_table_are_reached_by_its_links() -> None:
    visited = visitor(table("a", 3), table("t", 2 * REGIONS_PER_PAGE + 1))
    first = visited.get("/").get_data(as_text=True)
    more = re.search(r'<a href="([^"]*)">and [\d,]+ more</a>', first)
    assert more is not None
    found, place = set[str](), unescape(more[1])
    while place:
        page = visited.get(place).get_data(as_text=True)
        found |= seen(page)
        following = re.search(r'<a href="([^"]*)">next</a>', page)
        place = unescape(following[1]) if following else ""
    assert found == {f"{n:032x}" for n in range(2 * REGIONS_PER_PAGE + 1)}


@pytest.mark.parametrize("page", ["0", "-1", "99999999999999999999", "x", "", "\u0663"])
def test_a_page_that_is_none(page: str) -> None:
    assert visitor(table("t", 1)).get("/", query_string={"page": page}).status_code == 200


def test_a_table_that_is_none() -> None:
    assert visitor(table("t", 1)).get("/?table=u").status_code == 404


def test_health_says_which_feeds_stand_still_and_stays_200() -> None:
    stuck = FlowStatus("feed", "edits", ("t",), ("topic:edits",), error="there is no topic edits")
    others = [FlowStatus("feed", "fine", ("t",), ("topic:fine",)), FlowStatus("view", "v", ("t",), (), error="x")]
    notes = notes_of([stuck, *others])
    status = Status("1", "here", "data", 1.0, 0.0, (), 0, 0, 0, 0, 0, (), (), ())
    page = Client(status_pages(lambda: status, tuple, notes=lambda: notes)).get("/health")
    assert (page.status_code, page.get_data(as_text=True)) == (200, "ok\nfeed edits: there is no topic edits\n")
    assert len(notes_of([stuck] * 100)) == NOTES
