"""Accounts in a browser: registered, signed in and out, reset, ended; and what attackers try against them."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.support.account_pages import PASSWORD, register, session_cookie, sign_in, who
from tests.support.wiki_client import WikiClient
from wikka_port.accounts import tables
from wikka_port.accounts.directory import Directory
from wikka_port.accounts.links import Links
from wikka_port.accounts.passwords import OldHashes, Passwords
from wikka_port.accounts.signing_in import WRONG


@pytest.fixture
def web() -> WikiClient:
    return WikiClient(edit_burst=100)


# --- the way of a person -----------------------------------------------------------------------


def test_register_edit_sign_out_and_in_again(web: WikiClient) -> None:
    assert register(web).headers["Location"] == "/"
    assert who(web) == "Ada"
    web.save("/P", "by me")
    page = web.wiki.page("P")
    assert (page.author, page.signed) == ("Ada", "account")
    assert "no account" not in web.get("/P").text
    assert web.post("/-/logout", web.form("/-/logout")).status_code == 303
    assert who(web) == ""
    assert sign_in(web, "ada", next="/P?a=1").headers["Location"] == "/P?a=1", "case does not count"
    assert who(web) == "Ada"


@pytest.mark.parametrize(
    "onward", ["//evil.example/", "https://evil.example", "/\\evil.example", "evil", "/\n/x", "javascript:1"]
)
def test_a_sign_in_leads_nowhere_else(web: WikiClient, onward: str) -> None:
    register(web)
    other = web.other_visitor()
    assert sign_in(other, next=onward).headers["Location"] == "/"


@pytest.mark.parametrize(
    ("name", "password"),
    [
        ("Ada", "short"),
        ("Ada", "ada-lovelace-1"),
        ("Ada", "aaaaaaaaaaaaaaa"),
        ("Visitor 7f3a", PASSWORD),
        ("Former user 1234", PASSWORD),
        ("10.0.0.1", PASSWORD),
        ("a@b", PASSWORD),
        ("+Ada", PASSWORD),
        ("A\u200bda", PASSWORD),
        ("x" * 76, PASSWORD),
        ("WikiSetup", PASSWORD),
        ("", PASSWORD),
    ],
)
def test_what_no_account_can_be(web: WikiClient, name: str, password: str) -> None:
    answer = register(web, name, password)
    assert (answer.status_code, 'role="alert"' in answer.text) == (400, True)
    assert password not in answer.text, "no password comes back"
    assert who(web) == ""


@pytest.mark.parametrize("name", ["Ada", "ADA", "Adá", "Ada_"])
def test_a_name_is_one_account(web: WikiClient, name: str) -> None:
    register(web)
    assert register(web.other_visitor(), name).status_code == 409


def test_a_name_that_looks_like_another_account_is_taken(web: WikiClient) -> None:
    register(web, "Aca")
    assert register(web.other_visitor(), "\u0410\u0441\u0430").status_code == 409, "Cyrillic as a whole"


def test_wikiwords_where_the_site_wants_them() -> None:
    web = WikiClient(user_names="wikiwords")
    assert register(web, "Ada").status_code == 400
    assert register(web, "AdaLovelace").status_code == 303


def test_registration_may_be_closed_by_approval_or_by_invitation() -> None:
    closed = WikiClient(registration="closed")
    assert closed.get("/-/register").status_code == 403
    assert register(closed).status_code == 403
    waiting = WikiClient(registration="approval")
    assert "has to let you in" in register(waiting).text
    assert "approval" in sign_in(waiting).text
    directory = Directory(waiting.wiki.rows, lambda: 0)
    account = directory.account("Ada")
    assert account is not None
    directory.set_status(account, "active")
    assert sign_in(waiting).status_code == 303


def test_an_invitation_makes_one_account() -> None:
    web = WikiClient(registration="invitation")
    assert register(web).status_code == 403
    token = Links(web.wiki.rows, lambda: 1_000_000_000).issue("invitation")
    path = f"/-/register?invitation={token}"
    fields = {**web.form(path), "password": PASSWORD}
    assert web.post("/-/register", {**fields, "user": "Ada", "password": "x"}).status_code == 400, (
        "and it is still good"
    )
    assert web.post("/-/register", {**fields, "user": "Ada"}).status_code == 303
    other = web.other_visitor()
    assert other.get(path).status_code == 403
    fields = {**other.form("/-/login"), "invitation": token, "user": "Eve", "password": PASSWORD}
    assert other.post("/-/register", fields).status_code == 403


def test_the_first_administrator_comes_by_a_link_that_is_good_once(web: WikiClient) -> None:
    links = Links(web.wiki.rows, lambda: 1_000_000_000)
    token = links.issue("administrator")
    path = f"/-/register?administrator={token}"
    assert web.post("/-/register", {**web.form(path), "user": "Ada", "password": PASSWORD}).status_code == 303
    directory = Directory(web.wiki.rows, lambda: 0)
    assert directory.has_administrator()
    other = web.signed_in("Eve")
    assert other.post("/-/register", other.form(path)).status_code == 403
    assert not directory.account("Eve").admin  # type: ignore[union-attr]
    again = f"/-/register?administrator={links.issue('administrator')}"
    assert other.post("/-/register", other.form(again)).status_code == 303
    assert directory.account("Eve").admin  # type: ignore[union-attr]


def test_settings_are_kept_and_nonsense_is_not(web: WikiClient) -> None:
    ada = web.signed_in("Ada")
    fields = {**ada.form("/-/settings"), "do": "looks", "theme": "dark", "zone": "Europe/Berlin", "changes": "40"}
    assert ada.post("/-/settings", fields).status_code == 303
    text = ada.get("/-/settings").text
    assert 'value="dark" checked' in text
    assert 'value="Europe/Berlin"' in text
    assert 'data-theme="dark"' in text
    ada.post("/-/settings", {**fields, "theme": "<b>", "zone": "Mars/Crater", "changes": "99999999"})
    assert 'value="Europe/Berlin"' in ada.get("/-/settings").text
    assert 'data-theme="dark"' in ada.get("/-/settings").text


@pytest.mark.parametrize(
    ("field", "typed", "said"),
    [
        ("zone", "Europe/Berln", "There is no time zone “Europe/Berln”"),
        ("changes", "5", "A list has 10 to 500 rows."),
        ("revisions", "501", "A list has 10 to 500 rows."),
        ("revisions", "many", "A list has 10 to 500 rows."),
    ],
)
def test_a_setting_that_cannot_be_kept_is_refused_and_none_of_the_others_counts(
    web: WikiClient, field: str, typed: str, said: str
) -> None:
    ada = web.signed_in("Ada")
    fields = {**ada.form("/-/settings"), "do": "looks", "theme": "dark", "dblclick": "1", field: typed}
    answer = ada.post("/-/settings", fields)
    assert (answer.status_code, said in answer.text) == (400, True)
    assert (f'value="{typed}"' in answer.text) == (typed != "many"), "browsers show no words in a field of numbers"
    assert 'value="dark" checked' in answer.text
    assert 'data-theme="dark"' not in ada.get("/-/settings").text


def test_times_are_of_the_readers_zone(web: WikiClient) -> None:
    web.wiki.save("P", "x", author="a", base=0, time_ms=1_750_000_000_000)  # 2025-06-15 15:06:40 UTC
    ada = web.signed_in("Ada")
    ada.post("/-/settings", {**ada.form("/-/settings"), "do": "looks", "zone": "Asia/Tokyo"})
    assert "2025-06-16 00:06 UTC+9</time> by" in ada.get("/P").text
    assert "2025-06-15 15:06 UTC</time>" in web.get("/P").text


def test_length_of_lists_and_double_click(web: WikiClient) -> None:
    for number in range(30):
        web.wiki.save("P", f"{number}", author="a", base=number)
    ada = web.signed_in("Ada")
    assert "data-edit" not in ada.get("/P").text
    fields = {"do": "looks", "changes": "10", "revisions": "10", "dblclick": "1"}
    ada.post("/-/settings", {**ada.form("/-/settings"), **fields})
    assert ada.get("/-/recentchanges?fold=no").text.count("entry-name") == 10
    assert ada.get("/P/revisions").text.count('name="a"') == 10
    assert 'data-edit="/P/edit"' in ada.get("/P").text
    assert "data-edit" not in web.get("/P").text


def test_a_new_password_needs_the_old_one_and_ends_all_sessions(web: WikiClient) -> None:
    register(web)
    elsewhere = web.other_visitor()
    sign_in(elsewhere)
    fields = {**web.form("/-/settings"), "do": "password", "password": "another good one"}
    assert web.post("/-/settings", {**fields, "current": "wrong"}).status_code == 403
    assert who(elsewhere) == "Ada"
    assert web.post("/-/settings", {**fields, "current": PASSWORD}).status_code == 200
    assert (who(web), who(elsewhere)) == ("", "")
    assert sign_in(web).status_code == 403
    assert sign_in(web, password="another good one").status_code == 303


def test_a_sign_in_while_a_new_password_is_set_is_refused(web: WikiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was verified against the old one, whose sessions all ended."""
    register(web)
    web.post("/-/logout", web.form("/-/logout"))
    verify, directory = Passwords.verify, Directory(web.wiki.rows, lambda: 0)

    def verified_too_late(passwords: Passwords, stored: str, password: str, *kinds: OldHashes) -> bool:
        found = verify(passwords, stored, password, *kinds)
        account = directory.account("Ada")
        assert account is not None
        directory.set_password(account, passwords.hashed("another good one"))
        return found

    monkeypatch.setattr(Passwords, "verify", verified_too_late)
    answer = sign_in(web)
    assert (answer.status_code, WRONG in answer.text) == (403, True)
    assert (who(web), session_cookie(web)) == ("", "")


