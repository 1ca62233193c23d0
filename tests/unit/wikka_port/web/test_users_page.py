"""Accounts in an administrator's browser: listed in parts, made, changed, signed out; nobody else sees any of it."""

from __future__ import annotations

import re
from html import unescape

import pytest

from tests.support.wiki_client import WikiClient
from tests.unit.wikka_port.web.test_reviews import accounts
from wikka_port.accounts import administration
from wikka_port.accounts.records import Account
from wikka_port.config import MailConfig
from wikka_port.limits import ACCOUNTS_LISTED
from wikka_port.rights.rules import Privilege

LINK = re.compile(r'value="(http[^"]*/-/(?:reset|register)\?[^"]*)" readonly')


@pytest.fixture
def web() -> WikiClient:
    return WikiClient(registration="closed")


@pytest.fixture
def root(web: WikiClient) -> WikiClient:
    return web.signed_in("Root", admin=True)


def account(web: WikiClient, name: str) -> Account:
    found = accounts(web).directory.account(name)
    assert found is not None
    return found


def change(root: WikiClient, name: str, do: str, **fields: str) -> int:
    form = {**root.form(f"/-/users?name={name}"), "do": do, **fields}
    return root.post("/-/users", form).status_code


def listed(root: WikiClient, path: str) -> list[str]:
    return re.findall(r'class="entry-name" href="[^"]*">([^<]*)<', root.get(path).text)


def test_accounts_are_listed_by_name_in_parts_that_each_have_a_bound(web: WikiClient, root: WikiClient) -> None:
    directory = accounts(web).directory
    names = [f"Name{number:03}" for number in range(2 * ACCOUNTS_LISTED + 1)]
    for name in reversed(names):
        directory.make(name, status="banned" if name.endswith("7") else "active")
    path, seen = "/-/users?q=nAm", list[str]()
    while path:
        part = listed(root, path)
        assert len(part) <= ACCOUNTS_LISTED
        seen += part
        onward = re.search(r'href="([^"]*)" rel="next"', root.get(path).text)
        path = unescape(onward[1]) if onward else ""
    assert seen == names
    assert listed(root, "/-/users?q=n%C3%A0me01&state=banned") == ["Name017"], "accents do not count"
    assert listed(root, "/-/users?state=administrator") == ["Root"]
    assert "There is none here." in root.get("/-/users?q=zzz").text


