"""Rights of the site and of prefixes in the browser: shown in words, tried, set, removed; and the groups in lists."""

from __future__ import annotations

import pytest
from werkzeug.test import TestResponse

from tests.support.wiki_client import WikiClient
from tests.unit.wikka_port.web.test_reviews import accounts
from wikka_port.rights import groups as groups_module
from wikka_port.rights.rules import NO_RIGHTS, RULES_ROW, Privilege, rule_column
from wikka_port.schema import PAGES


@pytest.fixture
def web() -> WikiClient:
    made = WikiClient()
    made.wiki.save("Vault/One", "one", author="Olga", base=0)
    return made


@pytest.fixture
def root(web: WikiClient) -> WikiClient:
    return web.signed_in("Root", admin=True)


def lists(web: WikiClient) -> dict[tuple[str, str], str]:
    rules = web.wiki.rights.present_rules()
    return {(prefix, str(privilege)): one.text for (privilege, prefix), one in rules.lists.items()}


def send(root: WikiClient, place: str, **fields: str) -> TestResponse:
    return root.post("/-/rights", {**root.form(f"/-/rights?{place}"), **fields})


def test_lists_of_the_site_and_of_a_prefix_are_set_and_removed(web: WikiClient, root: WikiClient) -> None:
    assert "everybody may do everything" in root.get("/-/rights").text
    send(root, "of=site", own_write="1", write="+", save="1")
    send(root, "prefix=Vault/", own_read="1", read="Mia", save="1")
    assert lists(web) == {("", "write"): "+", ("vault/", "read"): "Mia"}
    assert web.get("/Vault~2FOne/edit").status_code == 403
    assert web.get("/Vault~2FOne").status_code == 403
    mia = web.signed_in("Mia")
    assert mia.get("/Vault~2FOne").status_code == 200
    shown = root.get("/-/rights").text
    assert "Everybody who is signed in may" in shown
    assert "Mia may." in shown
    form = root.form("/-/rights?prefix=Vault/")
    assert 'name="own_read" value="1" checked' in root.get("/-/rights?prefix=Vault/").text
    assert root.post("/-/rights", {**form, "read": "Mia", "save": "1"}).status_code == 303, "not ticked: removed"
    assert lists(web) == {("", "write"): "+"}
    noted = sorted((one.what, one.by, one.note) for one in accounts(web).audit.recent(3))
    assert noted == [("rights", "Root", "(site)"), ("rights", "Root", "Vault/"), ("rights", "Root", "Vault/")]


def test_lists_are_tried_before_they_count(web: WikiClient, root: WikiClient) -> None:
    web.signed_in("Mia")
    form = {**root.form("/-/rights?prefix=Vault/"), "own_read": "1", "read": "Mia"}
    tried = root.post("/-/rights", {**form, "try": "1", "as": "Mia"}).text
    assert "Mia, with the lists below" in tried
    assert "Read the page: <strong>yes</strong>" in tried
    assert "Mia may. Nobody else may." in tried
    tried = root.post("/-/rights", {**form, "try": "1", "as": ""}).text
    assert "Read the page: <strong>no</strong>" in tried
    assert "Edit the page: <strong>no</strong>" in tried, "who may not read may not edit"
    tried = root.post("/-/rights", {**form, "as": "Nix", "save": "1"}).text
    assert "There is no user of this name" in tried, "Enter in the field of the user tries, and saves nothing"
    assert lists(web) == {}
    assert root.post("/-/rights", {**form, "as": "Nix", "was_tried": "Nix", "save": "1"}).status_code == 303
    assert lists(web) == {("vault/", "read"): "Mia"}


def test_a_list_is_set_beside_one_with_a_mistake(web: WikiClient, root: WikiClient) -> None:
    web.wiki.rights.change_rules("", {Privilege.READ: "+"}, web.wiki.rights.rules())
    web.wiki.rows.put(PAGES, RULES_ROW, {rule_column(Privilege.WRITE, ""): b"Ann, Bob"})
    assert "It stays as it is until you change it." in root.get("/-/rights?of=site").text
    send(root, "of=site", own_read="1", read="*", own_write="1", save="1")
    assert lists(web) == {("", "read"): "*", ("", "write"): "Ann, Bob"}
    refused = send(root, "of=site", own_read="1", own_write="1", write="Ann, Bob, Mia", save="1")
    assert (refused.status_code, "A list has a mistake: Edit the page." in refused.text) == (400, True)


