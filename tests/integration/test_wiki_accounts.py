"""Accounts on a real store: two that want one name, crashes between rows, an account that ends, a folder of before."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.store_thread import StoreThread
from wikka_port import schema
from wikka_port.accounts import tables
from wikka_port.accounts.audit import Audit
from wikka_port.accounts.deactivation import finish, leave, neutral_name
from wikka_port.accounts.directory import AddressTaken, Directory, NameTaken
from wikka_port.accounts.sessions import Sessions
from wikka_port.accounts.tables import EMAILS, USERS
from wikka_port.accounts.user_names import Unsuitable, checked_name
from wikka_port.consistency import CheckReport, check
from wikka_port.moving.journal import DELETED, MOVES, deleted
from wikka_port.moving.mover import By
from wikka_port.pages import Wiki, clock_ms
from wikka_port.rights.guarded import GuardedWiki
from wikka_port.rights.rules import PageRights, Privilege
from wikka_port.visitors import Visitor


@pytest.fixture(scope="module")
def columnar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreThread]:
    with StoreThread(tmp_path_factory.mktemp("accounts"), trigger_modules=("wikka_port.triggers",)) as running:
        yield running


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreThread]:
    """No trigger writes here beside the application."""
    with StoreThread(tmp_path_factory.mktemp("plain")) as running:
        yield running


@pytest.fixture(params=["columnar", "plain"])
def wiki(request: pytest.FixtureRequest) -> Iterator[Wiki]:
    store = request.getfixturevalue(request.param)
    made = Wiki("127.0.0.1", store.port, indexes="triggers" if request.param == "columnar" else "application")
    made.prepare()
    if request.param == "plain":
        made.store._is_columnar = False
    yield made
    for table in (USERS, EMAILS):
        for row, _ in list(made.rows.scan(table)):
            made.rows.delete(table, row)
    made.store.close()


@pytest.fixture
def directory(wiki: Wiki) -> Directory:
    return Directory(wiki.rows, clock_ms)


def checked(wiki: Wiki, *, repair: bool = False, later_ms: int = 0) -> CheckReport:
    return check(wiki, repair=repair, settle=lambda: wiki.settle("", 30), clock=lambda: clock_ms() + later_ms)


def test_of_two_that_register_one_name_at_once_one_wins(wiki: Wiki) -> None:
    for turn in range(3):
        outcomes: list[Any] = []
        start = threading.Barrier(3)

        def register(number: int, name: str, start: threading.Barrier = start, outcomes: list[Any] = outcomes) -> None:
            start.wait(60)
            try:
                own = Directory(wiki.rows, clock_ms)
                outcomes.append(own.make(name, status="active", email=f"{name}{number}@example.org"))
            except NameTaken:
                outcomes.append(None)

        threads = [threading.Thread(target=register, args=(number, f"Ada {turn}")) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        made = [one for one in outcomes if one is not None]
        assert (len(outcomes), len(made)) == (3, 1)
        assert Directory(wiki.rows, clock_ms).account(f"Ada {turn}") == made[0]
    assert len(list(wiki.rows.scan(EMAILS))) == 3, "those that lost have released their addresses"
    assert not checked(wiki, later_ms=tables.GRACE_MS * 2).differences


def test_an_address_is_of_one_account(directory: Directory) -> None:
    ada = directory.make("Ada", status="active", email="Ada@Example.org")
    with pytest.raises(AddressTaken):
        directory.make("Eve", status="active", email="ada@example.ORG")
    assert directory.account("Eve") is None
    assert directory.by_address(" ADA@example.org") == ada
    directory.set_email(ada, "ada@new.example")
    assert directory.by_address("ada@example.org") is None
    eve = directory.make("Eve", status="active", email="ada@example.org")
    assert directory.by_address("ada@example.org") == eve


class Fallen(BaseException):
    pass


def test_what_fell_between_the_address_and_the_account_is_swept(
    wiki: Wiki, directory: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = type(wiki.rows).change

    def fall_before_users(self: Any, table: bytes, *given: Any, **options: Any) -> bool:
        if table == USERS:
            raise Fallen
        return change(self, table, *given, **options)

    with monkeypatch.context() as patched:
        patched.setattr(type(wiki.rows), "change", fall_before_users)
        with pytest.raises(Fallen):
            directory.make("Ada", status="active", email="ada@example.org")
    assert not checked(wiki).differences, "it may run right now"
    later = tables.GRACE_MS * 2
    found = checked(wiki, later_ms=later).differences
    assert [(one.table, one.kind.value) for one in found] == [(EMAILS, "stale")]
    assert not checked(wiki, repair=True, later_ms=later).left
    assert directory.make("Eve", status="active", email="ada@example.org").name == "Eve"
    assert not checked(wiki, later_ms=later).differences


def test_what_fell_between_an_address_and_the_next_is_swept(wiki: Wiki, directory: Directory) -> None:
    ada = directory.make("Ada", status="active", email="one@example.org")
    directory._take_address(replace(ada, email="two@example.org"))  # and the account's row was never written
    later = tables.GRACE_MS * 2
    assert not checked(wiki, repair=True, later_ms=later).left
    assert directory.by_address("one@example.org") == ada
    assert directory.make("Eve", status="active", email="two@example.org").email == "two@example.org"


def test_an_address_whose_row_is_gone_gets_it_back(wiki: Wiki, directory: Directory) -> None:
    ada = directory.make("Ada", status="active", email="one@example.org")
    for row, _ in list(wiki.rows.scan(EMAILS)):
        wiki.rows.delete(EMAILS, row)
    report = checked(wiki, repair=True)
    assert {one.kind.value for one in report.differences} == {"missing"}
    assert not report.left
    assert directory.by_address("one@example.org") == ada


def test_a_session_begins_only_with_the_password_that_was_verified(wiki: Wiki, directory: Directory) -> None:
    sessions = Sessions(wiki.rows, clock_ms)
    ada = directory.make("Ada", status="active", password="old hash")
    cookie = sessions.begin(ada, network="n", agent="a")
    assert cookie is not None
    assert sessions.visitor(cookie, "").name == "Ada"  # type: ignore[union-attr]
    directory.set_password(ada, "new hash")
    assert sessions.visitor(cookie, "") is None, "all sessions have ended"
    assert sessions.begin(ada, network="n", agent="a") is None


def test_a_session_that_was_ended_is_not_brought_back_by_being_seen(
    wiki: Wiki, directory: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [clock_ms()]
    sessions = Sessions(wiki.rows, lambda: now[0])
    ada = directory.make("Ada", status="active", password="hash")
    cookie = sessions.begin(ada, network="n", agent="a")
    assert cookie is not None
    now[0] += 600_000
    change = type(wiki.rows).change

    def end_first(self: Any, *given: Any, **options: Any) -> bool:
        for one in sessions.of(ada.row):
            sessions.end(ada.row, one.column)
        return change(self, *given, **options)

    with monkeypatch.context() as patched:
        patched.setattr(type(wiki.rows), "change", end_first)
        sessions.visitor(cookie, "")
    assert sessions.visitor(cookie, "") is None
    assert sessions.of(ada.row) == []


def test_the_audit_is_read_newest_first(wiki: Wiki) -> None:
    now = [clock_ms() + 10_000_000]
    audit = Audit(wiki.rows, lambda: now[0])
    for number in range(12):
        now[0] += 1
        audit.note("sign-in", user=f"u{number}", network="192.0.2.1")
    assert [one.user for one in audit.recent(5)] == ["u11", "u10", "u9", "u8", "u7"]
    assert audit.recent(1)[0].network == "192.0.2.1"


def test_an_account_that_ends_leaves_its_edits_under_a_neutral_name(wiki: Wiki, directory: Directory) -> None:
    name = f"O'Brien {wiki.indexes}"
    account = directory.make(name, status="active", password="hash", email="o@example.org")
    neutral = neutral_name(account)
    page = f"Page of {name}"
    wiki.save(page, "before there was an account", author=name, base=0)
    for number in (1, 2):
        wiki.save(page, f"text {number}", author=name, base=number, signed="account")
    wiki.save(f"{page} 2", "by another", author="Eve", base=0, signed="account")
    saved = wiki.save(f"{page} 2", "newest", author=name, base=1, signed="account")
    wiki.settle(saved.sequence, 30)
    assert leave(wiki, directory, account) == 3
    assert [one.author for one in wiki.revisions(page)] == [neutral, neutral, name], "another person signed the first"
    assert wiki.page(page).author == neutral  # type: ignore[union-attr]
    assert [one.author for one in wiki.revisions(f"{page} 2")] == [neutral, "Eve"]
    changed = [one.author for one in wiki.changes(limit=100)[0] if one.name.startswith(page)]
    assert sorted(changed) == sorted([neutral, neutral, name, neutral, "Eve"])
    assert not checked(wiki).differences
    gone = directory.account(name)
    assert gone is not None
    assert (gone.status, gone.password, gone.email, gone.admin) == ("deleted", "", "", False)
    assert list(wiki.rows.scan(EMAILS)) == []
    with pytest.raises(NameTaken):
        directory.make(name, status="active")


def test_a_renaming_that_fell_is_found_and_finished(wiki: Wiki, directory: Directory) -> None:
    name = f"Ada {wiki.indexes}"
    account = directory.make(name, status="active")
    saved = wiki.save(f"Of {name}", "text", author=name, base=0, signed="account")
    wiki.settle(saved.sequence, 30)
    directory.erase(account)  # and the process fell
    found = checked(wiki).differences
    assert [(one.table, one.column) for one in found] == [(USERS, tables.RENAMED)]
    assert not checked(wiki, repair=True).left
    assert wiki.page(f"Of {name}").author == neutral_name(account)  # type: ignore[union-attr]
    assert not checked(wiki).differences
    assert finish(wiki, account) == 0, "twice is once"


def test_an_account_whose_edits_are_not_listed_yet_is_not_finished(
    wiki: Wiki, directory: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = directory.make(f"Eve {wiki.indexes}", status="active")
    with monkeypatch.context() as patched:
        patched.setattr(wiki, "settle", lambda sequence, timeout_s: False)
        leave(wiki, directory, account)
    assert [one.column for one in checked(wiki).differences] == [tables.RENAMED]
    assert not checked(wiki, repair=True).left


def test_a_newer_revision_is_not_touched(wiki: Wiki, directory: Directory) -> None:
    name = f"Bob {wiki.indexes}"
    account = directory.make(name, status="active")
    wiki.save(f"Of {name}", "text", author=name, base=0, signed="account")
    saved = wiki.save(f"Of {name}", "newer", author="Eve", base=1, signed="account")
    wiki.settle(saved.sequence, 30)
    leave(wiki, directory, account)
    assert wiki.page(f"Of {name}").author == "Eve"  # type: ignore[union-attr]
    assert not checked(wiki).differences


def test_an_account_that_ends_signs_no_deleted_page_and_no_hidden_revision(wiki: Wiki, directory: Directory) -> None:
    """Whoever brings the page back, or shows the revision again, does not show the name."""
    name = f"Una {wiki.indexes}"
    account = directory.make(name, status="active")
    neutral, page, by = neutral_name(account), f"Of {name}", By(name, "account", "mine")
    wiki.save(page, "before there was an account", author=name, base=0)
    for number in (1, 2):
        wiki.save(page, f"text {number}", author=name, base=number, signed="account")
    move = wiki.mover.delete(page, by)
    for number, author in enumerate((name, "Eve")):
        wiki.save(f"{page} 2", f"text {number}", author=author, base=number, signed="account")
    wiki.mover.hide(f"{page} 2", 1, hidden=True)
    wiki.settle("", 30)
    assert leave(wiki, directory, account) == 3
    assert [(one.name, one.by) for one in deleted(wiki.rows, page)] == [(page, neutral)]
    assert not holding(wiki, name), "but for what was signed before there was an account"
    wiki.mover.undelete(page, move.row, By("Eve", "account"))
    wiki.mover.hide(f"{page} 2", 1, hidden=False)
    wiki.settle("", 30)
    assert wiki.page(page).author == neutral  # type: ignore[union-attr]
    assert [one.author for one in wiki.revisions(page)] == [neutral, neutral, name]
    assert [one.author for one in wiki.revisions(f"{page} 2")] == ["Eve", neutral]
    changed = [one.author for one in wiki.changes(limit=100)[0] if one.name.startswith(page)]
    assert sorted(changed) == sorted([neutral, neutral, name, neutral, "Eve"])
    assert not checked(wiki).differences
    assert finish(wiki, account) == 0, "twice is once"


def test_an_account_that_ends_is_named_as_the_owner_of_no_page(wiki: Wiki, directory: Directory) -> None:
    """Of none that is there, was deleted, has other rights since, or comes back to an older revision."""
    name, page = f"Ira {wiki.indexes}", f"Owned {wiki.indexes}"
    account = directory.make(name, status="active")
    neutral, by = neutral_name(account), By(name, "account")
    for number in range(4):
        wiki.save(f"{page} {number}", "text", author=name, base=0, owner=name, signed="account")
    before = PageRights(name)
    wiki.rights.change(f"{page} 1", before, name.upper(), {Privilege.READ: "Eve"})
    wiki.rights.change(f"{page} 2", before, name.lower(), {})
    for number in (2, 3):
        wiki.mover.delete(f"{page} {number}", by)
    wiki.settle("", 30)
    assert wiki.owned(name, limit=10) == [f"{page} 0", f"{page} 1"], "however the name was typed"
    assert leave(wiki, directory, account) == 4
    assert not holding(wiki, name)
    for one in deleted(wiki.rows):
        if one.name.startswith(page):
            wiki.mover.undelete(one.name, one.row, By("Eve", "account"))
    wiki.settle("", 30)
    there = [wiki.page(f"{page} {number}") for number in range(4)]
    assert [one.owner for one in there if one] == [neutral] * 4
    assert wiki.rights.of([f"{page} 1"])[f"{page} 1"].lists == {Privilege.READ: "Eve"}, "rights stay as they were"
    other = Visitor("Ben", "Ben", "active", False, "")
    assert not GuardedWiki(wiki, other).access.decision(f"{page} 0", Privilege.CLAIM), (
        "a page of the neutral name has an owner"
    )
    with pytest.raises(Unsuitable):
        checked_name(neutral)
    assert not checked(wiki).differences


def holding(wiki: Wiki, name: str) -> list[tuple[bytes, bytes, bytes]]:
    """Table, row and column of each cell that is the name, where it was the account that signed."""
    return [
        (table, row, column)
        for table in (schema.PAGES, schema.REVISIONS, schema.CHANGES, DELETED, MOVES)
        for row, cells in wiki.rows.scan(table)
        for column, value in cells.items()
        if value == name.encode() and b"account" in (cells.get(schema.SIGNED), cells.get(b"m:signed"))
    ]


def test_a_folder_from_before_accounts_is_brought_up_to_date_in_place(tmp_path: Path) -> None:
    """Pages written without ``meta:signed`` and without tables of accounts."""
    with StoreThread(tmp_path, trigger_modules=("wikka_port.triggers",)) as store:
        old = Wiki("127.0.0.1", store.port)
        old.prepare()
        old.store.run(lambda c: [_drop(c, table.name) for table in tables.TABLES])
        saved = old.save("P", "text", author="Ada", base=0)
        old.settle(saved.sequence, 30)
        for table, column in ((schema.PAGES, schema.SIGNED), (schema.REVISIONS, schema.SIGNED)):
            rows = [row for row, _ in old.rows.scan(table)]
            for row in rows:
                old.rows.delete(table, row, [column])
        assert not checked(old).differences, "a check of an old folder has nothing to say about accounts"
        old.prepare()
        assert not checked(old).differences
        directory = Directory(old.rows, clock_ms)
        ada = directory.make("Ada", status="active")
        page = old.page("P")
        assert page is not None
        assert (page.author, page.signed) == ("Ada", ""), "whoever wrote it: it was not this account"
        saved = old.save("P", "hers", author="Ada", base=1, signed="account")
        old.settle(saved.sequence, 30)
        assert [(one.author, one.signed) for one in old.changes()[0]] == [("Ada", "account"), ("Ada", "")]
        assert leave(old, directory, ada) == 1
        assert not checked(old).differences
        old.store.close()


def _drop(connection: Any, table: bytes) -> None:
    connection.delete_table(table, disable=True)