def test_sessions_are_seen_and_ended_one_by_one(web: WikiClient) -> None:
    register(web)
    phone, library = web.other_visitor(), web.other_visitor()
    for other, agent in ((phone, "Phone"), (library, "Library <b>")):
        fields = {**other.form("/-/login"), "user": "Ada", "password": PASSWORD}
        other.post("/-/login", fields, headers={"User-Agent": agent})
    text = web.get("/-/sessions").text
    assert "Library &lt;b&gt;" in text
    key = re.search(r"Library.*?name=\"end\" value=\"(\w+)\"", text, re.S)[1]  # type: ignore[index]
    web.post("/-/sessions", {**web.form("/-/sessions"), "end": key})
    assert (who(web), who(phone), who(library)) == ("Ada", "Ada", "")
    web.post("/-/sessions", {**web.form("/-/sessions"), "end": "others"})
    assert (who(web), who(phone)) == ("Ada", "")


def test_of_another_persons_sessions_none_is_ended(web: WikiClient) -> None:
    ada, eve = web.signed_in("Ada"), web.signed_in("Eve")
    key = re.search(r'name="end" value="(\w+)"', ada.get("/-/sessions").text)[1]  # type: ignore[index]
    eve.post("/-/sessions", {**eve.form("/-/sessions"), "end": key})
    assert who(ada) == "Ada"


