"""``wikka user`` and ``wikka admin-link`` against a real store, and the links that they print."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from tests.support.stored_wiki import Wikka, stored_wiki, wikka_on
from wikka_port import serve
from wikka_port.accounts.signing_in import Client
from wikka_port.accounts.tables import SERVED_ROW, SITE, USERS, user_row
from wikka_port.cli import main
from wikka_port.commands.serving_options import accounts_of
from wikka_port.commands.user import first_admin_link
from wikka_port.config import WikiConfig
from wikka_port.pages import Wiki

PASSWORD = "correct horse battery"
CLIENT = Client("192.0.2.1", "a test")


@pytest.fixture(scope="module")
def wiki(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wiki]:
    with stored_wiki(tmp_path_factory.mktemp("users")) as made:
        yield made


@pytest.fixture
def wikka(wiki: Wiki) -> Wikka:
    return wikka_on(wiki)


def test_an_account_from_its_making_to_its_end(wiki: Wiki, wikka: Wikka) -> None:
    accounts = accounts_of(wiki)
    added = json.loads(wikka("user", "add", "Ada Lovelace", "--email", "ada@example.org", "--json").stdout)
    assert (added["status"], added["administrator"]) == ("invited", False)
    token = added["link"].removeprefix("http://127.0.0.1:8080/-/reset?token=")
    accounts.registration.reset(token, PASSWORD, CLIENT)
    assert accounts.signing_in.sign_in("ada lovelace", PASSWORD, CLIENT)[0].name == "Ada Lovelace"

    assert wikka("user", "set", "ada lovelace", "--admin", "--email", "").exit_code == 0
    listed = json.loads(wikka("user", "list", "--json").stdout)
    assert [(one["name"], one["status"], one["administrator"], one["email"]) for one in listed] == [
        ("Ada Lovelace", "active", True, "")
    ]
    assert "Ada Lovelace" in wikka("user", "list", "--status", "active").stdout
    assert "Ada Lovelace" not in wikka("user", "list", "--status", "banned").stdout

    alone = wikka("user", "set", "Ada Lovelace", "--status", "banned")
    assert (alone.exit_code, "administrator" in alone.stderr) == (1, True), alone.stderr
    accounts.directory.make("Second", status="active", admin=True)
    assert "banned" in wikka("user", "set", "Ada Lovelace", "--status", "banned").stdout
    assert accounts.sessions.of(accounts.directory.account("Ada Lovelace").row) == []  # type: ignore[union-attr]
    assert (
        json.loads(wikka("user", "set", "Ada Lovelace", "--status", "deleted", "--json").stdout)["status"] == "deleted"
    )
    wiki.rows.delete(USERS, user_row("Second"))  # no command ends the last administrator, and others need the store
    told = wikka("user", "audit").stdout
    assert all(word in told for word in ("register", "password", "sign-in", "administrator", "banned", "delete"))
    assert PASSWORD not in told
    assert token not in told


def test_links_lead_to_the_wiki_that_started_last(wiki: Wiki, wikka: Wikka, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its port is not 8080, and another one after the next start."""

    def link() -> str:
        return str(json.loads(wikka("user", "invite", "--json").stdout)["link"])

    def stopped_at_once(config: WikiConfig, sockets: list[socket.socket], *_: object) -> SimpleNamespace:
        for one in sockets:
            one.close()
        return SimpleNamespace(run=lambda: config.port)

    monkeypatch.setattr(serve, "_Parent", stopped_at_once)
    given = WikiConfig(secret=b"s" * 32, store_port=wiki.store.port, port=0)
    for config, begin in (
        (given, "http://127.0.0.1:{}/-/"),
        (replace(given, public_url="https://w.example"), "https://w.example/-/"),
    ):
        port = serve.serve(config, lambda url: None)
        assert link().startswith(begin.format(port)), config
    wiki.rows.delete(SITE, SERVED_ROW)
    assert link().startswith("http://127.0.0.1:8080/-/"), "a wiki that never started"
    assert serve.serve(replace(given, store_port=1), lambda url: None), "without a store nothing is noted"


