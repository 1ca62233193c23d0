"""An older wiki's folder that nobody has prepared for this program: what needs a new table says what to do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from columnar.client import Connection
from tests.support.account_pages import text_in
from tests.support.older_wiki import unpacked
from tests.support.store_thread import StoreThread
from tests.support.wiki_client import WikiClient
from wikka_port.accounts.tables import USERS
from wikka_port.cli import main as cli
from wikka_port.commands.store_options import STORE_UNREACHABLE
from wikka_port.editing.kept_drafts import DRAFTS
from wikka_port.editing.suggestions import SUGGESTIONS
from wikka_port.moving.journal import DELETED, MOVES
from wikka_port.pages import Wiki
from wikka_port.urls import PAGE_HANDLERS, SITE_HANDLERS

SAYS = "wikka prepare"
QUERIES = ("", "?q=text", "?revision=1", "?job=0123456789abcdef", "?id=0123456789abcdef&draft=0123456789abcdef")


@pytest.fixture(scope="module")
def before_accounts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreThread]:
    data, _ = unpacked(tmp_path_factory.mktemp("older"))
    with StoreThread(data, trigger_modules=("wikka_port.triggers",)) as running:
        yield running


@pytest.fixture(scope="module")
def before_drafts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreThread]:
    """Of a wiki that has accounts."""
    with StoreThread(tmp_path_factory.mktemp("newer"), trigger_modules=("wikka_port.triggers",)) as running:
        wiki = Wiki("127.0.0.1", running.port)
        wiki.prepare()
        for base in range(4):
            wiki.save("Edited 3", f"text {base}", author="Ann", base=base)
        wiki.settle("", 30)
        drop(wiki, DRAFTS, SUGGESTIONS, MOVES, DELETED)
        wiki.store.close()
        yield running


def drop(wiki: Wiki, *tables: bytes) -> None:
    def work(connection: Connection) -> None:
        for table in tables:
            connection.delete_table(table, disable=True)

    wiki.store.run(work)


@pytest.fixture(params=["before_accounts", "before_drafts"])
def web(request: pytest.FixtureRequest) -> Iterator[WikiClient]:
    wiki = Wiki("127.0.0.1", request.getfixturevalue(request.param).port)
    yield WikiClient(wiki, edit_burst=10_000)
    wiki.store.close()


def assert_clear(browser: WikiClient, path: str, posted: dict[str, str] | None = None) -> int:
    answer = browser.get(path) if posted is None else browser.post(path, posted)
    assert answer.status_code != 500, path
    assert answer.status_code != 503 or SAYS in answer.text, path
    return answer.status_code


def test_every_address_shows_its_page_or_says_what_to_do(web: WikiClient) -> None:
    statuses = [
        assert_clear(web, f"{page}/{handler}{query}")
        for handlers, pages in ((SITE_HANDLERS, ("/-",)), (PAGE_HANDLERS, ("/Edited_3", "/No_such_page")))
        for handler in sorted(handlers)
        for page in pages
        for query in QUERIES
    ]
    assert {200, 503} <= set(statuses)


def test_so_does_every_form(web: WikiClient) -> None:
    form = {**web.form("/-/login"), "as": "", "base": "4", "draft": "0123456789abcdef", "body": "TYPED"}
    form |= {"user": "Ada", "password": "correct horse battery", "send": "1"}
    posted = [assert_clear(web, f"/Edited_3/{handler}", form) for handler in ("draft", "suggestion", "acls", "claim")]
    posted += [assert_clear(web, f"/-/{handler}", form) for handler in ("login", "register", "reset", "preview")]
    assert 503 in posted


def test_what_only_administrators_do_says_so_too(before_drafts: StoreThread) -> None:
    wiki = Wiki("127.0.0.1", before_drafts.port)
    root = WikiClient(wiki, edit_burst=10_000).signed_in("Root", admin=True)
    form = {**root.form("/Edited_3/rename"), "sure": "yes"}
    asked = {
        "/Edited_3/rename": {"new": "New name", "redirect": "1", "links": "1"},
        "/Edited_3/delete": root.form("/Edited_3/delete"),
        "/Edited_3/undelete": {"row": "0"},
        "/-/massdelete": {"prefix": "Edited", "count": "1"},
        "/-/massrevert": {"author": "Ann", "since": "2026-01-01"},
        "/-/moves?job=0123456789abcdef": {},
        "/-/deleted": None,
    }
    for path, fields in asked.items():
        assert assert_clear(root, path, None if fields is None else {**form, **fields}) == 503, path
    page = wiki.page("Edited 3")
    assert page is not None
    assert page.body == "text 3", "nothing was begun"
    wiki.store.close()


def test_what_was_typed_before_the_update_is_saved_or_kept_in_the_form(web: WikiClient) -> None:
    assert web.get("/Edited_3").status_code == 200
    form = {**web.form("/-/login"), "as": "", "base": "4", "draft": "0123456789abcdef", "body": "TYPED"}
    for path, button in (("draft", "keep"), ("edit", "save")):
        answer = web.post(f"/Edited_3/{path}", {**form, button: "1"})
        assert answer.status_code in (303, 503), path
        if answer.status_code == 503:
            assert (SAYS in answer.text, text_in(answer)) == (True, "TYPED"), path
        else:
            page = web.wiki.page("Edited 3")
            assert (path, page.body) == ("edit", "TYPED")


def test_an_action_says_so_in_its_place(tmp_path: Path) -> None:
    with StoreThread(tmp_path, trigger_modules=("wikka_port.triggers",)) as running:
        wiki = Wiki("127.0.0.1", running.port)
        wiki.prepare()
        wiki.save("P", "before {{countusers}} behind", author="Ann", base=0)
        drop(wiki, USERS)
        shown = WikiClient(wiki).get("/P")
        assert (shown.status_code, SAYS in shown.text, "behind" in shown.text) == (200, True, True)
        wiki.store.close()


def test_a_command_ends_with_one_line(before_accounts: StoreThread) -> None:
    ended = CliRunner().invoke(cli, ["user", "list", "--store", f"127.0.0.1:{before_accounts.port}"])
    assert ended.exit_code == STORE_UNREACHABLE, ended.output
    assert SAYS in ended.output
