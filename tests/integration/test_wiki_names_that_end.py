"""A name that ends with its account: a real store is searched for it, whole, after its owner did all that one can."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.store_thread import StoreThread
from wikka_port.accounts import account_check, tables
from wikka_port.accounts.account_check import finish_leavings
from wikka_port.accounts.audit import Audit
from wikka_port.accounts.deactivation import Edits, finish, leave, neutral_name
from wikka_port.accounts.directory import Directory
from wikka_port.accounts.records import Account
from wikka_port.comments.stored_comments import NewComment
from wikka_port.consistency import CheckReport, check
from wikka_port.differences import Kind
from wikka_port.editing.kept_drafts import Drafts, KeptDraft, owner_of_account
from wikka_port.editing.suggestions import EDIT, Review, Suggestion, Suggestions
from wikka_port.files.erasing import Erasure, blanked
from wikka_port.files.file_rows import ERASED, FILES, FileVersion, version_cells, version_row
from wikka_port.moving.jobs import MASS_RIGHTS, UNDO, Job, Jobs, new_job
from wikka_port.moving.journal import ITEM, MOVES
from wikka_port.moving.mover import By
from wikka_port.moving.runner import begin, work
from wikka_port.names import page_key
from wikka_port.pages import Wiki, clock_ms
from wikka_port.preparation import TABLES
from wikka_port.rights.rules import PageRights, RightsChange, parse_former, parse_rights_change
from wikka_port.schema import folded
from wikka_port.visitors import COMMAND

EVE = By("Eve", "account")


def anybody(_name: str, _rights: PageRights) -> None:
    """Allow everything."""


@pytest.fixture(scope="module")
def columnar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreThread]:
    with StoreThread(tmp_path_factory.mktemp("names"), trigger_modules=("wikka_port.triggers",)) as running:
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
    made.store.close()


@pytest.fixture
def directory(wiki: Wiki) -> Directory:
    return Directory(wiki.rows, clock_ms)


def checked(wiki: Wiki, *, repair: bool = False) -> CheckReport:
    return check(wiki, repair=repair, settle=lambda: wiki.settle("", 30))


def uploaded(wiki: Wiki, page: str, name: str, content: bytes, by: By, replaces: str = "") -> FileVersion:
    writer = wiki.files.writer(wiki.files.begin(page, name, owner_of_account(by.name), allow=anybody))
    writer.write_piece(content)
    return wiki.files.commit(wiki.files.settle(writer.finish_part()), by, replaces=replaces, allow=anybody)


def versions(wiki: Wiki, page: str, name: str) -> list[tuple[int, str, str]]:
    """Number, author and token of all versions on the chain, the newest first."""
    return [(one.number, one.author, one.token) for one in wiki.files.versions(page, name)]


def naming(wiki: Wiki, name: str) -> list[tuple[bytes, bytes, bytes]]:
    """Table, row and column of each cell that has the name, folded or not."""
    sought = (name.encode(), folded(name).encode())
    return [
        (table.name, row, column)
        for table in TABLES
        for row, cells in wiki.rows.scan(table.name)
        for column, value in cells.items()
        if any(one in place for one in sought for place in (row, column, value))
    ]


def test_the_authors_of_files_get_the_neutral_name_and_the_chains_stay_whole(wiki: Wiki, directory: Directory) -> None:
    name = f"Ada O'Lace {wiki.indexes}"
    account = directory.make(name, status="active")
    neutral, by, page = neutral_name(account), By(name, "account", "mine"), f"Chart {wiki.indexes}"
    wiki.save(page, "text", author="Eve", base=0)
    first = uploaded(wiki, page, "a.txt", b"one", by)
    second = uploaded(wiki, page, "a.txt", b"two", EVE, replaces=first.token)
    third = uploaded(wiki, page, "a.txt", b"three", By(name, "key"), replaces=second.token)
    unsigned = uploaded(wiki, page, "b.txt", b"by another of that name", By(name, ""))
    wiki.files.remove(page, "b.txt", unsigned.token, by, allow=anybody)
    tokens = {file: [token for _, _, token in versions(wiki, page, file)] for file in ("a.txt", "b.txt")}
    leave(wiki, directory, account)
    assert [author for _, author, _ in versions(wiki, page, "a.txt")] == [neutral, "Eve", neutral]
    assert [author for _, author, _ in versions(wiki, page, "b.txt")] == [neutral, name]
    assert {file: [token for _, _, token in versions(wiki, page, file)] for file in tokens} == tokens
    assert not any(one.is_erased for one in wiki.files.versions(page, "a.txt"))
    assert not checked(wiki).differences
    assert finish(wiki, account) == 0, "twice is once"
    assert {file: [token for _, _, token in versions(wiki, page, file)] for file in tokens} == tokens
    restored = wiki.files.restore(page, "a.txt", third.token, wiki.files.versions(page, "a.txt")[2], EVE, allow=anybody)
    assert b"".join(wiki.files.content(restored)) == b"one"
    described = wiki.files.describe(page, "a.txt", restored.token, EVE, alt="", allow=anybody)
    assert versions(wiki, page, "a.txt")[0] == (5, "Eve", described.token)
    assert not checked(wiki).differences


def test_a_version_is_erased_after_its_author_was_renamed_and_before(wiki: Wiki, directory: Directory) -> None:
    name, page = f"Ina {wiki.indexes}", f"Erased {wiki.indexes}"
    account = directory.make(name, status="active")
    neutral, by = neutral_name(account), By(name, "account")
    wiki.save(page, "text", author="Eve", base=0)
    before = uploaded(wiki, page, "a.txt", b"one", by)
    after = uploaded(wiki, page, "a.txt", page.encode(), by, replaces=before.token)
    uploaded(wiki, page, "a.txt", b"three", by, replaces=after.token)
    erasure = Erasure(wiki.files, wiki.rows)
    erasure.erase(page, "a.txt", 1, EVE, anybody)
    leave(wiki, directory, account)
    assert [one.is_erased for one in wiki.files.versions(page, "a.txt")] == [False, False, True]
    assert erasure.erase(page, "a.txt", 2, EVE, anybody).size_bytes == len(page)
    found = wiki.files.versions(page, "a.txt")
    assert [(one.author, one.is_erased) for one in found] == [(neutral, False), (neutral, True), (neutral, True)]
    assert [one.token for one in found][1:] == [after.token, before.token]
    assert not checked(wiki).differences


def test_an_erasure_that_began_before_a_renaming_does_not_bring_the_name_back(
    wiki: Wiki, directory: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, page = f"Uta {wiki.indexes}", f"Both {wiki.indexes}"
    account = directory.make(name, status="active")
    wiki.save(page, "text", author="Eve", base=0)
    first = uploaded(wiki, page, "a.txt", b"one", By(name, "account"))
    uploaded(wiki, page, "a.txt", b"two", EVE, replaces=first.token)

    def renamed_meanwhile(version: FileVersion) -> FileVersion:
        leave(wiki, directory, account)
        return blanked(version)

    monkeypatch.setattr("wikka_port.files.erasing.blanked", renamed_meanwhile)
    Erasure(wiki.files, wiki.rows).erase(page, "a.txt", 1, EVE, anybody)
    oldest = wiki.files.versions(page, "a.txt")[-1]
    assert (oldest.author, oldest.token, oldest.is_erased) == (neutral_name(account), first.token, True)
    assert not checked(wiki).differences


def test_an_erasure_that_a_crash_cut_off_is_still_found_after_a_renaming(wiki: Wiki, directory: Directory) -> None:
    name, page = f"Ugo {wiki.indexes}", f"Half {wiki.indexes}"
    account = directory.make(name, status="active")
    wiki.save(page, "text", author="Eve", base=0)
    first = uploaded(wiki, page, "a.txt", f"of {page}".encode(), By(name, "account"))
    uploaded(wiki, page, "a.txt", b"two", EVE, replaces=first.token)
    row = version_row(page_key(page), first)
    wiki.rows.put(FILES, row, version_cells(blanked(first)))  # and the process fell
    leave(wiki, directory, account)
    assert [(one.row, one.column, one.kind) for one in checked(wiki).differences] == [(row, ERASED, Kind.STALE)]
    assert not checked(wiki, repair=True).left
    oldest = wiki.files.versions(page, "a.txt")[-1]
    assert (oldest.author, oldest.token, oldest.is_erased) == (neutral_name(account), first.token, True)


@pytest.mark.parametrize("before", ["1", "2"])
def test_an_account_that_ended_before_files_or_jobs_were_renamed_is_found_and_finished(
    wiki: Wiki, directory: Directory, before: str
) -> None:
    name, page = f"Old {before} {wiki.indexes}", f"Older {before} {wiki.indexes}"
    account = directory.make(name, status="active")
    wiki.save(page, "text", author="Eve", base=0)
    uploaded(wiki, page, "a.txt", b"one", By(name, "account"))
    directory.erase(account)
    wiki.rows.put(tables.USERS, account.row, {tables.RENAMED: before.encode()})
    found = checked(wiki).differences
    assert [(one.row, one.column, one.kind) for one in found] == [(account.row, tables.RENAMED, Kind.DIFFERENT)]
    finish_leavings(wiki)
    assert [author for _, author, _ in versions(wiki, page, "a.txt")] == [neutral_name(account)]
    assert not checked(wiki).differences


def given_to(wiki: Wiki, owner: str, page: str) -> Job:
    """Work on rights that gives a page an owner."""
    job = new_job(MASS_RIGHTS, COMMAND, "wiki", rights=RightsChange(owner).pack())
    begin(wiki, job, [page])
    assert work(wiki, job).done
    return job


def test_work_on_rights_gives_nothing_back_to_an_account_that_ended(wiki: Wiki, directory: Directory) -> None:
    """Neither the owner whom it gave pages keeps the name, nor the one whom its undoing would give them back."""
    name, heir, jobs = f"Ivo {wiki.indexes}", f"Heir {wiki.indexes}", Jobs(wiki.rows, clock_ms)
    account = directory.make(name, status="active")
    directory.make(heir, status="active")
    neutral, pages = neutral_name(account), [f"Given {number} {wiki.indexes}" for number in range(2)]
    wiki.save(pages[0], "text", author=name, base=0, owner=name, signed="account")
    wiki.save(pages[1], "text", author="Eve", base=0, signed="account")
    taken, given = given_to(wiki, heir, pages[0]), given_to(wiki, name.upper(), pages[1])
    other = given_to(wiki, heir, pages[1])
    wiki.rows.put(MOVES, given.id, {ITEM + b"damaged": b"0@!!! a page"})
    wiki.settle("", 30)
    leave(wiki, directory, account)
    assert {one.owner for one in map(wiki.page, pages) if one} == {heir}
    stored = [jobs.progress(one.id) for one in (taken, given, other)]
    assert [parse_rights_change(one.job.rights).owner for one in stored if one] == [heir, neutral, heir]
    formers = [item.place for one in stored if one for item in one.done if item.place != b"!!!"]
    assert [parse_former(one)[1].owner for one in formers] == [neutral, "", neutral]
    undo = new_job(UNDO, COMMAND, "wiki", of=taken.id)
    begin(wiki, undo, [pages[0]])
    assert work(wiki, undo).done
    undone = wiki.page(pages[0])
    assert undone is not None
    assert undone.owner == neutral
    wiki.rows.delete(MOVES, given.id)
    assert not checked(wiki).differences


@pytest.mark.parametrize("is_late", [True, False])
def test_a_repair_calls_no_account_renamed_while_triggers_are_late(
    wiki: Wiki, directory: Directory, monkeypatch: pytest.MonkeyPatch, is_late: bool
) -> None:
    name, steps = f"Lea {is_late} {wiki.indexes}", list[str]()
    account = directory.make(name, status="active")
    saved = wiki.save(f"Of {name}", "text", author=name, base=0, signed="account")
    wiki.settle(saved.sequence, 30)
    directory.erase(account)  # and the process fell

    def noted(given: Edits, one: Account) -> int:
        steps.append("renamed")
        return finish(given, one)

    monkeypatch.setattr(wiki, "settle", lambda sequence, timeout_s: not is_late)
    monkeypatch.setattr(account_check, "finish", noted)
    report = check(wiki, repair=True, settle=lambda: steps.append("waited"))
    assert steps == ["waited"] * 3 + ["renamed"], "it waits before each check, and before it renames"
    left = [(one.row, one.column) for one in report.left if one.row == account.row]
    assert left == ([(account.row, tables.RENAMED)] if is_late else [])
    assert (wiki.rows.row(tables.USERS, account.row).get(tables.RENAMED) == tables.ALL_RENAMED) is not is_late
    monkeypatch.undo()
    wiki.settle("", 30)
    finish_leavings(wiki)
    assert not checked(wiki).differences


def test_no_other_cell_of_the_store_has_the_name_of_an_account_that_ended(wiki: Wiki, directory: Directory) -> None:
    name = f"Zoë Marsh {wiki.indexes}"
    account = directory.make(name, status="active")
    _left_everywhere(wiki, account)
    Audit(wiki.rows, clock_ms).note("register", user=name)
    wiki.settle("", 30)
    assert {table for table, _, _ in naming(wiki, name)} >= {b"files", b"drafts", b"suggestions", b"watches", b"moves"}
    leave(wiki, directory, account)
    wiki.settle("", 30)
    left = {(table, column) for table, _, column in naming(wiki, name)}
    assert {table for table, _ in left} == {tables.USERS, tables.AUDIT}, "the name stays taken, and the audit whole"
    assert not checked(wiki).differences


def _left_everywhere(wiki: Wiki, account: Account) -> None:
    name, at_ms = account.name, clock_ms()
    by, owner, there = By(name, "account"), owner_of_account(name), f"Place {wiki.indexes}"
    for page in (there, f"{there} 2", f"{there} 3"):
        wiki.save(page, "text", author=name, base=0, owner=name, signed="account")
        uploaded(wiki, page, "a.txt", page.encode(), by)
        wiki.comments.add(page, b"", NewComment("a comment", name, "account", "form", "wikka"), allow=anybody)
    wiki.mover.rename(there, f"{there} 4", by)
    wiki.mover.delete(f"{there} 2", by)
    wiki.rows.put(MOVES, b"0123456789abcdef", {b"m:kind": b"revert", b"m:author": name.encode()})
    wiki.notices.watching.begin(account.row, b"bdocs", "Docs", account.settings)
    draft = KeptDraft("0123456789abcdef", owner, name, at_ms, at_ms, 1, "", "a draft")
    Drafts(wiki.rows).keep(f"{there} 3", draft)
    one = Suggestion(name, owner, "account", at_ms, 1, "wikka", "a text")
    Suggestions(wiki.rows).add(f"{there} 3", one)
    Suggestions(wiki.rows).add_for_review(one, Review(f"{there} 3", EDIT, form="1"))
