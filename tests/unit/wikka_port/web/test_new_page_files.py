"""Files of a page that is not saved yet: they wait for its first save, and are their owner's alone until then."""

from __future__ import annotations

import re
from functools import partial

import pytest

from tests.support.file_forms import PNG, upload
from tests.support.wiki_client import WikiClient
from tests.unit.wikka_port.web.test_picture_descriptions import describe
from tests.unit.wikka_port.web.test_resumed_uploads import Tus
from wikka_port.accounts.deactivation import leave
from wikka_port.accounts.directory import Directory
from wikka_port.editing.kept_drafts import owner_of_account
from wikka_port.files import file_rows
from wikka_port.files.contents import Contents
from wikka_port.files.file_rows import (
    BLOB_REFS,
    BLOBS,
    CHUNKS,
    FILES,
    GRACE_MS,
    SWEPT_ROW,
    UPLOAD_TIME,
    UPLOADS,
    WAITING_MS,
    Upload,
    is_waiting_row,
)
from wikka_port.files.refusals import UploadGone
from wikka_port.handlers import waiting_files
from wikka_port.rights import guarded_waiting
from wikka_port.rights.guarded import GuardedWiki
from wikka_port.rights.judging import NotAllowed
from wikka_port.rights.rules import Privilege
from wikka_port.schema import fields_in
from wikka_port.store import StoreUnavailable
from wikka_port.visitors import NOBODY

FARM = "\n".join(f"https://farm{n}.example/x" for n in range(20))
TEXT = "See [[a.png]] and [[b.txt]]."


class Fallen(Exception):
    pass


@pytest.fixture
def web() -> WikiClient:
    made = WikiClient(edit_burst=1_000)
    made.wiki.save("HomePage", "A text.", author="Ann", base=0)
    return made


def left(web: WikiClient, *tables: bytes) -> list[bytes]:
    """Return the rows of uploads, and of ``tables``."""
    found = [row for table in (UPLOADS, *tables) for row, cells in web.wiki.rows.data.get(table, {}).items() if cells]
    return [row for row in found if row != SWEPT_ROW]


def waiting_names(web: WikiClient, page: str = "/New") -> list[str]:
    button = r'name="file" value="([^"]*)"><button class="link" type="submit" name="drop"'
    return re.findall(button, web.get(page + "/files").text)


def drop_of(web: WikiClient, name: str, page: str = "/New") -> dict[str, str]:
    """Return the fields of the button that throws a waiting file away."""
    found = re.search(
        rf'name="file" value="{re.escape(name)}"><button class="link" type="submit" name="drop" value="([0-9a-f]+)"',
        web.get(page + "/files").text,
    )
    assert found is not None
    return {"csrf": web.form(page + "/files")["csrf"], "file": name, "drop": found[1]}


def test_files_wait_for_the_first_save_and_are_the_pages_then(web: WikiClient) -> None:
    answer = upload(web, ("a.png", PNG), ("b.txt", b"words"), page="/New", alt="the harbour", note="of the trip")
    assert (answer.status_code, answer.headers["Location"]) == (303, "/New/files?added=2")
    shown = web.get("/New/files?added=2").text
    assert "2 files are added." in shown
    assert "This page is not saved yet." in shown
    assert waiting_names(web) == ["a.png", "b.txt"]
    assert web.get("/New").status_code == 404
    got = web.get("/New/files/A.png")
    assert got.headers["Location"] == "/New/files/a.png"
    got = web.get("/New/files/a.png?v=0")
    assert (got.status_code, got.data, got.headers["Content-Type"]) == (200, PNG, "image/png")
    assert got.headers["Cache-Control"] == "private, no-cache"
    part = web.get("/New/files/b.txt", headers={"Range": "bytes=1-3"})
    assert (part.status_code, part.data) == (206, b"ord")
    form = web.form("/New/edit")
    assert "[[a.png]]" in web.get("/New/edit").text, "the editor names them"
    preview = web.post("/New/edit", {**form, "body": TEXT, "preview": "1"}).text
    assert '<img src="/New/files/a.png?v=0"' in preview
    assert 'alt="the harbour"' in preview
    live = web.post("/-/preview", {**form, "name": "New", "body": TEXT}).text
    assert '<img src="/New/files/a.png?v=0"' in live
    assert web.save("/New", TEXT).status_code == 303
    files = web.wiki.files.files_of("New")
    assert {(name, one.number, one.alt) for name, one in files.items()} == {
        ("a.png", 1, "the harbour"),
        ("b.txt", 1, "the harbour"),
    }
    (version,) = web.wiki.files.versions("New", "a.png")
    assert (version.note, version.author) == ("of the trip", web.wiki.page("New").author)
    other = web.other_visitor()
    assert other.get("/New/files/a.png").data == PNG
    assert '<img src="/New/files/a.png?v=1"' in other.get("/New").text
    assert left(web) == []