def test_removing_all_lists_shows_first_what_counts_then(web: WikiClient, root: WikiClient) -> None:
    send(root, "prefix=Vault/", own_read="1", read="Mia", save="1")
    form = {**root.form("/-/rights?prefix=Vault/"), "own_read": "1", "read": "Mia"}
    asked = root.post("/-/rights", {**form, "remove": "1"})
    assert "Nothing is saved yet" in asked.text
    assert "Read the page: <strong>yes</strong>" in asked.text, "a visitor would read it"
    assert lists(web) == {("vault/", "read"): "Mia"}
    assert root.post("/-/rights", {**root.form_of(asked), "save": "1"}).status_code == 303
    assert lists(web) == {}


def test_a_mistake_and_a_change_of_somebody_else_save_nothing(web: WikiClient, root: WikiClient) -> None:
    form = {**root.form("/-/rights?of=site"), "own_read": "1", "save": "1"}
    wrong = root.post("/-/rights", {**form, "read": "Ann, Bob"})
    assert wrong.status_code == 400
    assert 'aria-invalid="true"' in wrong.text
    assert "Ann, Bob" in wrong.text
    ignored = root.post("/-/rights", {**form, "write": "Ann"})
    assert ignored.status_code == 400
    assert "You typed a list for: Edit the page" in ignored.text
    send(root, "prefix=Vault/", own_read="1", read="Mia", save="1")
    late = root.post("/-/rights", {**form, "read": "Ann"})
    assert late.status_code == 409
    assert lists(web) == {("vault/", "read"): "Mia"}
    again = {**root.form_of(late), "own_read": "1", "read": "Ann", "save": "1"}
    assert root.post("/-/rights", again).status_code == 303
    assert lists(web) == {("vault/", "read"): "Mia", ("", "read"): "Ann"}
    assert root.post("/-/rights", {"csrf": form["csrf"], "own_read": "1", "read": "!*", "save": "1"}).status_code == 400
    assert root.post("/-/rights", {**form, "csrf": "0.0", "read": "!*"}).status_code == 403
    assert lists(web) == {("vault/", "read"): "Mia", ("", "read"): "Ann"}


def test_a_prefix_that_is_too_long_is_refused(web: WikiClient, root: WikiClient) -> None:
    form = {**root.form("/-/rights?prefix=x"), "prefix": "x" * 300, "own_read": "1", "read": "Ann", "save": "1"}
    assert root.post("/-/rights", form).status_code == 400
    assert lists(web) == {}


def test_blocks_outlive_a_change_of_lists(web: WikiClient, root: WikiClient) -> None:
    web.signed_in("Mia")
    root.post("/-/blocks", {**root.form("/-/blocks"), "target": "Mia", "until": "", "add": "1"})
    send(root, "of=site", own_write="1", write="+", save="1")
    assert [one.target for one in web.wiki.rights.blocks().all] == ["Mia"]


def test_groups_are_those_that_lists_name_with_their_members(
    web: WikiClient, root: WikiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    web.wiki.save("EditorsGroup", "+Mia+Ghost+", author="Root", base=0)
    web.wiki.save("OwnGroup", "+Mia+", author="Root", base=0)
    web.wiki.save("NoGroup", "+Mia+", author="Root", base=0)
    web.signed_in("Mia")
    assert "No list names a group." in root.get("/-/groups").text
    send(root, "of=site", own_write="1", write="EditorsGroup\nMissingGroup\nMia", save="1")
    web.wiki.rights.change("Vault/One", NO_RIGHTS, "", {Privilege.READ: "OwnGroup"})
    shown = root.get("/-/groups").text
    for name in ("EditorsGroup", "OwnGroup", "MissingGroup"):
        assert f'">{name}</a>' in shown
    assert "NoGroup" not in shown, "no list names it"
    assert 'href="/-/users?name=Mia">Mia</a>' in shown
    assert "ghost" in shown
    assert "There is no such page" in shown
    assert "only a part" not in shown
    monkeypatch.setattr(groups_module, "LISTS_SCANNED", 1)
    assert "only a part" in root.get("/-/groups").text
