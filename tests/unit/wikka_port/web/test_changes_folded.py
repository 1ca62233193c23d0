"""Recent changes: how much each changed, those of a page together, and lists of some of them."""

from __future__ import annotations

import re

import pytest

from tests.support.wiki_client import WikiClient
from wikka_port import schema
from wikka_port.change_lists import EVERY_CHANGE, ChangeFilter, days_folded, folded_by_page
from wikka_port.listings import RecentChange
from wikka_port.next_revision import draft_after
from wikka_port.page_rows import change_entry, page_cells, page_of, revision_cells

DAY_MS = 86_400_000


def change(
    name: str, number: int, hour: int, author: str = "Ann", grown: int | None = 1, *, minor: bool = False
) -> RecentChange:
    time_ms = DAY_MS + hour * 3_600_000
    return RecentChange(name, number, time_ms, author, "", number == 1, "account", minor, grown)


def test_changes_of_a_page_on_one_day_stand_together() -> None:
    found = [change("A", 4, 30, "Ann"), change("B", 1, 29, grown=None), change("A", 3, 28, "Bob"), change("A", 2, 3)]
    (_, first), (_, second) = days_folded(found)
    assert [(one.newest.name, len(one.changes), one.grown) for one in first] == [("A", 2, 2), ("B", 1, None)]
    assert [one.author for one in first[0].authors] == ["Ann", "Bob"]
    assert [one.newest.number for one in second] == [2]
    assert [len(one.changes) for _, pages in days_folded(found, fold=False) for one in pages] == [1, 1, 1, 1]


def test_the_sum_of_a_page_is_unknown_if_one_change_is() -> None:
    assert folded_by_page([change("A", 2, 1), change("A", 1, 1, grown=None)])[0].grown is None
    assert folded_by_page([change("A", 2, 1, grown=-3), change("A", 1, 1, grown=5)])[0].grown == 2


@pytest.mark.parametrize(
    ("wanted", "passing"),
    [
        (EVERY_CHANGE, [1, 2, 3]),
        (ChangeFilter(author="Bob"), [2]),
        (ChangeFilter(begins="help/"), [2, 3]),
        (ChangeFilter(only_new=True), [1]),
        (ChangeFilter(minor=False), [1, 2]),
        (ChangeFilter(author="Ann", begins="HELP", minor=False), []),
    ],
)
def test_a_filter_lets_pass_what_it_says(wanted: ChangeFilter, passing: list[int]) -> None:
    every = [change("Home", 1, 1), change("Help/A", 2, 1, "Bob"), change("Help/B", 3, 1, minor=True)]
    assert [one.number for one in every if wanted.passes(one)] == passing


def test_a_revision_says_how_much_longer_its_text_is() -> None:
    first = draft_after({}, name="P", body="äbc", author="Ann", time_ms=5)
    row = {**page_cells(first), schema.VERSIONCOUNT: first.head.pack()}
    second = draft_after(row, name="P", body="a", author="Ann", time_ms=6)
    assert [revision_cells(one)[schema.GROWN] for one in (first, second)] == [b"3", b"-2"]
    cells = page_cells(second)
    assert page_of(second.head, cells).grown == -2
    assert change_entry(b"a" * 32, second.head, cells, schema.USER, schema.NOTE)[1][schema.GROWN] == b"-2"
    older = {column: value for column, value in cells.items() if column != schema.GROWN}
    assert page_of(second.head, older).grown is None
    assert schema.GROWN not in change_entry(b"a" * 32, second.head, older, schema.USER, schema.NOTE)[1]


@pytest.fixture
def web() -> WikiClient:
    client = WikiClient()
    save = client.wiki.save
    save("Home", "x" * 1_200, author="Ann", base=0)
    save("Help/A", "one", author="Bob", base=0, note="begun")
    save("Home", "x" * 1_150, author="Bob", base=1, note="shorter")
    save("Home", "x" * 1_150, author="Ann", base=2, minor=True)
    return client


def shown(text: str) -> list[str]:
    return re.findall(r'class="grown[^>]*>([^<]*)<', text)


def test_the_page_of_changes_says_sizes_and_folds(web: WikiClient) -> None:
    text = web.get("/-/recentchanges").text
    assert shown(text) == ["+1,150", "±0", "−50", "+1,200", "+3"]
    assert "3 changes" in text
    (diff,) = re.findall(r'href="(/Home/diff\?b=3&amp;since=\d+)"', text)
    assert "x" * 1_150 in web.get(diff.replace("&amp;", "&")).text, "all of the day, its first change as well"
    assert "undo" not in text, "nobody is signed in"
    flat = web.get("/-/recentchanges?fold=no").text
    assert '<details class="same-page">' not in flat
    assert shown(flat) == ["±0", "−50", "+3", "+1,200"]
    assert shown(web.get("/Home/revisions").text) == ["±0", "−50", "+1,200"]


def test_a_change_can_be_undone_from_the_list_if_it_is_the_newest(web: WikiClient) -> None:
    text = web.signed_in("Rita").get("/-/recentchanges").text
    assert re.findall(r'href="(/[^"]*/revert[^"]*)"', text) == ["/Home/revert"]


def test_a_list_of_some_changes_says_undo_beside_the_newest_of_a_page_alone(web: WikiClient) -> None:
    rita = web.signed_in("Rita")
    lists = [rita.get(f"/-/recentchanges?by={by}").text for by in ("Ann", "Bob")]
    undone = [re.findall(r'href="(/[^"]*/revert[^"]*)"', text) for text in lists]
    assert undone == [["/Home/revert"], []], "Bob's edit of it is older"


def test_some_changes_are_selected(web: WikiClient) -> None:
    assert shown(web.get("/-/recentchanges?by=Bob").text) == ["−50", "+3"]
    assert shown(web.get("/-/recentchanges?begins=help").text) == ["+3"]
    assert shown(web.get("/-/recentchanges?new=1").text) == ["+3", "+1,200"]
    assert shown(web.get("/-/recentchanges?minor=hide&fold=no").text) == ["−50", "+3", "+1,200"]
    assert shown(web.get("/-/recentchanges?least=50&fold=no").text) == ["−50", "+1,200"]
    assert shown(web.get("/-/recentchanges?least=51").text) == ["+1,200"]
    assert len(shown(web.get("/-/recentchanges?least=x").text)) == 5
    assert "begun" not in web.get("/-/recentchanges.xml?least=51").text
    nobody = web.get("/-/recentchanges?by=%3Cb%3ENobody").text
    assert "No change of this kind" in nobody
    assert 'value="&lt;b&gt;Nobody"' in nobody
    assert "begun" in web.get("/-/recentchanges.xml?by=Bob").text
    assert "begun" not in web.get("/-/recentchanges.xml?by=Ann").text
    assert web.get("/-/recentchanges?by=" + "x" * 5_000 + "&before=nonsense").status_code == 200