def test_nobody_else_finds_or_takes_what_waits(web: WikiClient) -> None:
    upload(web, ("a.png", PNG), page="/New")
    other, rita = web.other_visitor(), web.signed_in("Rita")
    for one in (other, rita):
        assert one.get("/New/files/a.png").status_code == 404
        assert "a.png" not in one.get("/New/files").text + one.get("/New/edit").text
        form = {**one.form("/New/files"), "file": "a.png", "drop": drop_of(web, "a.png")["drop"]}
        assert one.post("/New/files", form).status_code == 409
        live = one.post("/-/preview", {**one.form("/New/edit"), "name": "New", "body": TEXT}).text
        assert "<img" not in live
    assert rita.save("/New", TEXT).status_code == 303
    assert web.wiki.files.files_of("New") == {}, "she did not add it"
    assert waiting_names(web) == ["a.png"]
    assert waiting_names(rita) == []
    assert 'src="/New/files/a.png' not in web.get("/New/files").text, "the page has no such file"
    assert "Your files that are not on the page yet" in web.get("/New/files").text
    assert web.post("/New/files", {**web.form("/New/files"), "adopt": "1"}).status_code == 200
    assert web.wiki.files.files_of("New")["a.png"].is_there
    assert left(web) == []


@pytest.mark.parametrize("way", ["by hand", "by choice"])
def test_a_conflict_over_the_page_keeps_the_files_for_the_merged_save(web: WikiClient, way: str) -> None:
    form = web.form("/New/edit")
    upload(web, ("a.png", PNG), page="/New")
    web.wiki.save("New", "Another text.", author="Ben", base=0)
    conflict = web.post("/New/edit", {**form, "body": TEXT, "save": "1"})
    assert conflict.status_code == 409
    assert conflict.text.count('name="new" value="1"') == 2, "in both forms"
    if way == "by hand":
        changed = {"body": TEXT, "base": "1", "base_token": web.wiki.page("New").token, "save": "1"}
    else:
        changed = {"body": TEXT, "base": "0", "base_token": "", "place-0": "mine", "choose": "save"}
    assert web.post("/New/edit", {**web.form_of(conflict), **changed}).status_code == 303
    assert web.wiki.page("New").body.strip() == TEXT
    assert web.wiki.files.files_of("New")["a.png"].is_there


def test_a_name_that_the_page_has_by_then_is_said_and_nothing_is_replaced(web: WikiClient) -> None:
    rita = web.signed_in("Rita")
    upload(web, ("a.png", PNG), ("b.txt", b"mine"), page="/New")
    rita.save("/New", "Hers.")
    upload(rita, ("b.txt", b"hers"), page="/New")
    refused = web.post("/New/files", {**web.form("/New/files"), "adopt": "1"})
    assert (refused.status_code, "b.txt was changed or added by somebody else" in refused.text) == (409, True)
    assert web.get("/New/files/b.txt").data == b"hers"
    assert web.get("/New/files/a.png").data == PNG
    assert waiting_names(web) == ["b.txt"]
    dropped = web.post("/New/files", drop_of(web, "b.txt"))
    assert (dropped.status_code, "b.txt is thrown away." in dropped.text) == (200, True)
    assert left(web) == []
    assert len(web.wiki.rows.data[CHUNKS]) == 2


