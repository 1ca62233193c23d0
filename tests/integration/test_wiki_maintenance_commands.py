"""``wikka jobs``, ``sizes``, ``acl groups``, ``config site`` and the filter of the audit on a store with triggers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.stored_wiki import MODULES, Wikka, stored_wiki, wikka_on
from tests.support.wiki_client import WikiClient
from wikka_port.names import page_key
from wikka_port.pages import Wiki
from wikka_port.rights.rules import Privilege
from wikka_port.schema import PAGES
from wikka_port.visitors import COMMAND

FUNCTION = "tests.support.trigger_functions:refuse"


@pytest.fixture(scope="module")
def wiki(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wiki]:
    modules = (*MODULES, "tests.support.trigger_functions")
    with stored_wiki(tmp_path_factory.mktemp("jobs"), "triggers", modules=modules) as made:
        made.save("Port", "one", author="Olga", base=0)
        made.save("Port", "two", author="Olga", base=1)
        yield made


@pytest.fixture
def wikka(wiki: Wiki) -> Wikka:
    return wikka_on(wiki)


def break_a_trigger(wiki: Wiki) -> None:
    """Make a trigger of the wiki that gives up each change of a note."""

    def work(connection: Any) -> None:
        connection.triggers.add("wiki-broken", PAGES, FUNCTION, [b"note"], attempts=1)
        connection.table(PAGES).put(page_key("Port"), {b"note:order": b"raise"})
        connection.triggers.wait("wiki-broken", timeout_ms=20_000)

    wiki.store.run(work)


def test_triggers_and_their_dead_letters(wiki: Wiki, wikka: Wikka) -> None:
    listed = {one["name"]: one for one in json.loads(wikka("jobs", "list", "--json").stdout)}
    assert {"wiki-indexes", "wiki-words", "wiki-notices"} <= listed.keys()
    assert wikka("jobs", "dead").stdout == "There is no dead letter.\n"
    break_a_trigger(wiki)
    dead = json.loads(wikka("jobs", "dead", "--json").stdout)
    assert [(one["trigger"], one["page"], one["row"]) for one in dead] == [
        ("wiki-broken", "Port", page_key("Port").decode())
    ]
    assert "as told" in dead[0]["error"]
    assert "wiki-broken" in wikka("jobs", "list").stdout
    root = WikiClient(wiki).signed_in("Root", admin=True)
    shown = root.get("/-/jobs").text
    assert "as told" in shown
    assert 'href="/Port"' in shown
    form = {**root.form("/-/jobs"), "trigger": "wiki-broken", "row": page_key("Port").hex()}
    assert root.post("/-/jobs", {**form, "retry": "1"}).status_code == 303
    wiki.store.run(lambda c: c.triggers.wait("wiki-broken", timeout_ms=20_000))
    assert len(wiki.maintenance.letters()) == 1, "it failed again"
    assert json.loads(wikka("jobs", "retry", "wiki-broken", "--row", dead[0]["row"], "--json").stdout) == {"retried": 1}
    wiki.store.run(lambda c: c.triggers.wait("wiki-broken", timeout_ms=20_000))
    assert root.post("/-/jobs", {**form, "discard": "1", "sure": "yes"}).status_code == 303
    assert wiki.maintenance.letters() == []
    assert wikka("jobs", "discard", "wiki-broken").stdout == "0 dead letters are thrown away.\n"
    assert wikka("jobs", "retry", "wiki-nothing").exit_code == 1
    assert "no trigger of the wiki" in wikka("jobs", "discard", "else").stderr
    assert wikka("jobs", "retry", "wiki-broken", "--row", "xy").stdout == "0 dead letters are delivered again.\n"
    kinds = {json.loads(line)["what"] for line in wikka("user", "audit", "--json").stdout.splitlines()}
    assert {"dead letters retried", "dead letters discarded"} <= kinds
    only = wikka("user", "audit", "--what", "dead letters retried", "--user", "command", "--json").stdout.splitlines()
    assert [json.loads(line)["by"] for line in only] == [COMMAND]
    wiki.store.run(lambda c: c.triggers.remove("wiki-broken"))


def test_sizes(wiki: Wiki, wikka: Wikka) -> None:
    found = json.loads(wikka("sizes", "--json").stdout)
    assert found["amounts"]["revisions"]["how"] == "exact"
    assert found["amounts"]["revisions"]["count"] >= 2
    assert found["amounts"]["pages"]["count"] == 1
    assert found["amounts"]["contents"] == {"count": 0, "how": "exact", "bytes": 0}
    assert found["on_disk"].keys() >= {"pages", "revisions", "chunks"}
    assert "revisions" in wikka("sizes").stdout


def test_groups(wiki: Wiki, wikka: Wikka) -> None:
    assert wikka("acl", "groups").stdout == "No list names a group.\n"
    wiki.save("CrewGroup", "+Mia+", author="Olga", base=0)
    wiki.rights.change_rules("", {Privilege.WRITE: "CrewGroup"}, wiki.rights.rules())
    found = json.loads(wikka("acl", "groups", "--json").stdout)
    assert found == {"groups": [{"name": "CrewGroup", "members": ["mia"], "count": 1}], "complete": True}
    assert wikka("acl", "groups").stdout == "CrewGroup (1): mia\n"
    wiki.rights.change_rules("", {Privilege.WRITE: None}, wiki.rights.present_rules())


def test_settings_of_the_site(wiki: Wiki, wikka: Wikka) -> None:
    assert json.loads(wikka("config", "site", "show", "--json").stdout)["name"] == ""
    given = ("name=River wiki", "colour=#0A6C74", "menu_users=Start | HomePage; Changes | /-/recentchanges")
    made = json.loads(wikka("config", "site", "set", *given, "--json").stdout)
    assert (made["name"], made["colour"]) == ("River wiki", "#0a6c74")
    assert made["menu_users"] == ["Start | HomePage", "Changes | /-/recentchanges"]
    wiki.rights.memory.forget()
    assert "River wiki</title>" in WikiClient(wiki).get("/Port").text
    for wrong in ("colour=#eeeeee", "logo=Port/Nothing.png", "registration=all"):
        refused = wikka("config", "site", "set", wrong)
        assert (refused.exit_code, refused.stderr.startswith("wikka: ")) == (1, True), wrong
    assert wikka("config", "site", "set", "nothing=x").exit_code == 2
    assert wikka("config", "site", "set", "name=", "colour=", "menu_users=").exit_code == 0
    assert "name  (not set)" in wikka("config", "site", "show").stdout
    entries = [json.loads(line) for line in wikka("config", "site", "history", "--json").stdout.splitlines()]
    assert [one.get("name") for one in entries] == [None, "River wiki"]
    assert wiki.rights.present_rules().is_open, "they are no rights"
