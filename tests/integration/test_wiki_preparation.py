"""``Wiki.prepare`` on data folders of earlier versions: triggers come to their present form and lose no change."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from columnar.flows.follower_name import trigger
from tests.support.marked_language import BEGIN, CODE, END, write_marked_language
from tests.support.store_thread import StoreThread
from wikka_port import preparation, schema, triggers
from wikka_port.cli import main
from wikka_port.consistency import check
from wikka_port.names import page_key
from wikka_port.pages import Wiki
from wikka_port.texts import speak_as_wiki
from wikka_port.texts.catalogue import ENGLISH

NAME = "wiki-indexes"
OURS = ["wiki-comments", "wiki-decisions", NAME, "wiki-moves", "wiki-notices"]
OURS += ["wiki-pictures", "wiki-watchers", "wiki-words"]
LISTS = (schema.BACKLINKS, schema.WANTED, schema.NAMES)  # of a page that was deleted its changes stay
FAMILIES = {"wiki-backlinks": (b"body", b"meta"), "wiki-changes": (b"meta", b"user", b"note")}


@contextmanager
def wiki_in(folder: Path) -> Iterator[tuple[Wiki, StoreThread]]:
    with StoreThread(folder, trigger_modules=("wikka_port.triggers",)) as running:
        wiki = Wiki("127.0.0.1", running.port)
        yield wiki, running
        wiki.store.close()


def make_tables(wiki: Wiki) -> None:
    wiki.store.run(
        lambda c: [c.create_table(one.name, one.families, attributes=one.attributes) for one in schema.TABLES]
    )


def register_without_batch(wiki: Wiki) -> None:
    """As versions did whose trigger took its changes one by one."""
    families = (b"body", b"meta", b"user", b"note")
    function = "wikka_port.triggers:indexes"
    wiki.store.run(
        lambda c: c.triggers.add(NAME, schema.PAGES, function, families, before=True, from_where="beginning")
    )


def register_four(wiki: Wiki) -> None:
    """As versions did that had a trigger for each index."""
    for name in triggers.OLDER:
        function = f"wikka_port.triggers:{name.removeprefix('wiki-')}"
        of = FAMILIES.get(name, (b"meta",))
        wiki.store.run(lambda c, n=name, f=function, o=of: c.triggers.add(n, schema.PAGES, f, o, before=True))  # type: ignore[misc]


def differences(wiki: Wiki) -> list[str]:
    return [found.text() for found in check(wiki).differences if found.table in LISTS]


def status_of(wiki: Wiki, name: str = NAME) -> Any:
    return next(one for one in wiki.store.run(lambda c: c.triggers.list()) if one.name == name)


def leave_waiting(folder: Path) -> None:
    """A folder of an earlier version: two pages are in the indexes, three changes wait for the trigger."""
    with wiki_in(folder) as (wiki, _):
        make_tables(wiki)
        register_without_batch(wiki)
        wiki.save("Source", "to [[Target]] and [[Gone]]", author="Ann", base=0)
        wiki.save("Ends", "to [[Source]]", author="Ann", base=0)
        assert wiki.settle("", 30)
        wiki.store.run(lambda c: c.triggers.pause(NAME))
        wiki.save("Target", "to [[Source]]", author="Ann", base=0)
        wiki.save("Source", "to [[Target]] and [[Elsewhere]]", author="Ann", base=1)
        wiki.store.run(lambda c: c.table(schema.PAGES).delete(page_key("Ends")))
        assert status_of(wiki).lag_changes == 3


def test_a_trigger_without_a_batch_gets_one_where_it_is_and_what_waited_is_delivered_once(tmp_path: Path) -> None:
    leave_waiting(tmp_path)
    with wiki_in(tmp_path) as (wiki, running):
        assert wiki.prepare() == []
        held = status_of(wiki)
        assert (held.registration, held.state) == (triggers.REGISTRATIONS[0].store_registration, "paused")
        assert held.lag_changes >= 3
        wiki.store.run(lambda c: c.triggers.resume(NAME))
        assert wiki.settle("", 30)
        keeper = running.inside.serving.trigger_manager
        figures = keeper.hub.figures.of(trigger(NAME), time.monotonic())
        assert (figures.delivered, figures.failed) == (3, 0), "each that waited, and nothing anew"
        assert differences(wiki) == []
        assert (wiki.names(), wiki.wanted()) == (["Source", "Target"], [("Elsewhere", 1)])
        wiki.save("Elsewhere", "to [[Source]]", author="Ann", base=0)
        assert wiki.settle("", 30)
        assert differences(wiki) == []


def test_until_the_wiki_is_prepared_the_earlier_registration_delivers(tmp_path: Path) -> None:
    leave_waiting(tmp_path)
    with wiki_in(tmp_path) as (wiki, running):
        wiki.store.run(lambda c: c.triggers.resume(NAME))
        assert wiki.settle("", 30)
        figures = running.inside.serving.trigger_manager.hub.figures.of(trigger(NAME), time.monotonic())
        assert (figures.delivered, figures.failed) == (3, 0)
        assert differences(wiki) == []
        assert status_of(wiki).registration.batch == 0
        wiki.prepare()
        wiki.save("Elsewhere", "to [[Source]]", author="Ann", base=0)
        assert wiki.settle("", 30)
        assert (figures.delivered, figures.failed) == (4, 0), "a changed registration shows no page again"
        assert differences(wiki) == []


def test_a_prepared_wiki_is_left_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with wiki_in(tmp_path) as (wiki, _):
        wiki.prepare()
        monkeypatch.setattr("columnar.client.Triggers.sync", lambda *_: pytest.fail("nothing is to be changed"))
        assert wiki.prepare() == []


def test_triggers_of_an_older_wiki_make_way_when_they_have_delivered(tmp_path: Path) -> None:
    with wiki_in(tmp_path) as (wiki, _):
        make_tables(wiki)
        register_four(wiki)
        wiki.save("Source", "to [[Target]] and [[Gone]]", author="Ann", base=0)
        wiki.save("Target", "to [[Source]]", author="Ann", base=0)
        assert wiki.settle("", 30)
        words = {schema.TERMS, schema.DOCS}  # they come with the preparation
        assert {one.table for one in check(wiki).differences} <= words, "they do their work until they go"
        assert wiki.prepare() == []
        assert [one.name for one in wiki.store.run(lambda c: c.triggers.list())] == OURS
        wiki.save("Gone", "to [[Elsewhere]]", author="Ann", base=0)
        assert wiki.settle("", 30)
        assert check(wiki).differences == ()
        assert wiki.wanted() == [("Elsewhere", 1)]


def test_an_older_trigger_with_changes_to_deliver_stays_and_the_command_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparation, "OLDER_WAIT_MS", 200)
    with wiki_in(tmp_path) as (wiki, running):
        make_tables(wiki)
        register_four(wiki)
        wiki.save("Ends", "to [[Source]]", author="Ann", base=0)
        assert wiki.settle("", 30)
        wiki.store.run(lambda c: c.triggers.pause("wiki-backlinks"))
        wiki.store.run(lambda c: c.table(schema.PAGES).delete(page_key("Ends")))
        store = ["--store", f"127.0.0.1:{running.port}", "--no-first-pages"]
        said = CliRunner().invoke(main, ["prepare", *store], catch_exceptions=False).output
        assert "until they have delivered what they have: wiki-backlinks." in said
        assert status_of(wiki, "wiki-backlinks").lag_changes == 1
        wiki.store.run(lambda c: c.triggers.resume("wiki-backlinks"))
        assert wiki.settle("", 30)
        assert CliRunner().invoke(main, ["prepare", *store], catch_exceptions=False).output.startswith("Ready.\n")
        assert [one.name for one in wiki.store.run(lambda c: c.triggers.list())] == OURS
        assert differences(wiki) == []


@pytest.fixture
def language_of_the_wiki() -> Iterator[None]:
    """The command sets that of this process."""
    yield
    speak_as_wiki(ENGLISH)


@pytest.mark.usefixtures("language_of_the_wiki")
def test_first_pages_in_a_language_of_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "languages"
    folder.mkdir()
    write_marked_language(folder)
    with wiki_in(tmp_path / "data") as (wiki, running):
        asked = ["prepare", "--store", f"127.0.0.1:{running.port}", "--language", CODE]
        refused = CliRunner().invoke(main, asked)
        assert refused.exit_code != 0
        assert f"--language {CODE}: there are en (English)" in refused.output
        assert "wrote" in CliRunner().invoke(main, [*asked, "--languages", str(folder)], catch_exceptions=False).output
        page = wiki.page("HomePage")
        assert page is not None
        assert page.note == f"{BEGIN}a page to begin with{END}", "texts of that file"
        assert page.language in ("", "en"), "nobody has written the pages themselves in it"