def test_a_name_waits_once_unless_it_is_replaced(web: WikiClient) -> None:
    upload(web, ("a.txt", b"one"), page="/New")
    refused = upload(web, ("A.TXT", b"two"), page="/New")
    assert (refused.status_code, "has a file of this name" in refused.text) == (400, True)
    assert web.get("/New/files/a.txt").data == b"one"
    assert upload(web, ("A.TXT", b"two"), page="/New", replace="yes").status_code == 303
    assert waiting_names(web) == ["A.TXT"]
    assert web.get("/New/files/a.txt", follow_redirects=True).data == b"two"
    assert len(web.wiki.rows.data[CHUNKS]) == 1


def test_who_may_not_make_the_page_adds_no_file(web: WikiClient) -> None:
    rights = web.wiki.rights
    rights.change_rules("vault/", {Privilege.WRITE: "Rita"}, rights.rules())
    web.wiki.clock_s += 5
    assert web.get("/Vault~2FNew/files").status_code == 404
    sent = web.client.post("/Vault~2FNew/files", data={"csrf": web.form("/HomePage/files")["csrf"]})
    assert sent.status_code == 404
    tus = Tus(web)
    tus.page = "Vault~2FNew"
    assert tus.begin("a.txt", 3).status_code == 404
    with pytest.raises(NotAllowed):
        GuardedWiki(web.wiki, NOBODY).files("Vault/New", ["me"]).begin("a.txt", "me")
    rita = web.signed_in("Rita")
    assert upload(rita, ("a.txt", b"one"), page="/Vault~2FNew").status_code == 303
    rights.change_rules("vault/", {Privilege.WRITE: "Ben"}, rights.rules())
    web.wiki.clock_s += 5
    web.wiki.save("Vault/New", "Ben's.", author="Ben", base=0)
    assert rita.post("/Vault~2FNew/files", {**rita.form("/HomePage/files"), "adopt": "1"}).status_code == 403
    hers = GuardedWiki(web.wiki, NOBODY).files("Vault/New", [owner_of_account("Rita")]).waiting
    (waiting,) = hers.uploads()
    for change in (hers.drop, partial(hers.describe, alt="a harbour")):
        with pytest.raises(NotAllowed):
            change("a.txt", waiting.place.decode())
    assert hers.uploads() == [waiting]
    assert web.wiki.files.files_of("Vault/New") == {}
    assert left(web, FILES, BLOBS, BLOB_REFS) != [], "it goes on waiting, and ends by itself"


def test_no_file_waits_for_a_name_that_no_page_can_have(web: WikiClient) -> None:
    web.wiki.save("Harbour", "A text.", author="Ann", base=0)
    refused = upload(web, ("a.txt", b"one"), page="/Harbour.")
    assert (refused.status_code, "No new page can have this name" in refused.text) == (400, True)
    assert Tus(web, "Harbour.").begin("a.txt", 3).status_code == 422
    assert left(web) == []


def test_an_upload_in_parts_waits_too(web: WikiClient) -> None:
    tus = Tus(web, "New")
    place = tus.begin("a.txt", 6, alt="", note="why").headers["Location"]
    tus.part(place, 0, b"one")
    whole = tus.part(place, 3, b"two")
    assert (whole.status_code, whole.headers["Content-Location"]) == (204, "/New/files/a.txt")
    found = tus.send("HEAD", place)
    assert (found.status_code, found.headers["Content-Location"]) == (200, "/New/files/a.txt"), "the answer may be lost"
    assert web.get("/New/files/a.txt").data == b"onetwo"
    assert tus.begin("a.txt", 6).status_code == 422, "the name is taken"
    web.save("/New", "[[a.txt]]")
    assert web.wiki.files.versions("New", "a.txt")[0].note == "why"