def test_delete_my_account_leaves_its_edits_under_a_neutral_name(web: WikiClient) -> None:
    register(web)
    web.save("/P", "by me")
    assert web.post("/-/account", {**web.form("/-/account"), "current": "wrong"}).status_code == 403
    assert who(web) == "Ada"
    assert web.post("/-/account", {**web.form("/-/account"), "current": PASSWORD}).status_code == 200
    assert who(web) == ""
    assert re.fullmatch("Former user [0-9a-f]{4}", web.wiki.page("P").author)
    assert sign_in(web).status_code == 403
    assert register(web).status_code == 409, "nobody else becomes Ada"


def test_the_last_administrator_stays(web: WikiClient) -> None:
    ada = web.signed_in("Ada", admin=True)
    assert ada.post("/-/account", ada.form("/-/account")).status_code == 409
    eve = web.signed_in("Eve", admin=True)
    assert eve.post("/-/account", eve.form("/-/account")).status_code == 200


@pytest.mark.parametrize("path", ["/-/settings", "/-/sessions", "/-/account"])
def test_pages_of_an_account_ask_for_a_sign_in(web: WikiClient, path: str) -> None:
    assert web.get(path).headers["Location"].startswith("/-/login?next=")


# --- sessions ----------------------------------------------------------------------------------


def test_a_session_ends_after_thirty_days_without_use_and_at_last_after_half_a_year(web: WikiClient) -> None:
    register(web)
    for _ in range(6):
        web.now += tables.SESSION_S - 1
        assert who(web) == "Ada"
    web.now += tables.SESSION_S - 1
    assert who(web) == "", "half a year has gone"
    sign_in(web)
    web.now += tables.SESSION_S
    assert who(web) == ""
    assert session_cookie(web) == "", "the browser's cookie goes too"


def test_seen_is_written_every_five_minutes_and_no_view_more(web: WikiClient) -> None:
    ada = web.signed_in("Ada")
    for passed_s, written in ((0, 0), (299, 0), (1, 1), (1, 0), (299, 1)):
        web.now += passed_s
        web.wiki.calls.clear()
        ada.get("/P")
        assert web.wiki.calls.count("rows.change") == written


