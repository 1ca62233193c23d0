"""``wikka held``, ``wikka block`` and ``wikka antispam`` against a real store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.stored_wiki import Wikka, stored_wiki, wikka_on
from tests.support.wiki_client import WikiClient
from wikka_port.editing.suggestions import SUGGESTIONS, WAITING, Suggestions
from wikka_port.names import page_key
from wikka_port.pages import Wiki

FARM = "\n".join(f"https://farm{number}.example/x" for number in range(20))


@pytest.fixture(scope="module")
def wiki(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wiki]:
    with stored_wiki(tmp_path_factory.mktemp("reviews")) as made:
        yield made


@pytest.fixture
def wikka(wiki: Wiki) -> Wikka:
    return wikka_on(wiki)


def send(web: WikiClient, page: str, text: str) -> str:
    form = web.form(f"/{page}/edit")
    web.now += 60
    return web.post(f"/{page}/edit", {**form, "body": text, "save": "1"}).headers["Location"]


def test_what_waits_is_decided_by_commands(wiki: Wiki, wikka: Wikka) -> None:
    web = WikiClient(wiki, indexes="application")
    wiki.save("Bay", "one\n\ntwo", author="Olga", base=0)
    assert wikka("held", "list").stdout == "Nothing waits.\n"
    places = [send(web, "Bay", f"one\n\ntwo\n\n{FARM}"), send(web, "Cove", FARM), send(web, "Dune", f"x\n{FARM}")]
    assert all(place.startswith("/-/held?page=") for place in places)
    listed = json.loads(wikka("held", "list", "--json").stdout)
    assert [one["page"] for one in listed] == ["Bay", "Cove", "Dune"]
    assert [reason["code"] for reason in listed[0]["reasons"]] == ["links", "crowd"]
    bay, cove, _dune = (one["id"] for one in listed)
    assert "+ https://farm3.example/x" in wikka("held", "show", bay).stdout
    assert json.loads(wikka("held", "show", bay[:6], "--json").stdout)["text"].endswith(FARM)

    wiki.save("Bay", "ONE\n\ntwo", author="Olga", base=1)
    assert wikka("held", "accept", bay).stdout == "Bay\n"
    page = wiki.page("Bay")
    assert page is not None
    assert page.body == f"ONE\n\ntwo\n\n{FARM}"
    assert (page.author[:8], page.signed) == ("Visitor ", "visitor")
    assert wikka("held", "accept", bay).exit_code == 1, "it waits no longer"
    assert json.loads(wikka("held", "refuse", cove, "--say", "No.", "--all", "--json").stdout)["done"] == [
        "Cove",
        "Dune",
    ]
    assert wiki.page("Cove") is None
    assert "No." in web.get(places[1]).text
    assert wikka("held", "list").stdout == "Nothing waits.\n"
    assert wikka("held", "show", "0000").exit_code == 1


def test_a_text_that_a_command_accepts_is_the_page_that_the_server_would_have_made(wiki: Wiki, wikka: Wikka) -> None:
    """CamelCase words, and the language of a page whose author chose none, go by the same settings."""
    assert wikka("config", "site", "set", "camel_case=none").exit_code == 0
    web = WikiClient(wiki, indexes="application", language="de")
    for page, given, links in (
        ("Silt", (), False),
        ("Sand", ("--camel-case", "wikka", "--language", "de"), True),
        ("Clay", ("--camel-case", "all"), True),
    ):
        send(web, page, f"a WikiWord\n{FARM}")
        (one,) = wiki.suggestions.waiting()
        assert wikka("held", "accept", one.id, *given).exit_code == 0
        made = wiki.page(page)
        assert made is not None
        assert (made.autolink, made.language) == (links, "de" if "de" in given else ""), page
    assert wikka("config", "site", "set", "camel_case=").exit_code == 0
    send(web, "Loam", f"a WikiWord\n{FARM}")
    (one,) = wiki.suggestions.waiting()
    assert wikka("held", "accept", one.id).exit_code == 0
    made = wiki.page("Loam")
    assert made is not None
    assert made.autolink, "as at first"


def test_a_crash_between_the_save_and_the_decision_changes_nothing_twice(
    wiki: Wiki, wikka: Wikka, monkeypatch: pytest.MonkeyPatch
) -> None:
    web = WikiClient(wiki, indexes="application")
    send(web, "Reef", FARM)
    (one,) = wiki.suggestions.waiting()

    def fall(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Suggestions, "decide", fall)
        assert wikka("held", "accept", one.id).exit_code != 0
    page = wiki.page("Reef")
    assert page is not None
    assert (page.number, page.body) == (1, FARM)
    assert wikka("held", "accept", one.id).exit_code == 0
    page = wiki.page("Reef")
    assert page is not None
    assert page.number == 1
    assert wiki.suggestions.waiting() == []


def test_a_text_that_waits_lies_in_the_table_of_suggestions_and_is_no_suggestion(wiki: Wiki) -> None:
    web = WikiClient(wiki, indexes="application")
    wiki.save("Port", "one", author="Olga", base=0)
    send(web, "Port", f"one\n{FARM}")
    (one,) = wiki.suggestions.waiting()
    assert one.text is None, "the list reads no texts"
    assert one.review is not None
    assert one.review.state == WAITING
    assert wiki.suggestions.of("Port") == []
    assert wiki.suggestions.one("Port", one.id) is None
    whole = wiki.suggestions.reviewed("Port", one.id)
    assert whole is not None
    assert whole.text == f"one\n{FARM}"
    damaged = replace(whole, packed_review="{")
    row = page_key("Port") + one.id.encode()
    wiki.rows.put(SUGGESTIONS, row, {b"at:review": damaged.packed_review.encode()})
    assert wiki.suggestions.waiting() == [], "a damaged one holds up no list"


def test_blocks_by_commands(wiki: Wiki, wikka: Wikka) -> None:
    assert wikka("block", "list").stdout == "Nobody is blocked.\n"
    made = json.loads(
        wikka("block", "add", "203.0.113.9/24", "--until", "2 days", "--reason", "a farm", "--json").stdout
    )
    assert (made["network"], made["reason"], made["by"]) == ("203.0.113.0/24", "a farm", "(command)")
    listed = json.loads(wikka("block", "list", "--json").stdout)
    assert [one["id"] for one in listed] == [made["id"]]
    web = WikiClient(wiki, indexes="application")
    wiki.save("Strand", "one", author="Olga", base=0)
    address = {"REMOTE_ADDR": "203.0.113.77"}
    wiki.rights.memory.forget()  # rules that are younger than a second
    assert "a farm" in web.get("/Strand/edit", environ_base=address).text
    assert web.get("/Strand", environ_base=address).status_code == 200
    assert wikka("block", "add", "No One").exit_code == 1
    assert wikka("block", "add", "0.0.0.0/0").exit_code == 1
    assert wikka("block", "remove", "203.0.113.0/24").stdout.startswith("lifted: ")
    assert wikka("block", "remove", "203.0.113.0/24").exit_code == 1
    wiki.rights.memory.forget()
    assert web.get("/Strand/edit", environ_base=address).status_code == 200
    audit = wikka("user", "audit", "--json").stdout
    assert '"block lifted"' in audit
    assert '"blocked"' in audit


def test_settings_by_commands(wiki: Wiki, wikka: Wikka, tmp_path: Path) -> None:
    assert "page_links = 15  (as at first)" in wikka("antispam", "show").stdout
    (tmp_path / "words.txt").write_text("horse dewormer\n\nivermectin\n", encoding="utf-8")
    assert wikka("antispam", "set", f"words=@{tmp_path}/words.txt", "page_links=3").exit_code == 0
    shown = json.loads(wikka("antispam", "show", "--json").stdout)
    assert (shown["page_links"], shown["words"], shown["advertising"]) == (3, ["horse dewormer", "ivermectin"], True)
    (tmp_path / "text.txt").write_text("Take ivermect1n.", encoding="utf-8")
    assert "words: It has words" in wikka("antispam", "test", f"{tmp_path}/text.txt").stdout
    verdict = json.loads(wikka("antispam", "test", f"{tmp_path}/text.txt", "--kind", "comment", "--json").stdout)
    assert (verdict["verdict"], verdict["reasons"][0]["code"]) == ("review", "words")
    (tmp_path / "text.txt").write_text("x", encoding="utf-8")
    assert wikka("antispam", "test", f"{tmp_path}/text.txt", "--name", "Ivermectin").stdout.startswith("review\n")
    assert wikka("antispam", "set", "page_links=many").exit_code == 1
    assert wikka("antispam", "set", "nonsense=1").exit_code == 2
    assert wikka("antispam", "set", "words=@/no/such/file").exit_code == 2
    assert wikka("antispam", "set", "words=", "page_links=15").exit_code == 0
    history = [json.loads(line) for line in wikka("antispam", "history", "--json").stdout.splitlines()]
    assert [one.get("page_links") for one in history] == [None, "3"]
    assert all(one["by"] == "(command)" for one in history)
    assert "all as at first" in wikka("antispam", "history").stdout