def test_no_command_frees_a_name_that_was_somebodys(wikka: Wikka) -> None:
    assert wikka("user", "add", "Grace").exit_code == 0
    assert wikka("user", "set", "Grace", "--status", "signed-up").exit_code == 2, "a day later anybody had her pages"
    assert wikka("user", "set", "Grace", "--status", "deleted").exit_code == 0
    for change in (("--status", "active"), ("--admin",), ("--email", "eve@example.org")):
        refused = wikka("user", "set", "Grace", *change)
        assert refused.exit_code == 1, change
        assert "is erased" in refused.stderr
    assert wikka("user", "set", "Grace", "--status", "deleted").exit_code == 0, "what fell is gone on with"
    assert json.loads(wikka("user", "list", "--status", "deleted", "--json").stdout)[-1]["email"] == ""


def test_what_is_refused_says_why(wikka: Wikka) -> None:
    assert wikka("user", "add", "Bob").exit_code == 0
    for words, why in (
        (("add", "bob"), "taken"),
        (("add", "x" * 80), "75"),
        (("add", "Eve", "--email", "none"), "mail address"),
        (("set", "Nix", "--admin"), "there is no account"),
        (("reset", "Nix"), "there is no account"),
    ):
        done = wikka("user", *words)
        assert done.exit_code == 1, words
        assert why in done.stderr, words


def test_links_are_of_the_public_address(wiki: Wiki, wikka: Wikka) -> None:
    link = json.loads(wikka("user", "invite", "--public-url", "https://wiki.example/", "--json").stdout)["link"]
    assert link.startswith("https://wiki.example/-/register?invitation=")
    assert wikka("admin-link").stdout.startswith("http://127.0.0.1:8080/-/register?administrator=")


def test_a_link_for_the_first_administrator_is_offered_until_there_is_one(wiki: Wiki, wikka: Wikka) -> None:
    assert first_admin_link(wiki, "http://x") is not None
    wikka("user", "add", "Root user", "--admin")
    assert first_admin_link(wiki, "http://x") is not None, "it has no password yet"
    wikka("user", "set", "Root user", "--status", "active")
    assert first_admin_link(wiki, "http://x") is None


def test_mail_needs_to_know_where_links_lead(tmp_path: Path) -> None:
    for given, why in (
        (["--smtp", "mail.example:587"], "--mail-from"),
        (["--smtp", "mail.example", "--mail-from", "w@wiki.example"], "HOST:PORT"),
        (["--smtp", "mail.example:587", "--mail-from", "w@wiki.example"], "--public-url"),
    ):
        done = CliRunner().invoke(main, ["serve", *given])
        assert (done.exit_code, why in done.stderr) == (2, True), done.stderr


def test_a_key_from_its_making_to_its_end(wiki: Wiki, wikka: Wikka) -> None:
    accounts = accounts_of(wiki)
    accounts.directory.make("Key Owner", status="active")
    made = wikka("user", "key", "Key Owner", "--scope", "read", "--scope", "write", "--label", "a report")
    token = made.stdout.strip()
    caller = accounts.keys.caller(token, "")
    assert caller is not None
    assert (caller.visitor.name, caller.scopes) == ("Key Owner", {"read", "write"})
    (listed,) = json.loads(wikka("user", "key", "Key Owner", "--list", "--json").stdout)
    assert (listed["label"], listed["scopes"]) == ("a report", "read write")
    assert "a report" in wikka("user", "key", "Key Owner", "--list").stdout
    assert wikka("user", "key", "Key Owner", "--end", "ab").exit_code == 1
    assert wikka("user", "key", "Key Owner", "--end", listed["hash"]).exit_code == 0
    assert accounts.keys.caller(token, "") is None
    accounts.directory.make("Not Yet", status="pending")
    assert "only an active account" in wikka("user", "key", "Not Yet").output
    assert "key made" in wikka("user", "audit").stdout
