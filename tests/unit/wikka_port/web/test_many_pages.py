"""``/-/pages``: all pages selected and changed together, by administrators alone."""

from __future__ import annotations

import re
from html import unescape

import pytest

from tests.support.wiki_client import WikiClient
from tests.unit.wikka_port.web.test_reviews import accounts
from wikka_port import page_selection
from wikka_port.handlers import moves
from wikka_port.moving.runner import work
from wikka_port.names import page_key
from wikka_port.page_selection import PageFilter, selected
from wikka_port.rights.rules import PageRights, Privilege
from wikka_port.schema import HEAD, PAGES, REVISION_AUTHOR, REVISIONS, TIME, VERSIONCOUNT, parse_head, revision_row


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> WikiClient:
    web = WikiClient()
    monkeypatch.setattr(moves, "start", lambda wiki, job: work(wiki, job))
    for name, author, owner in (
        ("Tide", "Ann", "Mia"),
        ("Tidal river", "Ben", "mía"),
        ("Spam one", "Eve", ""),
        ("Spam two", "Eve", "(Nobody)"),
        ("Vault", "Ann", "Olga"),
    ):
        web.wiki.save(name, f"of {name}", author=author, base=0, owner=owner)
    web.wiki.rights.change("Vault", PageRights("Olga"), "Olga", {Privilege.READ: "Olga"})
    return web


@pytest.fixture
def root(web: WikiClient) -> WikiClient:
    return web.signed_in("Root", admin=True)


def listed(browser: WikiClient, query: str = "") -> list[str]:
    text = browser.get(f"/-/pages{query}").text
    return [unescape(one) for one in re.findall(r'name="page" value="([^"]*)"', text)]


def sent(browser: WikiClient, path: str, *pages: str, **fields: str) -> tuple[int, str]:
    """Send the form at ``path`` with these pages ticked."""
    form = browser.form(path)
    answer = browser.client.post("/-/pages", data={**form, "page": list(pages), **fields})
    return answer.status_code, answer.text


def confirmed(browser: WikiClient, path: str, *pages: str, **fields: str) -> tuple[int, str]:
    """Send the form, and the form that asks whether it is meant, as a browser does."""
    _status, text = sent(browser, path, *pages, **fields)
    given: dict[str, list[str]] = {}
    for key, value in re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', text):
        given.setdefault(key, []).append(unescape(value))
    answer = browser.client.post("/-/pages", data={**given, "sure": fields["look"], "reason": "why"})
    return answer.status_code, answer.text


def rights_of(web: WikiClient, name: str) -> PageRights:
    page = web.wiki.page(name)
    assert page is not None
    return page.rights


