"""Files that wait for a page that is saved, since a crash came in between: the loop of the sweep gives them to it.

Only where the store proves that their owner has saved the page, and with the rights of that moment.
"""

from __future__ import annotations

import pytest

from tests.support.file_forms import PNG, upload
from tests.support.wiki_client import WikiClient
from tests.unit.wikka_port.web.test_new_page_files import FARM, TEXT, Fallen, drop_of, keep_beside, left, waiting_names
from wikka_port.accounts.directory import Directory
from wikka_port.editing.kept_drafts import owner_of_account
from wikka_port.files.file_rows import (
    CHUNKS,
    COMMIT_MS,
    GRACE_MS,
    SAVES_MAX,
    UPLOAD_FIELDS,
    UPLOAD_TIME,
    UPLOADS,
    WAITING_MS,
    Upload,
    is_waiting_row,
    places_in,
    saves_in,
)
from wikka_port.files.refusals import UploadGone
from wikka_port.handlers import edit, review_decisions
from wikka_port.moving.mover import By
from wikka_port.names import page_key
from wikka_port.rights import adoption, guarded_waiting
from wikka_port.rights.adoption import Adoption
from wikka_port.rights.blocks import Block
from wikka_port.rights.rules import Privilege
from wikka_port.schema import Head
from wikka_port.security import new_visitor
from wikka_port.store import StoreUnavailable

WRITES = ("rows.put", "rows.change", "rows.delete")


@pytest.fixture
def web() -> WikiClient:
    made = WikiClient(edit_burst=1_000)
    made.wiki.save("HomePage", "A text.", author="Ann", base=0)
    return made


def adopted(web: WikiClient, after_ms: int = COMMIT_MS + 1) -> int:
    """Run the adoption of the loop of the sweep; return how many files it gave to pages."""
    web.wiki._now_ms += after_ms
    web.wiki.clock_s += 5
    return Adoption(web.wiki, lambda: int(web.wiki._now_ms)).run()


@pytest.mark.parametrize("step", ["refer", "blob", "stage", "commit", "end"])
@pytest.mark.parametrize("again", ["save", "adopt", "by itself", "sweep"])
def test_a_save_that_falls_is_finished_or_swept(web: WikiClient, step: str, again: str) -> None:
    upload(web, ("a.png", PNG), ("b.txt", b"two"), page="/New")
    form = {**web.form("/New/edit"), "body": TEXT, "save": "1"}

    def fall(at: str) -> None:
        if at == step:
            raise Fallen

    web.wiki.files.on_step_done = fall
    assert web.post("/New/edit", form).status_code == 500
    assert web.wiki.page("New").body == TEXT, "the text is on disk"
    web.wiki.files.on_step_done = lambda at: None
    if again == "save":
        assert web.post("/New/edit", form).status_code == 303
    elif again == "adopt":
        assert web.post("/New/files", {**web.form("/New/files"), "adopt": "1"}).status_code == 200
    elif again == "by itself":
        assert adopted(web, 0) == 1, "the other one may be in the hands of a request that runs"
        assert adopted(web) == (0 if step == "end" else 1)
    else:
        web.wiki._now_ms += WAITING_MS + 1
        web.wiki.files.sweep.run()
        assert adopted(web) == 0
    there = {name: one.number for name, one in web.wiki.files.files_of("New").items()}
    if again != "sweep":
        assert there == {"a.png": 1, "b.txt": 1}
    for name in there:
        assert web.get(f"/New/files/{name}").status_code == 200
    web.wiki._now_ms += GRACE_MS + 1
    web.wiki.files.sweep.run()
    assert left(web) == []
    if again != "sweep" or step not in ("blob", "stage"):  # what a commit has staged is left to a check
        assert len(web.wiki.rows.data[CHUNKS]) == len(there)