def test_a_page_that_is_saved_while_its_file_comes_gets_it_at_once(web: WikiClient) -> None:
    tus = Tus(web, "New")
    place = tus.begin("a.txt", 6).headers["Location"]
    tus.part(place, 0, b"one")
    web.save("/New", "[[a.txt]]")
    assert tus.part(place, 3, b"two").status_code == 204
    assert web.wiki.files.files_of("New")["a.txt"].number == 1
    assert left(web) == []


def test_files_from_before_a_sign_in_are_found_after_it(web: WikiClient) -> None:
    upload(web, ("a.txt", b"one"), page="/New")
    session = web.signed_in("Rita").client.get_cookie("wikka_session")
    assert session is not None
    web.client.set_cookie("wikka_session", session.value)
    assert web.get("/New/files/a.txt").data == b"one"
    web.save("/New", "[[a.txt]]")
    assert web.wiki.files.versions("New", "a.txt")[0].author == "Rita"


def test_an_edit_under_review_keeps_its_files_and_an_accepted_one_gets_them(web: WikiClient) -> None:
    mia, root = web.signed_in("Mia"), web.signed_in("Root", admin=True)
    upload(mia, ("a.png", PNG), page="/New")
    form = mia.form("/New/edit")
    web.now += 60
    mia.now = web.now
    place = mia.post("/New/edit", {**form, "body": FARM, "save": "1"}).headers["Location"]
    assert place.startswith("/-/held")
    assert waiting_names(mia) == ["a.png"]
    assert root.post("/-/held", {**root.form_of(root.get(place)), "accept": "1"}).status_code == 303
    (version,) = web.wiki.files.versions("New", "a.png")
    assert version.author == "Mia"


@pytest.mark.parametrize("step", ["name", "wait"])
def test_a_fall_before_a_file_waits_leaves_nothing(web: WikiClient, step: str) -> None:
    def fall(at: str) -> None:
        if at == step:
            raise Fallen

    files = web.wiki.files
    writer = files.writer(files.begin("New", "a.txt", "me", allow=lambda *_: None, allow_new=lambda _: None))
    writer.write_piece(b"one")
    whole = files.settle(writer.finish_part())
    files.on_step_done = fall
    with pytest.raises(Fallen):
        files.waiting.keep(whole, note="", alt="")
    files.on_step_done = lambda at: None
    assert len(files.waiting.of("New", ["me"])) == (step == "wait")
    web.wiki._now_ms += GRACE_MS + 1
    files.sweep.run()
    assert len(files.waiting.of("New", ["me"])) == (step == "wait"), "what waits is kept for longer than an upload"
    assert bool(left(web, CHUNKS, BLOBS, FILES)) == (step == "wait"), "what its owner does not find is not kept"
    web.wiki._now_ms += WAITING_MS
    files.sweep.run()
    assert left(web, CHUNKS, BLOBS, FILES) == []


def test_a_page_that_is_never_saved_leaves_nothing(web: WikiClient) -> None:
    upload(web, ("a.png", PNG), page="/New")
    web.wiki._now_ms += WAITING_MS - 1_000
    web.wiki.files.sweep.run()
    assert waiting_names(web) == ["a.png"]
    web.wiki._now_ms += 2_000
    assert web.wiki.files.sweep.run().uploads == 1
    assert waiting_names(web) == []
    assert web.get("/New/files/a.png").status_code == 404
    assert left(web, CHUNKS) == []


def test_what_waits_goes_with_its_account(web: WikiClient) -> None:
    upload(web.signed_in("Mia"), ("a.txt", b"one"), page="/New")
    upload(web, ("b.txt", b"two"), page="/New")
    directory = Directory(web.wiki.rows, lambda: 0)
    account = directory.account("Mia")
    assert account is not None
    leave(web.wiki, directory, account)
    assert waiting_names(web) == ["b.txt"]
    assert len(web.wiki.rows.data[CHUNKS]) == 1