def test_the_page_of_a_job_never_reloads_itself(
    web: WikiClient, root: WikiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had done so every two seconds: the keyboard began each time at the top, and what was refused was not read."""
    monkeypatch.setattr(moves, "start", lambda wiki, job: None)
    web.signed_in("Olga")
    confirmed(root, "/-/pages", "Tide", look="rights", new_owner="Olga")
    place = place_of_job(web)
    shown = root.get(place)
    assert "0 of 1; under way" in shown.text
    assert f'<a class="button quiet" href="{place}">Show it anew</a>' in shown.text
    refused = root.post(place, {**root.form_of(shown), "csrf": "0.0", "stop": "1"})
    assert (refused.status_code, 'role="alert"' in refused.text) == (403, True)
    assert root.post(place, {**root.form_of(shown), "stop": "1"}).headers["Location"] == place
    stopped = root.get(place)
    assert "0 of 1; stopped" in stopped.text
    assert "Show it anew" not in stopped.text
    assert "progress.js" not in stopped.text, "there is nothing to ask for"
    for answer in (shown, refused, stopped):
        assert "Refresh" not in answer.headers


def place_of_job(web: WikiClient) -> str:
    noted = next(accounts(web).audit.filtered("many pages: rights")).note
    return f"/-/moves?job={re.findall('[0-9a-f]{16}', noted)[0]}"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["Spam one", "Spam two", "Tidal river", "Tide", "Vault"]),
        ("?prefix=TID", ["Tidal river", "Tide"]),
        ("?owner=MIA", ["Tidal river", "Tide"]),
        ("?owner=(Nobody)", ["Spam one", "Spam two"]),
        ("?author=eve", ["Spam one", "Spam two"]),
        ("?author=Ann&owner=Mia", ["Tide"]),
        ("?lists=own", ["Vault"]),
        ("?lists=none&author=Ann", ["Tide"]),
        ("?from=Tidal+river", ["Tidal river", "Tide", "Vault"]),
        ("?owner=Nix", []),
    ],
)
def test_pages_are_selected(root: WikiClient, query: str, expected: list[str]) -> None:
    assert listed(root, query) == expected


def test_pages_are_selected_by_the_time_of_their_last_change(web: WikiClient, root: WikiClient) -> None:
    web.wiki.save("Tide", "again", author="Ann", base=1, time_ms=1_800_000_000_000)  # 2027-01-15T08:00
    assert listed(root, "?since=2027-01-15") == ["Tide"]
    assert listed(root, "?since=2027-01-15T08:00:01") == []
    assert listed(root, "?prefix=Ti&until=2027-01-15T08:00") == ["Tidal river"], "before that moment"
    answer = root.get("/-/pages?since=some+day")
    assert answer.status_code == 400
    assert "2026-11-24T15:00" in answer.text
    assert 'value="some day"' in answer.text


def test_a_page_whose_save_a_crash_cut_short_is_of_its_newest_author(web: WikiClient) -> None:
    row = web.wiki.rows.data[PAGES][page_key("Tide")]
    row[VERSIONCOUNT] = b"2:0123456789abcdef"
    newest = revision_row(page_key("Tide"), parse_head(b"2:0123456789abcdef"))
    web.wiki.rows.data.setdefault(REVISIONS, {})[newest] = {REVISION_AUTHOR: b"Late", TIME: b"1900000000000"}
    assert row[HEAD] != row[VERSIONCOUNT]
    found, _onward = selected(web.wiki.rows, web.wiki, PageFilter(author="Late"))
    assert [(one.name, one.time_ms) for one in found] == [("Tide", 1_900_000_000_000)]


def test_the_list_is_in_parts_without_a_gap_and_each_reads_a_bounded_number(
    web: WikiClient, root: WikiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(130):
        web.wiki.save(f"Page {number:03}", "x", author="Ann" if number % 2 else "Ben", base=0)
    monkeypatch.setattr(page_selection, "LISTED_STEP", 7)
    monkeypatch.setattr(page_selection.selected, "__kwdefaults__", {"start": "", "most": 20, "reads": 30})
    path, seen, parts = "/-/pages?prefix=page&author=Ann", list[str](), 0
    while path:
        web.wiki.calls.clear()
        text = root.get(path).text
        assert web.wiki.calls.count("names") <= 5
        found = re.findall(r'name="page" value="([^"]*)"', text)
        assert len(found) <= 20
        seen, parts = seen + found, parts + 1
        onward = re.search(r'href="([^"]*)" rel="next"', text)
        path = unescape(onward[1]) if onward else ""
    assert seen == [f"Page {number:03}" for number in range(1, 130, 2)]
    assert parts == 5


def test_only_administrators_see_and_change(web: WikiClient, root: WikiClient) -> None:
    form = {**root.form("/-/pages"), "page": "Tide", "look": "delete", "sure": "delete"}
    for other in (web, web.signed_in("Mia"), web.signed_in("Sid", status="suspended", admin=True)):
        assert other.get("/-/pages").status_code == 403
        answer = other.post("/-/pages", {**form, **other.form("/-/login")})
        assert answer.status_code == 403
        assert "Vault" not in answer.text
    assert root.post("/-/pages", {**form, "csrf": "0.0"}).status_code == 403
    assert accounts(web).audit.recent(9) == []


def test_nothing_is_changed_before_it_is_confirmed(web: WikiClient, root: WikiClient) -> None:
    before = rights_of(web, "Tide")
    status, text = sent(root, "/-/pages", "Tide", "Spam one", "No such page", look="rights", new_owner="Root")
    assert status == 200
    assert "2 pages would be changed" in text
    assert "<dd>Root</dd>" in text
    assert "No such page" not in text
    assert rights_of(web, "Tide") == before
    status, text = sent(root, "/-/pages?prefix=Spam", look="delete", all="1")
    assert "2 pages would be deleted" in text
    assert web.wiki.page("Spam one") is not None
    assert accounts(web).audit.recent(9) == []


def test_ticked_pages_get_an_owner_and_it_can_be_undone(web: WikiClient, root: WikiClient) -> None:
    web.signed_in("Mia")
    path = "/-/pages?owner=Olga"
    former = rights_of(web, "Vault")
    answer = confirmed(root, path, "Vault", look="rights", new_owner=" MIA ")
    assert answer[0] == 303
    assert rights_of(web, "Vault").owner == "Mia", "as the account spells it"
    assert rights_of(web, "Vault").lists == former.lists
    assert rights_of(web, "Tide").owner == "Mia"
    entries = [(one.what, one.by, one.note.split(",")[0]) for one in accounts(web).audit.recent(9)]
    assert sorted(entries) == [("many pages: rights", "Root", "1 pages"), ("rights", "Root", "Vault")]
    where = place_of_job(web)
    assert root.post(where, {**root.form(where), "undo": "1"}).status_code == 303
    now = rights_of(web, "Vault")
    assert (now.owner, now.lists) == (former.owner, former.lists)
    assert next(accounts(web).audit.filtered("many pages: undo")).by == "Root"


def test_an_undo_leaves_rights_that_somebody_changed_since(web: WikiClient, root: WikiClient) -> None:
    confirmed(root, "/-/pages", "Tide", "Vault", look="rights", write="+")
    assert rights_of(web, "Tide").lists == {Privilege.WRITE: "+"}
    web.wiki.rights.change("Tide", rights_of(web, "Tide"), "Ben", {})
    where = place_of_job(web)
    answer = root.post(where, {**root.form(where), "undo": "1"})
    assert "changed since" in root.get(answer.headers["Location"]).text
    assert (rights_of(web, "Tide").owner, rights_of(web, "Vault").lists) == ("Ben", {Privilege.READ: "Olga"})


def test_lists_are_set_and_taken_away(web: WikiClient, root: WikiClient) -> None:
    status, text = sent(root, "/-/pages", "Tide", look="rights", how_read="inherit", write="+\r\n!Eve")
    assert status == 200
    assert "the list is taken away" in text
    confirmed(root, "/-/pages", "Vault", "Tide", look="rights", how_read="inherit", write="+\r\n!Eve")
    for name in ("Vault", "Tide"):
        assert rights_of(web, name).lists == {Privilege.WRITE: "+\n!Eve"}
    assert rights_of(web, "Vault").owner == "Olga"
    status, text = confirmed(root, "/-/pages", "Tide", look="rights", how_write="own", write="")
    assert rights_of(web, "Tide").lists == {Privilege.WRITE: ""}, "nobody but the owner"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"look": "rights", "new_owner": "Nobody Known"}, "There is no user “Nobody Known”"),
        ({"look": "rights"}, "Choose what to change"),
        ({"look": "rights", "read": "!"}, "Read the page: "),
        ({"look": "rights", "read": "+", "how_read": "inherit"}, "choose one of both"),
        ({"look": "delete", "new_owner": "Root"}, "pages that are deleted get none"),
        ({"look": "rob"}, "Choose what to change"),
        ({}, "Choose what to change"),
    ],
)
def test_a_refused_form_comes_back_as_it_was(root: WikiClient, fields: dict[str, str], said: str) -> None:
    status, text = sent(root, "/-/pages?prefix=T", "Tide", **fields)
    assert status == 400
    assert said in text
    assert re.search(r'value="Tide" checked', text)
    assert 'name="f_prefix" value="T"' in text
    for key in ("new_owner", "read"):
        assert fields.get(key, "") in text


def test_no_page_is_no_work(root: WikiClient) -> None:
    for pages in ((), ("No such page",)):
        status, text = sent(root, "/-/pages", *pages, look="delete")
        assert (status, "Tick pages" in text) == (400, True)


def test_pages_that_came_meanwhile_are_asked_for_again(web: WikiClient, root: WikiClient) -> None:
    _status, text = sent(root, "/-/pages?prefix=Spam", look="rights", new_owner="Root", all="1")
    form = {key: unescape(value) for key, value in re.findall(r'name="(\w+)" value="([^"]*)"', text)}
    web.wiki.save("Spam zero", "x", author="Ann", base=0)
    status, text = root.post("/-/pages", {**form, "sure": "rights"}).status_code, ""
    assert status == 409
    assert rights_of(web, "Spam one").owner == ""
    _status, text = sent(root, "/-/pages", "Tide", look="rights", new_owner="Root")
    form = {key: unescape(value) for key, value in re.findall(r'name="(\w+)" value="([^"]*)"', text)}
    other = root.post("/-/pages", {**form, "page": "Vault", "sure": "rights"})
    assert other.status_code == 409, "as many, and others"
    assert rights_of(web, "Vault").owner == "Olga"


def test_all_that_match_are_bounded_and_the_rest_is_named(
    web: WikiClient, root: WikiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_selection, "JOB_PAGES_MAX", 3)
    _status, text = sent(root, "/-/pages", look="rights", new_owner="Root", all="1")
    assert "3 pages would be changed" in text
    assert "those from Tide on are left" in text


def test_a_page_that_a_list_hides_from_who_lost_his_rights_is_left(
    web: WikiClient, root: WikiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job asks for the rights of who began it, for each page."""

    def demoted(wiki: object, job: object) -> None:
        directory = accounts(web).directory
        account = directory.account("Root")
        assert account is not None
        directory.set_administrator(account, False)
        work(wiki, job)  # type: ignore[arg-type]

    monkeypatch.setattr(moves, "start", demoted)
    web.signed_in("Second", admin=True)  # a wiki keeps one administrator
    status, _text = confirmed(root, "/-/pages", "Vault", look="rights", new_owner="Root")
    assert status == 303
    account = accounts(web).directory.account("Root")
    assert not account.admin
    assert rights_of(web, "Vault").owner == "Olga"