def test_an_anonymous_view_makes_no_call_for_accounts_and_a_signed_in_one_makes_one(web: WikiClient) -> None:
    web.wiki.save("P", "text", author="a", base=0)
    ada = web.signed_in("Ada")
    web.wiki.calls.clear()
    web.get("/P")
    assert web.wiki.calls == ["page"]
    web.wiki.calls.clear()
    ada.get("/P")
    assert web.wiki.calls == ["rows.row", "page"]


def test_a_store_that_is_away_lets_nobody_in(web: WikiClient) -> None:
    ada = web.signed_in("Ada")
    fields = {**web.form("/-/login"), "user": "Ada", "password": PASSWORD}
    web.wiki.away = True
    assert ada.get("/-/settings").status_code == 503
    answer = web.post("/-/login", fields)
    assert answer.status_code == 503
    assert session_cookie(web) == ""


def test_each_sign_in_makes_a_new_session_and_a_new_browser(web: WikiClient) -> None:
    """Fixation: neither a session nor the key of forms that somebody planted before lives on."""
    register(web)
    other = web.other_visitor()
    planted = session_cookie(web)[:-4] + "AAAA"
    other.client.set_cookie("wikka_session", planted)
    other.client.set_cookie("wikka_visitor", "f" * 32)
    fields = {**other.form("/-/login"), "user": "Ada", "password": PASSWORD}
    before = other.form("/P/edit")
    other.post("/-/login", fields)
    assert session_cookie(other) not in ("", planted, session_cookie(web))
    browser = other.client.get_cookie("wikka_visitor")
    assert browser is not None
    assert browser.value != "f" * 32
    assert other.post("/P/edit", {**before, "body": "x"}).status_code == 403, "a form of before counts no more"


def test_a_session_of_before_is_ended_by_the_next_one_of_the_browser(web: WikiClient) -> None:
    register(web)
    old = session_cookie(web)
    web.post("/-/login", {**web.form("/-/settings"), "user": "Ada", "password": PASSWORD})
    thief = web.other_visitor()
    thief.client.set_cookie("wikka_session", old)
    assert who(thief) == ""


def test_a_cookie_after_sign_out_is_of_no_use(web: WikiClient) -> None:
    register(web)
    kept = session_cookie(web)
    web.post("/-/logout", web.form("/-/logout"))
    web.client.set_cookie("wikka_session", kept)
    assert who(web) == ""


@pytest.mark.parametrize(
    "cookie", ["", ".", "x.y", "YWRh." + "A" * 43, "YWRh", "é." + "A" * 43, "A" * 5000, "YWRh." + "\x7f" * 43]
)
def test_cookies_that_lie_sign_nobody_in(web: WikiClient, cookie: str) -> None:
    register(web)
    other = web.other_visitor()
    answer = other.get("/-/pageindex", headers={"Cookie": f"wikka_session={cookie}"})
    assert answer.status_code == 200
    assert 'class="me"' not in answer.text


def test_cookies_have_what_keeps_them_home(web: WikiClient) -> None:
    register(web)
    fields = {**web.form("/-/login"), "user": "Ada", "password": PASSWORD}
    for made in web.post("/-/login", fields).headers.getlist("Set-Cookie"):
        assert "HttpOnly" in made
        assert "SameSite=Lax" in made
        assert "Path=/" in made
        assert "Domain" not in made
        assert not made.startswith("__Host-"), "a browser takes no such cookie over plain HTTP"
    tls = web.other_visitor()
    form = tls.get("/-/login", base_url="https://localhost")
    csrf = re.search('name="csrf" value="([^"]*)"', form.text)[1]  # type: ignore[index]
    answer = tls.post("/-/login", {"csrf": csrf, "user": "Ada", "password": PASSWORD}, base_url="https://localhost")
    made_by_tls = answer.headers.getlist("Set-Cookie")
    assert len(made_by_tls) == 2
    for made in made_by_tls:
        assert made.startswith("__Host-wikka_")
        assert "Secure" in made


def test_a_person_who_is_banned_is_signed_out_and_stays_out(web: WikiClient) -> None:
    register(web)
    directory = Directory(web.wiki.rows, lambda: 0)
    account = directory.account("Ada")
    assert account is not None
    directory.set_status(account, "banned")
    assert who(web) == ""
    assert "banned" in sign_in(web).text
    assert "banned" not in sign_in(web, password="guess guess").text, "told to nobody else"


