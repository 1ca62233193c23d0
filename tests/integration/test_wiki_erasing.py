"""Single versions of files and single revisions of pages are erased: their bytes leave the store, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.store_thread import StoreThread
from tests.support.stored_wiki import ADA, anybody, attach, empty, wiki_on
from tests.support.wiki_client import WikiClient
from wikka_port import schema
from wikka_port.accounts.tables import AUDIT
from wikka_port.cli import main
from wikka_port.consistency import check
from wikka_port.files.erasing import Erasure
from wikka_port.files.file_rows import BLOB_REFS, BLOBS, CHUNKS, ERASED, FILES, FileVersion
from wikka_port.files.refusals import NoSuchVersion
from wikka_port.moving.refusals import BadRevision
from wikka_port.pages import Wiki
from wikka_port.rights.erasing import GuardedErasure
from wikka_port.rights.guarded import GuardedWiki
from wikka_port.rights.moving import GuardedMoves
from wikka_port.visitors import OPERATOR

SECRET = b"a secret that nobody should have typed\n" * 3


class Fallen(Exception):
    pass


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreThread]:
    with StoreThread(tmp_path_factory.mktemp("erased") / "data") as running:
        yield running


@pytest.fixture(params=["application", "plain"])
def wiki(request: pytest.FixtureRequest, store: StoreThread) -> Iterator[Wiki]:
    with wiki_on(store.port, request.param) as made:
        empty(made)
        made.save("Home", "A text.", author="Ada", base=0)
        yield made


def moves(wiki: Wiki) -> GuardedMoves:
    return GuardedWiki(wiki, OPERATOR).moves


def erasure(wiki: Wiki) -> GuardedErasure:
    return GuardedErasure(moves(wiki))


def added(wiki: Wiki, name: str, content: bytes, page: str = "Home", replaces: str = "") -> FileVersion:
    return attach(wiki, page, name, content, replaces=replaces)


def bytes_stored(wiki: Wiki) -> bytes:
    return b"".join(value for _, cells in wiki.rows.scan(CHUNKS) for value in cells.values())


def audited(wiki: Wiki) -> list[str]:
    return [cells[b"a:note"].decode() for _, cells in wiki.rows.scan(AUDIT) if cells[b"a:what"].startswith(b"erase")]


def test_an_older_version_goes_and_the_others_stay(wiki: Wiki) -> None:
    first = added(wiki, "a.txt", SECRET)
    second = added(wiki, "a.txt", b"harmless\n", replaces=first.token)
    third = added(wiki, "a.txt", b"later\n", replaces=second.token)
    erased = erasure(wiki).erase_file("Home", "A.TXT", 1, reason="by mistake")
    assert (erased.name, erased.number, erased.size_bytes, erased.others) == ("a.txt", 1, len(SECRET), 0)
    assert SECRET[:20] not in bytes_stored(wiki)
    versions = wiki.files.versions("Home", "a.txt")
    assert [one.token for one in versions] == [third.token, second.token, first.token]
    assert (versions[-1].sha256, versions[-1].author, versions[-1].kept) == ("", "Ada", first.token)
    assert b"".join(wiki.files.content(versions[1])) == b"harmless\n"
    assert not any(first.sha256.encode() in cell for _, cells in wiki.rows.scan(FILES) for cell in cells.values())
    assert "Home: A.TXT, version 1. by mistake" in audited(wiki)
    assert erasure(wiki).erase_file("Home", "a.txt", 1).size_bytes == 0, "again changes nothing"
    assert check(wiki, with_contents=True).differences == ()


def test_the_newest_version_is_removed_before_and_nothing_brings_it_back(wiki: Wiki) -> None:
    first = added(wiki, "a.txt", SECRET)
    erasure(wiki).erase_file("Home", "a.txt", 1)
    assert not wiki.files.files_of("Home")["a.txt"].is_there
    assert SECRET[:20] not in bytes_stored(wiki)
    assert [bool(one.sha256) for one in wiki.files.versions("Home", "a.txt")] == [False, False]
    web = WikiClient(wiki)
    assert web.get("/Home/files/a.txt?v=1").status_code == 404
    form = web.form("/Home/file?file=a.txt")
    assert web.post("/Home/file?file=a.txt", {**form, "restore": "1"}).status_code == 404
    again = added(wiki, "a.txt", SECRET)
    assert (again.number, again.sha256) == (3, first.sha256)
    assert check(wiki, with_contents=True).differences == ()


def test_bytes_that_another_version_or_page_has_stay(wiki: Wiki) -> None:
    wiki.save("Other", "text", author="Ada", base=0)
    first = added(wiki, "a.txt", SECRET)
    added(wiki, "b.txt", SECRET, page="Other")
    described = wiki.files.describe("Home", "a.txt", first.token, ADA, alt="words", allow=anybody)
    erased = erasure(wiki).erase_file("Home", "a.txt", 1)
    assert (erased.size_bytes, erased.others) == (0, 2)
    assert b"".join(wiki.files.content(described)) == SECRET
    assert erasure(wiki).erase_file("Home", "a.txt", 2).others == 1
    assert b"".join(wiki.files.content(wiki.files.files_of("Other")["b.txt"])) == SECRET
    assert erasure(wiki).erase_file("Other", "b.txt", 1).size_bytes == len(SECRET)
    assert SECRET[:20] not in bytes_stored(wiki)
    assert check(wiki, with_contents=True).differences == ()


@pytest.mark.parametrize("at", ["blank", "unrefer", "mark", "list", "drop", "delete"])
def test_after_a_crash_a_check_or_the_same_call_finishes(wiki: Wiki, at: str) -> None:
    def fall(step: str) -> None:
        if step == at:
            raise Fallen

    for finish in ("call", "check"):
        version = added(wiki, f"{finish}.txt", SECRET + finish.encode())
        added(wiki, f"{finish}.txt", b"later " + finish.encode(), replaces=version.token)
        wiki.files.on_step_done = wiki.files.sweep.on_step_done = fall
        with pytest.raises(Fallen):
            erasure(wiki).erase_file("Home", f"{finish}.txt", 1)
        wiki.files.on_step_done = lambda step: None
        wiki.files.sweep.on_step_done = lambda step: wiki.files.on_step_done(step)
        left = [one for one in wiki.files.versions("Home", f"{finish}.txt") if one.number == 1]
        assert [one.sha256 for one in left] == [""], "no reader finds it"
        if finish == "check":
            found = [one for one in check(wiki).differences if one.column == ERASED]
            assert len(found) == 1
            assert check(wiki, repair=True).left == ()
        else:
            erasure(wiki).erase_file("Home", f"{finish}.txt", 1)
        assert wiki.rows.row(BLOB_REFS, version.sha256.encode()) == {}
        gone = [one for one in check(wiki, repair=True).left if one.table in (BLOBS, BLOB_REFS, FILES)]
        assert gone == []
        assert SECRET[:20] not in bytes_stored(wiki) or at in ("mark", "list", "drop"), "else a sweep takes the chunks"


def test_what_cannot_be_erased_is_refused(wiki: Wiki) -> None:
    added(wiki, "a.txt", SECRET)
    for number in (2, 0, 99):
        with pytest.raises(NoSuchVersion):
            erasure(wiki).erase_file("Home", "a.txt", number)
    removed = wiki.files.remove("Home", "a.txt", wiki.files.files_of("Home")["a.txt"].token, ADA, allow=anybody)
    with pytest.raises(NoSuchVersion):
        erasure(wiki).erase_file("Home", "a.txt", removed.number)
    assert Erasure(wiki.files, wiki.rows).erase("Home", "a.txt", 1, ADA, anybody).size_bytes == len(SECRET)


def test_the_form_is_for_administrators_and_asks_whether_one_is_sure(wiki: Wiki) -> None:
    added(wiki, "a.txt", SECRET)
    web, path = WikiClient(wiki), "/Home/file?file=a.txt"
    bob, root = web.signed_in("Bob"), web.signed_in("Root", admin=True)
    assert "Erase a version" not in web.get(path).text + bob.get(path).text
    fields = {"erase": "1", "version": "1", "sure": "yes", "note": "asked for"}
    for one in (web, bob):
        assert one.post(path, {**one.form(path), **fields}).status_code == 403
    assert wiki.files.files_of("Home")["a.txt"].is_there
    form = root.form(path)
    asked = root.post(path, {**form, **fields, "sure": ""})
    assert (asked.status_code, 'value="1"' in asked.text, "Say that you are sure" in asked.text) == (409, True, True)
    assert root.post(path, {**form, **fields, "version": "7"}).status_code == 409
    done = root.post(path, {**form, **fields})
    assert done.status_code == 303
    shown = root.get(done.headers["Location"])
    assert "Version 1 is erased." in shown.text
    assert "erased" in web.get(path).text
    assert SECRET[:20] not in bytes_stored(wiki)
    assert "Home: a.txt, version 1. asked for" in audited(wiki)


def test_a_revision_is_erased(wiki: Wiki) -> None:
    wiki.save("Home", SECRET.decode(), author="Ada", note="a secret note", base=1)
    with pytest.raises(BadRevision, match="newest"):
        erasure(wiki).erase_revision("Home", 2)
    wiki.save("Home", "harmless", author="Ada", base=2)
    erasure(wiki).erase_revision("Home", 2, reason="by mistake")
    erasure(wiki).erase_revision("Home", 2)
    stored = b"".join(value for _, cells in wiki.rows.scan(schema.REVISIONS) for value in cells.values())
    assert b"secret" not in stored
    assert [one.number for one in wiki.revisions("Home")] == [3, 1]
    assert "Home: revision 2. by mistake" in audited(wiki)
    with pytest.raises(BadRevision, match="erased for good"):
        moves(wiki).hide("Home", 2, hidden=False)
    for number in (0, 4):
        with pytest.raises(BadRevision):
            erasure(wiki).erase_revision("Home", number)
    assert check(wiki).differences == ()
    wiki.mover.rename("Home", "Moved", ADA, redirect=False)
    wiki.save("Moved", "more", author="Ada", base=3)
    erasure(wiki).erase_revision("Moved", 3)
    assert check(wiki).differences == ()
    page = wiki.page("Moved")
    assert page is not None
    assert (page.body, page.hidden) == ("more", frozenset({2, 3}))


def test_the_form_of_hidden_revisions_erases(wiki: Wiki) -> None:
    wiki.save("Home", "second", author="Ada", base=1)
    web = WikiClient(wiki)
    root = web.signed_in("Root", admin=True)
    form = root.form("/Home/hide")
    fields = {**form, "revision": "1", "erase": "1", "reason": "why"}
    assert web.post("/Home/hide", fields).status_code == 403
    asked = root.post("/Home/hide", fields)
    assert (asked.status_code, 'value="1"' in asked.text, 'value="why"' in asked.text) == (409, True, True)
    assert root.post("/Home/hide", {**fields, "sure": "yes"}).status_code == 303
    assert "Hidden: 1." in root.get("/Home/hide").text
    stored = [cells for _, cells in wiki.rows.scan(schema.REVISIONS) if cells[schema.TIME] and b"meta:erased" in cells]
    assert [cells[schema.REVISION_BODY] for cells in stored] == [b""]


def test_the_commands(wiki: Wiki, tmp_path: Path) -> None:
    added(wiki, "a.txt", SECRET)
    wiki.save("Home", "second", author="Ada", base=1)
    where = ["--store", wiki.store.address, "--indexes=application"]
    named = ["Home", "a.txt", "--version", "1", "--json"]
    declined = CliRunner().invoke(main, ["file", "erase", *where, *named], input="n\n")
    assert (declined.exit_code, wiki.files.files_of("Home")["a.txt"].is_there) == (1, True)
    done = CliRunner().invoke(main, ["file", "erase", *where, *named, "--yes", "--reason", "why"])
    assert json.loads(done.stdout) == {"page": "Home", "name": "a.txt", "version": 1, "bytes": len(SECRET), "others": 0}
    uses = CliRunner().invoke(main, ["file", "uses", *where, "Home", "a.txt", "--json"])
    assert json.loads(uses.stdout) == {"page": "Home", "name": "a.txt", "used_on": []}
    done = CliRunner().invoke(main, ["erase", *where, "Home", "1", "--yes", "--json"])
    assert json.loads(done.stdout) == {"page": "Home", "revision": 1, "erased": True}
    again = CliRunner().invoke(main, ["erase", *where, "Home", "2", "--yes"])
    assert (again.exit_code, "newest revision" in again.stderr) == (1, True)