def fallen_save(web: WikiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Save the page in a process that falls before the files that wait for it are the page's."""
    form = {**web.form("/New/edit"), "body": TEXT, "save": "1"}

    def fall(*_: object) -> None:
        raise Fallen

    with monkeypatch.context() as patched:
        patched.setattr(edit, "adopt", fall)
        assert web.post("/New/edit", form, environ_base={"REMOTE_ADDR": "2001:db8::7"}).status_code == 500
    assert web.wiki.page("New") is not None, "the text is on disk"
    assert web.wiki.files.files_of("New") == {}


@pytest.mark.parametrize("has_account", [True, False])
def test_a_save_that_falls_before_its_files_is_finished_by_itself(
    web: WikiClient, monkeypatch: pytest.MonkeyPatch, has_account: bool
) -> None:
    browser = web.signed_in("Rita") if has_account else web
    upload(browser, ("a.png", PNG), ("b.txt", b"two"), page="/New", alt="the harbour", note="of the trip")
    fallen_save(browser, monkeypatch)
    assert adopted(web) == 2
    files = web.wiki.files.files_of("New")
    assert {(name, one.number, one.alt) for name, one in files.items()} == {
        ("a.png", 1, "the harbour"),
        ("b.txt", 1, "the harbour"),
    }
    (version,) = web.wiki.files.versions("New", "a.png")
    page = web.wiki.page("New")
    assert (version.note, version.author, version.signed) == ("of the trip", page.author, page.signed)
    assert (left(web), adopted(web)) == ([], 0)


def test_a_fall_before_the_page_is_saved_gives_it_nothing(web: WikiClient) -> None:
    upload(web, ("a.txt", b"one"), page="/New")
    form = {**web.form("/New/edit"), "body": TEXT, "save": "1"}

    def fall(at: str) -> None:
        if at == "save noted":
            raise Fallen

    web.wiki.files.on_step_done = fall
    assert web.post("/New/edit", form).status_code == 500
    web.wiki.files.on_step_done = lambda at: None
    assert web.wiki.page("New") is None
    assert adopted(web) == 0
    web.signed_in("Rita").save("/New", "Hers.")
    assert (adopted(web), waiting_names(web)) == (0, ["a.txt"]), "what was noted is no revision of the page"


def test_a_later_save_of_another_tab_that_lost_leaves_the_proof_of_the_first(
    web: WikiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload(web, ("a.txt", b"one"), page="/New")
    (owner,) = {cells[b"u:owner"].decode() for cells in web.wiki.rows.data[UPLOADS].values() if UPLOAD_TIME in cells}
    fallen_save(web, monkeypatch)
    web.wiki._now_ms += 1
    assert web.wiki.files.waiting.note_save("New", [owner], Head(1, b"0" * 16), "192.0.2.0/24")
    assert adopted(web) == 1


def test_what_is_thrown_away_leaves_the_proof_for_what_still_waits(
    web: WikiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload(web, ("a.txt", b"one"), ("b.txt", b"two"), page="/New")
    fallen_save(web, monkeypatch)
    assert web.post("/New/files", drop_of(web, "a.txt")).status_code == 200
    assert adopted(web) == 1
    assert list(web.wiki.files.files_of("New")) == ["b.txt"]


def test_what_a_sweep_has_taken_waits_for_nobody(web: WikiClient) -> None:
    seen, owner = list[list[Upload]](), owner_of_account("Rita")
    upload(web.signed_in("Rita"), ("a.txt", b"one"), page="/New")
    web.wiki._now_ms += WAITING_MS + 1
    web.wiki.files.sweep.on_step_done = lambda at: seen.append(web.wiki.files.waiting.of("New", [owner]))
    web.wiki.files.sweep.run()
    assert seen == [[], []]


def test_files_of_more_pages_than_are_looked_up_together(web: WikiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adoption, "ROWS_STEP", 2)
    rita = web.signed_in("Rita")
    for number in range(5):
        upload(rita, ("a.txt", b"one"), page=f"/Page_{number}")
        web.wiki.save(f"Page {number}", TEXT, author="Rita", signed="account", base=0)
    assert adopted(web) == 5


def test_files_for_which_a_store_did_not_answer_are_the_pages_soon(
    web: WikiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload(web, ("a.txt", b"one"), page="/New")
    unfinished = web.wiki.files.waiting.unfinished
    assert unfinished.is_set(), "a process that begins looks for what others have left"
    unfinished.clear()

    def away(_: object) -> dict[str, str]:
        raise StoreUnavailable("memory", "it is away")

    with monkeypatch.context() as patched:
        patched.setattr(guarded_waiting.GuardedWaiting, "adopt", away)
        assert web.save("/New", "[[a.txt]]").status_code == 303
    assert unfinished.is_set()
    assert adopted(web, 0) == 1
    assert left(web) == []


def test_an_accepted_edit_that_falls_before_its_files_is_finished_by_itself(
    web: WikiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload(web, ("a.txt", b"one"), page="/New")
    form = {**web.form("/New/edit"), "body": FARM, "save": "1"}
    web.now += 60
    place = web.post("/New/edit", form).headers["Location"]
    root = web.signed_in("Root", admin=True)

    def fall(*_: object) -> None:
        raise Fallen

    with monkeypatch.context() as patched:
        patched.setattr(review_decisions, "adopt", fall)
        assert root.post("/-/held", {**root.form_of(root.get(place)), "accept": "1"}).status_code == 500
    assert adopted(web) == 1
    (version,) = web.wiki.files.versions("New", "a.txt")
    assert version.author == web.wiki.page("New").author
    assert left(web) == []


def test_without_a_proof_the_files_wait_on(web: WikiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Visitors of one network sign alike, and a name without an account is anybody's."""
    upload(web, ("a.txt", b"one"), page="/New")
    other = web.other_visitor()
    other.save("/New", TEXT)
    assert web.wiki.page("New").author.startswith("Visitor")
    rita, _ben = web.signed_in("Rita"), web.signed_in("Ben")
    for number, (author, signed) in enumerate((("Rita", ""), ("Rita", "visitor"), ("Ben", "account"))):
        upload(rita, ("a.txt", b"two"), page=f"/Page_{number}")
        web.wiki.save(f"Page {number}", TEXT, author=author, signed=signed, base=0)
        web.wiki.save(f"Page {number}", "Hers by now.", author="Rita", signed="account", base=1)
    upload(rita, ("a.txt", b"two"), page="/Led")
    web.wiki.save("Led", '{{redirect page="HomePage"}}', author="Rita", signed="account", base=0)
    assert (adopted(web), waiting_names(web)) == (0, ["a.txt"])
    monkeypatch.setattr(adoption, "FIRST_WITHIN", 2)
    upload(rita, ("a.txt", b"two"), page="/Long")
    for number in range(2):
        web.wiki.save("Long", f"{number}", author="Rita", signed="account", base=number)
    assert adopted(web) == 0, "its first revision is beyond those that are read"
    waiting = web.wiki.files.waiting
    for page in ("Page 0", "Page 1", "Page 2", "Led", "Long"):
        assert [one.name for one in waiting.of(page, [owner_of_account("Rita")])] == ["a.txt"]


def test_an_account_that_saved_the_page_in_another_way_gets_its_files(web: WikiClient) -> None:
    rita = web.signed_in("Rita")
    upload(rita, ("a.txt", b"one"), page="/New")
    web.wiki.save("New", TEXT, author="Rita", signed="key", base=0)
    web.wiki.save("New", "By another.", author="Ben", signed="account", base=1)
    assert adopted(web) == 1
    (version,) = web.wiki.files.versions("New", "a.txt")
    assert (version.author, version.signed) == ("Rita", "key")


def time_of_upload(web: WikiClient) -> list[bytes]:
    return [cells[UPLOAD_TIME] for cells in web.wiki.rows.data[UPLOADS].values() if UPLOAD_TIME in cells]


@pytest.mark.parametrize("lost", ["list", "suspended", "deleted", "block"])
def test_a_right_that_is_gone_lets_the_files_wait_until_they_end(
    web: WikiClient, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    browser = web if lost == "block" else web.signed_in("Rita")
    upload(browser, ("a.txt", b"one"), page="/New")
    before = time_of_upload(web)
    fallen_save(browser, monkeypatch)
    rights, directory = web.wiki.rights, Directory(web.wiki.rows, lambda: 0)
    if lost == "list":
        rights.change("New", web.wiki.page("New").rights, "Ben", {Privilege.WRITE: "Ben"})
    elif lost != "block":
        account = directory.account("Rita")
        assert account is not None
        directory.set_status(account, "deleted" if lost == "deleted" else "suspended")
    else:
        rights.add_block(Block("0123456789abcdef", network="2001:db8::/32", by="Root", reason="spam"))
    web.wiki.calls.clear()
    assert adopted(web) == 0
    assert [one for one in web.wiki.calls if one in WRITES] == [], "what is refused changes nothing"
    assert time_of_upload(web) == before, "each look leaves it the time at which it ends"
    web.wiki._now_ms += WAITING_MS
    assert web.wiki.files.sweep.run().uploads == 1
    assert adopted(web) == 0
    assert left(web, CHUNKS) == []


def test_a_right_that_is_lost_while_a_file_is_adopted_stops_it(
    web: WikiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    rita, lost = web.signed_in("Rita"), list[str]()
    upload(rita, ("a.txt", b"one"), page="/New")
    before = web.wiki.files.waiting.of("New", [owner_of_account("Rita")])
    fallen_save(rita, monkeypatch)

    def lose(at: str) -> None:
        if at == "stage" and not lost:
            lost.append(at)
            web.wiki.rights.change("New", web.wiki.page("New").rights, "Ben", {Privilege.WRITE: "Ben"})

    web.wiki.files.on_step_done = lose
    assert (adopted(web), lost) == (0, ["stage"])
    assert web.wiki.files.files_of("New") == {}
    assert web.wiki.files.waiting.of("New", [owner_of_account("Rita")]) == before, "it waits on, and ends as before"


def test_a_right_that_comes_back_gives_the_page_its_files(web: WikiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    rita, rights = web.signed_in("Rita"), web.wiki.rights
    upload(rita, ("a.txt", b"one"), page="/New")
    fallen_save(rita, monkeypatch)
    rights.change("New", web.wiki.page("New").rights, "Ben", {Privilege.WRITE: "Ben"})
    assert adopted(web) == 0
    rights.change("New", web.wiki.page("New").rights, "Ben", {Privilege.WRITE: "Ben\nRita"})
    assert adopted(web) == 1


def test_a_name_that_the_page_has_by_then_goes_on_waiting_until_it_ends(
    web: WikiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload(web, ("a.txt", b"mine"), ("b.txt", b"mine too"), page="/New")
    before = min(time_of_upload(web))
    fallen_save(web, monkeypatch)
    upload(web.signed_in("Rita"), ("A.txt", b"hers"), page="/New")
    assert adopted(web) == 1
    assert web.get("/New/files/A.txt").data == b"hers"
    assert (waiting_names(web), time_of_upload(web)) == (["a.txt"], [before])
    assert (adopted(web), time_of_upload(web)) == (0, [before])
    web.wiki._now_ms += WAITING_MS
    assert web.wiki.files.sweep.run().uploads == 1
    assert (adopted(web), left(web)) == (0, [])


def test_noted_saves_are_bounded_and_end(web: WikiClient) -> None:
    waiting, key = web.wiki.files.waiting, page_key("New")
    upload(web.signed_in("Rita"), ("a.txt", b"one"), page="/New")
    owners = [owner_of_account("Rita"), "another"]
    (row,) = [one for one in left(web) if is_waiting_row(one)]
    for number in range(SAVES_MAX + 3):
        web.wiki._now_ms += 1
        waiting.note_save("New", owners, Head(number + 1, b"0" * 16), "192.0.2.1")
    noted = saves_in(web.wiki.rows.data[UPLOADS][row])
    assert [one.head.number for one in noted] == list(range(SAVES_MAX + 3, 3, -1)), "the newest"
    assert {(one.head.history, one.network) for one in noted} == {(key, "192.0.2.1")}
    assert [one for one in left(web) if is_waiting_row(one)] == [row], "nothing is noted where nothing waits"
    assert adopted(web) == 0
    assert len(saves_in(web.wiki.rows.data[UPLOADS][row])) == SAVES_MAX
    (one,) = waiting.of("New", owners)
    web.wiki.files.abandon(one)
    assert (adopted(web), left(web)) == (0, [])


def test_a_save_without_waiting_files_writes_nothing_beside_the_page(web: WikiClient) -> None:
    web.save("/Other", "text")
    form = {**web.form("/New/edit"), "body": "text", "save": "1"}
    web.client.set_cookie("wikka_drafts", new_visitor())
    web.wiki.calls.clear()
    assert web.post("/New/edit", form).status_code == 303
    writes = [one for one in web.wiki.calls if one in WRITES]
    assert (writes.count("rows.put"), left(web)) == (0, [])


def test_an_upload_that_has_ended_is_not_brought_back_by_who_comes_late(web: WikiClient) -> None:
    upload(web.signed_in("Rita"), ("a.txt", b"one"), page="/New")
    waiting = web.wiki.files.waiting
    (one,) = waiting.of("New", [owner_of_account("Rita")])
    taken = waiting.take(one)
    with pytest.raises(UploadGone):
        waiting.take(one)
    waiting.release_taken(one, taken)
    assert waiting.of("New", [owner_of_account("Rita")]) == [one]
    web.wiki.files.abandon(one)
    with pytest.raises(UploadGone):
        waiting.take(one)
    assert left(web) == []


def fallen_among_files(web: WikiClient, step: str) -> None:
    """Save the page in a process that falls after a step of the first file's commit."""

    def fall(at: str) -> None:
        if at == step:
            raise Fallen

    web.wiki.files.on_step_done = fall
    assert web.save("/New", TEXT).status_code == 500
    web.wiki.files.on_step_done = lambda at: None


def test_a_file_in_the_hands_of_a_process_that_fell_is_looked_at_again_soon(web: WikiClient) -> None:
    upload(web, ("a.txt", b"one"), page="/New")
    fallen_among_files(web, "refer")
    unfinished = web.wiki.files.waiting.unfinished
    for _minute in range(2):
        unfinished.clear()
        assert (adopted(web, 60_000), unfinished.is_set()) == (0, True), "the loop comes back in a minute"
    unfinished.clear()
    assert (adopted(web), unfinished.is_set()) == (1, False)
    assert left(web) == []


def test_a_file_that_was_removed_since_does_not_come_back_by_itself(web: WikiClient) -> None:
    upload(web, ("a.txt", b"one"), page="/New")
    fallen_among_files(web, "commit")
    form = web.form("/New/file?file=a.txt")
    assert web.post("/New/file?file=a.txt", {**form, "remove": "1"}).status_code == 303
    adopted(web)
    assert not web.wiki.files.files_of("New")["a.txt"].is_there
    assert left(web) == []


def test_a_file_that_another_one_replaced_since_is_no_refusal(web: WikiClient) -> None:
    upload(web, ("a.txt", b"one"), page="/New")
    fallen_among_files(web, "commit")
    assert upload(web.signed_in("Rita"), ("a.txt", b"hers"), page="/New", replace="yes").status_code == 303
    adopted(web)
    assert web.get("/New/files/a.txt").data == b"hers"
    assert (waiting_names(web), left(web)) == ([], [])


def test_an_older_version_of_the_same_bytes_is_not_the_file_that_waits(web: WikiClient) -> None:
    upload(web, ("a.txt", b"one"), page="/New")
    fallen_among_files(web, "refer")
    files, page = web.wiki.files, web.wiki.page("New")
    by = By(page.author, page.signed)
    writer = files.writer(files.begin("New", "a.txt", "a command", allow=lambda *_: None))
    writer.write_piece(b"one")
    made = files.commit(files.settle(writer.finish_part()), by, time_ms=1, allow=lambda *_: None)
    files.remove("New", "a.txt", made.token, by, allow=lambda *_: None)
    assert adopted(web) == 1
    assert web.get("/New/files/a.txt").data == b"one"


def test_a_store_that_is_away_is_asked_again(web: WikiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    upload(web, ("a.txt", b"one"), page="/New")
    fallen_save(web, monkeypatch)

    def away(*_: object) -> dict[bytes, str]:
        raise StoreUnavailable("memory", "it is away")

    with monkeypatch.context() as patched:
        patched.setattr(guarded_waiting.GuardedWaiting, "adopt_uploads", away)
        with pytest.raises(StoreUnavailable):
            adopted(web)
    assert adopted(web) == 1


def test_a_row_that_nobody_can_read_holds_up_no_other(
    web: WikiClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for page in ("/New", "/Other", "/Third"):
        upload(web, ("a.txt", page.encode()), page=page)
        form = {**web.form(f"{page}/edit"), "body": TEXT, "save": "1"}
        with monkeypatch.context() as patched:
            patched.setattr(edit, "adopt", lambda *given: None)
            assert web.post(f"{page}/edit", form).status_code == 303
    damaged = min(row for row in left(web) if is_waiting_row(row))
    (place,) = places_in(web.wiki.rows.data[UPLOADS][damaged])
    web.wiki.rows.put(UPLOADS, place, {UPLOAD_FIELDS: b"no JSON"})
    assert adopted(web) == 2
    assert damaged.decode() in caplog.text
    assert [row for row in left(web) if is_waiting_row(row)] == [damaged]


def test_only_files_that_the_page_got_are_counted(web: WikiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    upload(web, ("a.txt", b"one"), page="/New")
    keep_beside(web, "a.txt", b"two")
    fallen_save(web, monkeypatch)
    upload(web.signed_in("Rita"), ("a.txt", b"hers"), page="/New")
    assert adopted(web) == 0
    assert len(web.wiki.rows.data[CHUNKS]) == 3
    (current,) = web.wiki.files.files_of("New").values()
    web.wiki.files.remove("New", "a.txt", current.token, By("Rita", "account"), allow=lambda *_: None)
    assert adopted(web) == 1, "the newer one"
    assert web.get("/New/files/a.txt").data == b"two"