def test_bounds(web: WikiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarded_waiting, "WAITING_MAX", 2)
    answer = upload(web, *((f"{n}.txt", b"%d" % n) for n in range(3)), page="/New")
    assert (answer.status_code, "and that is the most" in answer.text) == (400, True)
    assert waiting_names(web) == ["0.txt", "1.txt"]
    assert upload(web, ("0.txt", b"newer"), page="/New", replace="yes").status_code == 303, "as many as before"
    assert web.get("/New/files/0.txt").data == b"newer"
    assert upload(web, ("2.txt", b"2"), page="/Other").status_code == 303
    monkeypatch.setattr(waiting_files, "DESCRIBED_MAX", 1)
    assert describe(web, "/New", file=["0.txt", "1.txt"], alt=["a", "b"]).status_code == 400
    assert file_rows.WAITING_MAX == 100


def test_a_waiting_file_is_asked_for_again_on_a_wiki_with_lists(web: WikiClient) -> None:
    """There the rights of a page are read alone, and say nothing of whether it exists."""
    web.wiki.rights.change_rules("vault/", {Privilege.WRITE: "Rita"}, web.wiki.rights.rules())
    web.wiki.clock_s += 5
    upload(web, ("a.txt", b"one"), page="/New")
    assert web.get("/New/files/a.txt?v=0").headers["Cache-Control"] == "private, no-cache"
    upload(web, ("a.txt", b"two"), page="/New", replace="yes")
    assert web.get("/New/files/a.txt?v=0").data == b"two"
    web.save("/New", "[[a.txt]]")
    assert "immutable" in web.get("/New/files/a.txt?v=1").headers["Cache-Control"]


@pytest.mark.parametrize("step", ["refer", "blob", "stage", "commit"])
def test_what_is_thrown_away_while_the_page_is_saved_keeps_its_bytes(web: WikiClient, step: str) -> None:
    upload(web, ("a.txt", b"one"), page="/New")
    drop, answers = drop_of(web, "a.txt"), list[int]()

    def other_tab(at: str) -> None:
        if at == step and not answers:
            answers.append(0)
            answers[0] = web.post("/New/files", drop).status_code

    web.wiki.files.on_step_done = other_tab
    assert web.save("/New", "[[a.txt]]").status_code == 303
    web.wiki.files.on_step_done = lambda at: None
    assert answers == [200]
    assert web.get("/New/files/a.txt").data == b"one"
    web.wiki._now_ms += GRACE_MS + 1
    web.wiki.files.sweep.run()
    assert web.get("/New/files/a.txt").data == b"one"
    assert left(web) == []


def test_an_account_that_ends_while_its_page_is_saved_leaves_the_file_its_bytes(web: WikiClient) -> None:
    mia, ended = web.signed_in("Mia"), list[int]()

    def end(at: str) -> None:
        if at == "refer" and not ended:
            ended.append(web.wiki.files.waiting.forget(owner_of_account("Mia")))

    upload(mia, ("a.txt", b"one"), page="/New")
    web.wiki.files.on_step_done = end
    assert mia.save("/New", "[[a.txt]]").status_code == 303
    assert ended == [1]
    assert web.get("/New/files/a.txt").data == b"one"


def test_what_a_fallen_save_has_taken_can_be_thrown_away(web: WikiClient) -> None:
    def fall(at: str) -> None:
        if at == "refer":
            raise Fallen

    upload(web, ("a.txt", b"one"), page="/New")
    web.wiki.files.on_step_done = fall
    assert web.save("/New", "[[a.txt]]").status_code == 500
    web.wiki.files.on_step_done = lambda at: None
    assert web.post("/New/files", drop_of(web, "a.txt")).status_code == 200
    assert waiting_names(web) == []
    assert [row for row in left(web) if is_waiting_row(row)] == [], "nothing names it any more"
    web.wiki._now_ms += GRACE_MS + 1
    web.wiki.files.sweep.run()
    assert left(web, CHUNKS) == []