def test_a_part_looks_at_a_bounded_number_and_goes_on_where_it_ended(
    web: WikiClient, root: WikiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(administration, "ACCOUNTS_SCANNED", 10)
    directory = accounts(web).directory
    for number in range(25):
        directory.make(f"Name{number:03}", status="pending" if number == 24 else "active")
    path, steps = "/-/users?state=pending", 0
    while not listed(root, path):
        onward = re.search(r'href="([^"]*)" rel="next"', root.get(path).text)
        assert onward, "there are more"
        path, steps = unescape(onward[1]), steps + 1
    assert (listed(root, path), steps) == (["Name024"], 2)


def test_an_account_is_made_with_a_link_that_sets_its_password(web: WikiClient, root: WikiClient) -> None:
    made = root.post("/-/users", {**root.form("/-/users"), "do": "add", "name": "Zoe", "email": "zoe@mail.example"})
    link = LINK.search(made.text)
    assert link is not None
    assert "no-store" in made.headers["Cache-Control"]
    assert (account(web, "Zoe").status, account(web, "Zoe").admin) == ("invited", False)
    path = "/-/reset?" + unescape(link[1]).partition("?")[2]
    answer = web.post(path, {**web.form(path), "password": "a long password"})
    assert answer.status_code == 200
    assert account(web, "Zoe").status == "active"
    taken = root.post("/-/users", {**root.form("/-/users"), "do": "add", "name": "ZOE", "email": "x@y.example"})
    assert taken.status_code == 409
    assert 'value="ZOE"' in taken.text, "what was typed comes back"
    assert "x@y.example" in taken.text


def test_an_invitation_lets_somebody_register_once(web: WikiClient, root: WikiClient) -> None:
    assert web.get("/-/register").status_code == 403
    link = LINK.search(root.post("/-/users", {**root.form("/-/users"), "do": "invite"}).text)
    assert link is not None
    path = "/-/register?" + unescape(link[1]).partition("?")[2]
    assert web.get(path).status_code == 200


def test_changes_count_at_once_and_are_in_the_audit(web: WikiClient, root: WikiClient) -> None:
    mia = web.signed_in("Mia")
    assert change(root, "Mia", "sessions") == 303
    assert mia.get("/-/settings").status_code == 303, "signed out"
    assert change(root, "Mia", "administrator", admin="1") == 303
    assert account(web, "Mia").admin
    assert change(root, "Mia", "administrator") == 303
    assert not account(web, "Mia").admin
    assert change(root, "Mia", "email", email="mia@mail.example") == 303
    assert account(web, "Mia").email == "mia@mail.example"
    assert change(root, "Mia", "email", email="no address") == 409
    assert change(root, "Mia", "status", status="suspended") == 303
    assert account(web, "Mia").status == "suspended"
    assert change(root, "Mia", "status", status="signed-up") == 400
    assert change(root, "Mia", "nonsense") == 400
    noted = [(one.what, one.user, one.by) for one in accounts(web).audit.recent(10)]
    assert sorted({what for what, *_ in noted}) == ["administrator", "email", "sessions ended", "status"]
    assert {(user, by) for _, user, by in noted} == {("Mia", "Root")}


def test_a_link_for_a_new_password_is_shown_once_and_in_no_address(web: WikiClient, root: WikiClient) -> None:
    web.signed_in("Mia")
    shown = root.post("/-/users", {**root.form("/-/users?name=Mia"), "do": "reset"})
    link = LINK.search(shown.text)
    assert link is not None
    assert not LINK.search(root.get("/-/users?name=Mia").text)
    assert "not good any more" not in web.get("/-/reset?" + unescape(link[1]).partition("?")[2]).text
    assert 'value="mail"' not in shown.text, "there is no mail server"
    with_mail = WikiClient(mail=MailConfig("127.0.0.1", 1, "none"))
    other = with_mail.signed_in("Root", admin=True)
    with_mail.signed_in("Mia")
    assert change(other, "Mia", "mail") == 409, "the account has no address"
    assert change(other, "Mia", "email", email="mia@mail.example") == 303
    assert change(other, "Mia", "mail") == 303


def test_a_deletion_is_asked_about_and_final(web: WikiClient, root: WikiClient) -> None:
    web.signed_in("Mia")
    refused = root.post("/-/users", {**root.form("/-/users?name=Mia"), "do": "status", "status": "deleted"})
    assert refused.status_code == 400
    assert '<option value="deleted" selected>' in refused.text
    assert account(web, "Mia").status == "active"
    form = root.form("/-/users?name=Mia")
    assert root.post("/-/users", {**form, "do": "status", "status": "deleted", "sure": "yes"}).status_code == 303
    assert account(web, "Mia").status == "deleted"
    for do in ("status", "administrator", "email", "reset"):
        assert root.post("/-/users", {**form, "do": do, "status": "active", "admin": "1"}).status_code == 409, do
    assert not account(web, "Mia").admin


def test_administrators_cannot_undo_themselves(web: WikiClient, root: WikiClient) -> None:
    assert 'value="status"' not in root.get("/-/users?name=Root").text
    web.signed_in("Mia")
    form = {**root.form("/-/users?name=Mia"), "name": "Root", "id": account(web, "Root").id, "sure": "yes"}
    for given in ({"do": "status", "status": "deleted"}, {"do": "status", "status": "banned"}, {"do": "administrator"}):
        assert root.post("/-/users", {**form, **given}).status_code == 409
    assert (account(web, "Root").status, account(web, "Root").admin) == ("active", True)


def test_a_form_of_an_account_is_for_no_other_account_of_its_name(web: WikiClient, root: WikiClient) -> None:
    web.signed_in("Mia")
    form = {**root.form("/-/users?name=Mia"), "id": "0" * 16, "do": "administrator", "admin": "1"}
    assert root.post("/-/users", form).status_code == 409
    assert not account(web, "Mia").admin


def test_an_account_shows_its_groups_and_where_it_is_signed_in(web: WikiClient, root: WikiClient) -> None:
    web.wiki.save("EditorsGroup", "+Mia+Ben+", author="Root", base=0)
    web.wiki.save("VaultGroup", "+Ben+", author="Root", base=0)
    rights = web.wiki.rights
    rights.change_rules("", {Privilege.WRITE: "EditorsGroup"}, rights.rules())
    rights.change_rules("vault/", {Privilege.READ: "VaultGroup"}, rights.present_rules())
    web.signed_in("Mia")
    shown = root.get("/-/users?name=mia").text
    assert ">EditorsGroup</a>" in shown
    assert "VaultGroup" not in shown
    assert "192.0.2.0" in shown
    assert root.get("/-/users?name=Nobody").status_code == 404


def test_nobody_else_sees_or_changes_accounts(web: WikiClient, root: WikiClient) -> None:
    mia = web.signed_in("Mia")
    given = {"do": "administrator", "name": "Mia", "id": account(web, "Mia").id, "admin": "1"}
    for other in (web, mia, web.signed_in("Sid", status="suspended", admin=True)):
        for path in ("/-/users", "/-/users?name=Root", "/-/groups", "/-/rights", "/-/rights?of=site"):
            answer = other.get(path)
            assert answer.status_code == 403
            assert "Root" not in answer.text
        assert other.post("/-/users", {**other.form("/P/edit"), **given}).status_code == 403
    assert not account(web, "Mia").admin
    assert root.post("/-/users", given).status_code == 403, "without a token"
    assert not account(web, "Mia").admin
