"""The tree around a page, and the first words of a page that a link leads to."""

from __future__ import annotations

import json

import pytest

from tests.support.wiki_client import WikiClient
from wikka_port.handlers.show import QUIET_FROM
from wikka_port.handlers.source import SUMMARY_CHARS
from wikka_port.page_tree import Leaf, searched_prefix, tree_of
from wikka_port.rights.rules import PageRights, Privilege

NAMES = ["A/B", "A/B/C", "A/B/C/D", "A/b2", "A/Empty/X", "A/B/ /Odd", "Ab/C"]


def shown(leaves: list[Leaf]) -> list[str]:
    return [f"{'  ' * one.depth}{'>' * one.is_current}{one.label}{'' if one.is_there else '?'}" for one in leaves]


def test_the_tree_has_what_is_above_beside_and_right_below() -> None:
    names = [one for one in NAMES if one.startswith(searched_prefix("A/B"))]
    assert shown(tree_of("A/B", names, ["A"])) == ["A", "  >B", "    C", "  b2", "  Empty?"]
    assert shown(tree_of("A/B/C", names)) == ["A?", "  B", "    >C", "      D"]
    assert searched_prefix("A/B/C") == "A/B/"


def test_a_page_of_the_highest_step_has_no_pages_beside_it() -> None:
    assert searched_prefix("A") == "A/"
    assert shown(tree_of("A", ["A/B", "A/B/C"], ["A"])) == [">A", "  B"]
    assert shown(tree_of("Alone", [], ["Alone"])) == [">Alone"]
    assert shown(tree_of("Gone", [])) == [">Gone?"]


@pytest.fixture
def web() -> WikiClient:
    client = WikiClient()
    for name in ("Port", "Port/Pier", "Port/Pier/Lamp", "Port/Crane", "Porter"):
        text = f"====About {name}====\nWords on **{name}**, and [[Port | a link]]."
        client.wiki.save(name, text, author="Ann", base=0)
    return client


def test_the_page_of_the_tree_and_its_json_say_the_same(web: WikiClient) -> None:
    answer = web.get("/Port~2FPier/tree")
    assert answer.status_code == 200
    text = answer.text
    for link in ('/Port"', '/Port~2FCrane"', '/Port~2FPier" aria-current="page"', '/Port~2FPier~2FLamp"'):
        assert f'<a href="{link}' in text, link
    assert "Porter" not in text
    found = json.loads(web.get("/Port~2FPier/tree?format=json").text)
    assert [(one["label"], one["depth"], one.get("current", False)) for one in found["pages"]] == [
        ("Port", 0, False),
        ("Crane", 1, False),
        ("Pier", 1, True),
        ("Lamp", 2, False),
    ]
    assert found["onward"] == ""
    assert "none is below it" in web.get("/Porter/tree").text


def test_a_tree_of_very_many_pages_leads_to_all_of_them(web: WikiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wikka_port.handlers.lists.TREE_NAMES", 2)
    assert json.loads(web.get("/Port/tree?format=json").text)["onward"] == "/-/pageindex?letter=Port%2F"
    for number in range(3):
        web.wiki.save(f"Port/Crane/{number}", "text", author="Ann", base=0)
    found = json.loads(web.get("/Port~2FPier/tree?format=json").text)
    assert [one["label"] for one in found["pages"]] == ["Port", "Crane", "Pier", "Lamp"], "its own are all there"
    assert found["onward"]


def test_a_page_that_one_may_not_read_is_in_no_tree(web: WikiClient) -> None:
    web.wiki.rights.change_rules("port/pier", {Privilege.READ: "Mia"}, web.wiki.rights.rules())
    shown = json.loads(web.get("/Port~2FCrane/tree?format=json").text)["pages"]
    assert [one["label"] for one in shown] == ["Port", "Crane"]
    for name in ("Lamp", "Lump"):  # a page that is there, and one that is not
        assert web.get(f"/Port~2FPier~2F{name}/tree?format=json").status_code == 403


def test_a_subpage_offers_its_tree_and_a_view_costs_no_more_calls(web: WikiClient) -> None:
    calls = {}
    for path in ("/Port", "/Port~2FPier"):
        web.get(path)
        web.wiki.calls.clear()
        text = web.get(path).text
        calls[path] = list(web.wiki.calls)
        assert ("data-tree=" in text) == ("~2F" in path)
        assert f"{path}/tree" in text
    assert calls["/Port"] == calls["/Port~2FPier"]


def test_the_first_words_of_a_page(web: WikiClient) -> None:
    answer = web.get("/Port/summary")
    assert json.loads(answer.text) == {"name": "Port", "text": "Words on Port, and a link."}
    assert web.get("/Port/summary", headers={"If-None-Match": answer.headers["ETag"]}).status_code == 304
    assert web.get("/Nowhere/summary").status_code == 404
    web.wiki.save("Long", "word " * 5_000, author="Ann", base=0)
    words = json.loads(web.get("/Long/summary").text)["text"]
    assert len(words) <= SUMMARY_CHARS
    assert words.endswith("…")


def test_links_to_missing_pages_are_quieter_where_most_are(web: WikiClient) -> None:
    links = " ".join(f"[[No page {n}]]" for n in range(QUIET_FROM))
    web.wiki.save("Sparse", links, author="Ann", base=0)
    web.wiki.save("Fewer", links.rpartition(" [[")[0], author="Ann", base=0)
    web.wiki.save("Even", links + " [[Port]]" * QUIET_FROM, author="Ann", base=0)
    assert 'class="content sparse"' in web.get("/Sparse").text
    for name in ("Fewer", "Even"):
        assert 'class="content"' in web.get(f"/{name}").text, name


def test_a_page_above_that_one_may_not_read_looks_like_none(web: WikiClient) -> None:
    web.wiki.rights.change("Port", PageRights(), "", {Privilege.READ: "Mia"})
    shown = json.loads(web.get("/Port~2FCrane/tree?format=json").text)["pages"]
    assert [(one["label"], one["there"]) for one in shown] == [("Port", False), ("Crane", True), ("Pier", True)]


def test_undo_of_a_page_with_one_revision_leads_to_its_history(web: WikiClient) -> None:
    answer = web.get("/Porter/revert")
    assert (answer.status_code, answer.headers["Location"]) == (302, "/Porter/revisions")
    assert web.get("/Porter/revert?revision=7").status_code == 404
