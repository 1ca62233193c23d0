"""Watches and notices over a real store: derived by triggers, after moves, a purge, the end of an account, a repair."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.stored_wiki import settle, stored_wiki
from tests.support.wiki_client import WikiClient
from wikka_port.accounts.deactivation import leave
from wikka_port.accounts.directory import Directory
from wikka_port.comments.stored_comments import NewComment
from wikka_port.consistency import check
from wikka_port.moving.journal import deleted
from wikka_port.moving.mover import By
from wikka_port.notices.notice_rows import INBOX, WATCHERS, WATCHES
from wikka_port.pages import Wiki

BY = By("Bob", "account", "why")


@pytest.fixture(scope="module", params=["triggers", "application"])
def wiki(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wiki]:
    with stored_wiki(tmp_path_factory.mktemp("notices"), request.param) as made:
        yield made


def inbox(wiki: Wiki, browser: WikiClient) -> int:
    settle(wiki)
    return browser.get("/-/inbox").text.count('class="entry-name"')


def of(wiki: Wiki, table: bytes, beginning: bytes) -> int:
    return sum(row.startswith(beginning) for row, _ in wiki.rows.scan(table))


def test_a_watch_stays_with_its_page_and_every_fault_is_repaired(wiki: Wiki) -> None:
    web = WikiClient(wiki, edit_burst=10_000)
    ada, bob = web.signed_in("Ada"), web.signed_in("Bob")
    wiki.save("Home", "A text.", author="Ann", base=0)
    ada.post("/Home/watch", {**ada.form("/Home/watch"), "do": "page"})
    settle(wiki)
    bob.save("/Home", "His edit.")
    new = NewComment("A comment.", "Bob", "account", "form", "wikka")
    wiki.comments.add("Home", b"", new, allow=lambda _name, _rights: None)
    assert inbox(wiki, ada) == 2
    assert "2 new" in ada.get("/Home").text
    wiki.mover.rename("Home", "Moved", BY)
    assert inbox(wiki, ada) == 3, "notices of a renamed page lead to its new name, and one tells of the rename"
    assert "/Moved/comments?at=1#c1" in ada.get("/-/inbox").text
    wiki.save("Home", "A new page of the old name.", author="Bob", base=3, notify="Bob")
    bob.save("/Moved", "An edit of the renamed page.")
    assert inbox(wiki, ada) == 4
    wiki.save("Moved", "An import.", author="Zoe", base=3)
    assert inbox(wiki, ada) == 4
    wiki.mover.delete("Moved", BY)
    assert inbox(wiki, ada) == 1, "of a deleted page nothing else is shown than that"
    wiki.mover.undelete("Moved", deleted(wiki.rows, "Moved")[0].row, BY)
    assert inbox(wiki, ada) == 6
    report = check(wiki, settle=lambda: settle(wiki))
    assert report.differences == ()
    rows = [row for row, _ in wiki.rows.scan(WATCHERS)]
    wiki.rows.delete_rows(WATCHERS, rows)
    report = check(wiki, repair=True, settle=lambda: settle(wiki))
    assert report.differences
    assert report.left == ()
    assert [row for row, _ in wiki.rows.scan(WATCHERS)] == rows


def test_a_purge_and_the_end_of_an_account_leave_nothing(wiki: Wiki) -> None:
    web = WikiClient(wiki, edit_burst=10_000)
    eve = web.signed_in("Eve")
    wiki.save("Gone", "A text.", author="Ann", base=0)
    wiki.save("Kept", "A text.", author="Ann", base=0)
    for page in ("Gone", "Kept"):
        eve.post(f"/{page}/watch", {**eve.form(f"/{page}/watch"), "do": "page"})
    settle(wiki)
    web.save("/Kept", "An edit.")
    assert inbox(wiki, eve) == 1
    assert of(wiki, WATCHES, b"eve\0") == 2
    wiki.mover.delete("Gone", BY)
    wiki.mover.purge("Gone", deleted(wiki.rows, "Gone")[0].row, BY)
    settle(wiki)
    assert of(wiki, WATCHES, b"eve\0") == 1
    directory = Directory(wiki.rows, lambda: 1)
    account = directory.account("Eve")
    assert account is not None
    leave(wiki, directory, account)
    settle(wiki)
    assert of(wiki, WATCHES, b"eve\0") == of(wiki, INBOX, b"eve\0") == 0
    assert not any(row.endswith(b"\0eve") for row, _ in wiki.rows.scan(WATCHERS))
    assert check(wiki, settle=lambda: settle(wiki)).differences == ()