def test_an_administrator_who_is_none_any_more_is_none_with_the_next_request(web: WikiClient) -> None:
    ada, _ = web.signed_in("Ada", admin=True), web.signed_in("Root", admin=True)
    directory = Directory(web.wiki.rows, lambda: 0)
    account = directory.account("Ada")
    assert account is not None
    fields = {**web.form("/P/edit"), "body": "x"}
    web.post("/P/edit", fields, environ_overrides={"REMOTE_ADDR": "127.0.0.1"})
    assert "127.0.0.1" in ada.get("/P/revisions").text, "administrators see where visitors wrote from"
    assert "127.0.0.1" not in web.get("/P/revisions").text
    directory.set_administrator(account, False)
    assert "127.0.0.1" not in ada.get("/P/revisions").text


# --- forms of elsewhere ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/-/logout", {}),
        ("/-/settings", {"do": "looks", "theme": "dark"}),
        ("/-/settings", {"do": "password", "current": PASSWORD, "password": "stolen stolen stolen"}),
        ("/-/sessions", {"end": "others"}),
        ("/-/account", {"current": PASSWORD}),
        ("/P/edit", {"body": "theirs", "as": "Ada"}),
    ],
)
def test_a_form_of_another_site_or_session_does_nothing(web: WikiClient, path: str, fields: dict[str, str]) -> None:
    register(web)
    attacker = web.other_visitor()
    register(attacker, "Eve", "a password of hers")
    stolen = attacker.form("/-/settings")["csrf"]
    held = dict(web.wiki.rows.data[tables.USERS][b"ada"])
    for csrf in ("", "0.0", stolen):
        assert web.post(path, {**fields, "csrf": csrf}).status_code == 403
    assert web.wiki.rows.data[tables.USERS][b"ada"] == held
    assert web.wiki.page("P") is None
    assert who(web) == "Ada"


def test_a_sign_in_form_of_another_site_signs_nobody_in(web: WikiClient) -> None:
    register(web, "Eve", "a password of hers")
    victim = web.other_visitor()
    foreign = web.other_visitor().form("/-/login")
    answer = victim.post("/-/login", {**foreign, "user": "Eve", "password": "a password of hers"})
    assert (answer.status_code, who(victim)) == (403, "")


def test_a_form_of_before_the_sign_out_counts_no_more(web: WikiClient) -> None:
    register(web)
    fields = {**web.form("/P/edit"), "body": "x"}
    web.post("/-/logout", web.form("/-/logout"))
    assert web.post("/P/edit", fields).status_code == 403


# --- enumeration -------------------------------------------------------------------------------


def work_of(web: WikiClient, answer: Any) -> tuple[int, str, list[str]]:
    """Status, text without the token, and steps on the store."""
    web.wiki.calls.clear()
    got = answer()
    return got.status_code, re.sub('name="csrf" value="[^"]*"', "", got.text), list(web.wiki.calls)


def test_an_unknown_name_and_a_wrong_password_are_one_answer_and_one_work(
    web: WikiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(web)
    visitor = web.other_visitor()
    fields = {**visitor.form("/-/login"), "password": "a wrong password"}
    hashes: list[str] = []
    from wikka_port.accounts.passwords import Passwords

    verify = Passwords.verify
    monkeypatch.setattr(Passwords, "verify", lambda *given: hashes.append("one") or verify(*given))
    seen = []
    for name in ("Ada", "Nix"):
        status, text, steps = work_of(web, lambda n=name: visitor.post("/-/login", {**fields, "user": n}))
        seen.append((status, text.replace(f'value="{name}"', ""), steps, len(hashes)))
        hashes.clear()
    assert seen[0] == seen[1]
    assert seen[0][0] == 403
    assert WRONG in seen[0][1]
    assert seen[0][3] == 1


def test_guessing_is_slow_for_a_network_and_for_an_account(web: WikiClient) -> None:
    register(web)
    fields = {**web.other_visitor().form("/-/login")}

    def guess(visitor: WikiClient, address: str, form: dict[str, str]) -> int:
        given = {**form, "user": "Ada", "password": "a wrong password"}
        return visitor.post("/-/login", given, environ_overrides={"REMOTE_ADDR": address}).status_code

    visitor = web.other_visitor()
    fields = visitor.form("/-/login")
    assert [guess(visitor, "192.0.2.1", fields) for _ in range(31)][-1] == 429
    assert guess(visitor, "192.0.2.2", fields) == 403, "others are not kept out"
    tried = [guess(visitor, f"198.51.100.{n}", fields) for n in range(40)]
    assert tried[-1] == 429, "many networks together guess no faster"
    web.now += 3600
    assert sign_in(web.other_visitor()).status_code == 303