def test_what_has_ended_is_taken_by_nobody_and_leaves_no_row(web: WikiClient) -> None:
    upload(web, ("a.txt", b"one"), page="/New")
    stored = web.wiki.rows.data[UPLOADS].items()
    (held,) = [Upload(row, **fields_in(Upload, cells)) for row, cells in stored if UPLOAD_TIME in cells]
    web.save("/New", "[[a.txt]]")
    for take in (web.wiki.files.waiting.take, web.wiki.files.take, web.wiki.files.contents.discard_upload):
        with pytest.raises(UploadGone):
            take(held)
    assert left(web) == []
    assert web.get("/New/files/a.txt").data == b"one"


def keep_beside(web: WikiClient, name: str, content: bytes) -> None:
    """Let a file wait beside one of its name: a crash came before the end of that one, or both came at once."""
    (owner,) = {cells[b"u:owner"].decode() for cells in web.wiki.rows.data[UPLOADS].values() if UPLOAD_TIME in cells}
    web.wiki._now_ms += 1
    files = web.wiki.files
    writer = files.writer(files.begin("New", name, owner, allow=lambda *_: None, allow_new=lambda _: None))
    writer.write_piece(content)
    files.waiting.keep(files.settle(writer.finish_part()), note="", alt="")
    assert len(files.waiting.of("New", [owner])) == 2


def test_a_replacement_whose_end_a_crash_took_is_the_file_all_the_same(web: WikiClient) -> None:
    upload(web, ("a.txt", b"one"), page="/New")
    keep_beside(web, "a.txt", b"two")
    assert (waiting_names(web), web.get("/New/files/a.txt").data) == (["a.txt"], b"two")
    web.save("/New", "[[a.txt]]")
    assert web.get("/New/files/a.txt").data == b"two"
    assert waiting_names(web) == ["a.txt"], "the one that it replaced"
    assert web.post("/New/files", drop_of(web, "a.txt")).status_code == 200
    assert web.get("/New/files/a.txt").data == b"two"
    assert left(web) == []


@pytest.mark.parametrize("is_done", [True, False])
def test_a_replacement_stays_though_the_store_says_nothing_of_the_end_of_the_replaced_one(
    web: WikiClient, monkeypatch: pytest.MonkeyPatch, is_done: bool
) -> None:
    """A refusal of the form would throw the new one away, after the old one."""
    upload(web, ("a.txt", b"one"), page="/New")
    discard = Contents.discard_upload

    def away(self: Contents, one: Upload) -> None:
        if is_done:
            discard(self, one)
        raise StoreUnavailable("memory", "it is away")

    monkeypatch.setattr(Contents, "discard_upload", away)
    web.wiki._now_ms += 1
    assert upload(web, ("a.txt", b"two"), page="/New", replace="yes").status_code == 303
    monkeypatch.undo()
    assert (waiting_names(web), web.get("/New/files/a.txt").data) == (["a.txt"], b"two")
    web.save("/New", "[[a.txt]]")
    assert web.get("/New/files/a.txt").data == b"two"


def test_two_of_one_name_are_replaced_by_a_third(web: WikiClient) -> None:
    upload(web, ("A.TXT", b"one"), page="/New")
    keep_beside(web, "a.txt", b"two")
    web.wiki._now_ms += 1
    assert upload(web, ("a.txt", b"three"), page="/New", replace="yes").status_code == 303
    assert len(web.wiki.rows.data[CHUNKS]) == 1
    web.save("/New", "[[a.txt]]")
    assert web.get("/New/files/a.txt").data == b"three"
    assert left(web) == []


# --- descriptions of several pictures ----------------------------------------------------------------
