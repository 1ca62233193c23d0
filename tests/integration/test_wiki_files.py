"""Files of pages in a store, as Columnar and as a plain HBase: they follow their page wherever it moves."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.support.store_thread import StoreThread
from tests.support.stored_wiki import ADA, anybody, attach, empty, wiki_on
from wikka_port import schema
from wikka_port.consistency import check
from wikka_port.files.chunks import CHUNK_BYTES
from wikka_port.files.file_rows import (
    CHUNKS,
    FILE,
    UPLOADS,
    CurrentFile,
    FileVersion,
    file_column,
    waiting_column,
    waiting_row,
)
from wikka_port.files.refusals import FileConflict, NoSavedPage, UploadGone
from wikka_port.files.waiting import current_of
from wikka_port.history import fresh_cells
from wikka_port.moving.journal import deleted
from wikka_port.names import page_key
from wikka_port.pages import Wiki

TEXT = b"A note.\n" * 100


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreThread]:
    with StoreThread(tmp_path_factory.mktemp("files") / "data") as running:
        yield running


@pytest.fixture(params=["application", "plain"])
def wiki(request: pytest.FixtureRequest, store: StoreThread) -> Iterator[Wiki]:
    with wiki_on(store.port, request.param) as made:
        empty(made)
        made.save("Home", "A text.", author="Ada", base=0)
        yield made


def added(wiki: Wiki, name: str, content: bytes, page: str = "Home", replaces: str = "") -> FileVersion:
    return attach(wiki, page, name, content, replaces=replaces)


def read(wiki: Wiki, version: FileVersion | CurrentFile, start: int = 0, stop: int | None = None) -> bytes:
    return b"".join(wiki.files.content(version, start, stop))


def files_of(wiki: Wiki, name: str) -> dict[str, CurrentFile]:
    page = wiki.page(name)
    assert page is not None
    return dict(page.files)


def test_a_file_is_stored_and_read(wiki: Wiki) -> None:
    content = b"PK\3\4" + bytes(range(256)) * 6_000
    version = added(wiki, "big.zip", content)
    assert read(wiki, version) == content
    assert read(wiki, version, CHUNK_BYTES - 2, CHUNK_BYTES + 2) == content[CHUNK_BYTES - 2 : CHUNK_BYTES + 2]
    second = added(wiki, "big.zip", content + b"more", replaces=version.token)
    with pytest.raises(FileConflict):
        added(wiki, "big.zip", content)
    removed = wiki.files.remove("Home", "big.zip", second.token, ADA, allow=anybody)
    back = wiki.files.restore("Home", "big.zip", removed.token, version, ADA, allow=anybody)
    assert wiki.files.versions("Home", "big.zip") == [back, removed, second, version]
    assert files_of(wiki, "Home")["big.zip"] == CurrentFile.of(back)
    wiki.save("Home", "Another text.", author="Ada", base=1)
    assert files_of(wiki, "Home")["big.zip"] == CurrentFile.of(back)
    refused = wiki.files.uploads("me")
    assert [one.state for one in refused] == ["whole"]
    wiki.files.abandon(refused[0])
    keys = wiki.rows.row_keys(UPLOADS, b"", b"g", limit=9), wiki.rows.row_keys(CHUNKS, b"", b"g", limit=9)
    assert tuple(map(len, keys)) == ((0, 4)), "two contents of two chunks"


def test_files_follow_a_page_that_moves(wiki: Wiki) -> None:
    first = added(wiki, "a.txt", TEXT)
    wiki.mover.rename("Home", "New", ADA)
    assert files_of(wiki, "Home") == {}, "the redirect has none"
    assert files_of(wiki, "New") == {"a.txt": CurrentFile.of(first)}
    second = added(wiki, "b.txt", b"two", page="Home")
    assert wiki.files.versions("New", "b.txt") == [second], "an upload is led on"
    wiki.mover.delete("New", ADA)
    assert wiki.page("New") is None
    wiki.save("New", "A different page.", author="Bob", base=0)
    assert files_of(wiki, "New") == {}
    other = added(wiki, "a.txt", b"other", page="New")
    assert wiki.files.versions("New", "a.txt") == [other]
    wiki.mover.undelete("New", deleted(wiki.rows, "New")[0].row, ADA, new="Back")
    assert wiki.files.versions("Back", "a.txt") == [first]
    assert read(wiki, files_of(wiki, "Back")["a.txt"]) == TEXT
    assert read(wiki, files_of(wiki, "New")["a.txt"]) == b"other"
    assert check(wiki).differences == ()


def test_an_upload_follows_its_page(wiki: Wiki) -> None:
    for redirect, name in ((True, "One"), (False, "Two")):
        page = "Home" if redirect else "One"
        writer = wiki.files.writer(wiki.files.begin(page, f"{name}.txt", "me", allow=anybody))
        wiki.mover.rename(page, name, ADA, redirect=redirect)
        if not redirect:
            wiki.save(page, "Somebody else's page.", author="Bob", base=0)
        writer.write_piece(TEXT)
        whole = wiki.files.settle(writer.finish_part())
        if redirect:
            wiki.files.commit(whole, ADA, allow=anybody)
        else:
            with pytest.raises(NoSavedPage):
                wiki.files.commit(whole, ADA, allow=anybody)
    assert list(files_of(wiki, "Two")) == ["One.txt"]


def test_a_file_waits_for_the_first_save_of_its_page(wiki: Wiki, monkeypatch: pytest.MonkeyPatch) -> None:
    files = wiki.files
    writer = files.writer(files.begin("New", "a.txt", "me", allow=anybody, allow_new=lambda _page: None))
    writer.write_piece(TEXT)
    whole = files.settle(writer.finish_part())
    with pytest.raises(NoSavedPage):
        files.commit(whole, ADA, allow=anybody)
    files.waiting.keep(whole, note="why", alt="")
    (held,) = files.waiting.of("New", ["other", "me"])
    assert files.waiting.of("New", ["other"]) == files.waiting.of("Home", ["me"]) == []
    assert b"".join(files.waiting.content(current_of(held), 2, 9)) == TEXT[2:9]
    files.waiting.describe(held, "words")
    with pytest.raises(UploadGone):
        files.waiting.describe(held, "others")
    assert check(wiki).differences == ()
    wiki.save("New", "[[a.txt]]", author="Ada", base=0)
    monkeypatch.setattr(files.waiting, "_clock", lambda: held.time_ms)  # all in the millisecond in which it began
    taken = files.waiting.take(files.waiting.of("New", ["me"])[0])
    with pytest.raises(UploadGone):
        files.waiting.take(held)
    version = files.commit(taken, ADA, allow=anybody)
    assert read(wiki, version) == TEXT
    assert files_of(wiki, "New") == {"a.txt": CurrentFile.of(version)}
    assert (files.waiting.of("New", ["me"]), list(wiki.rows.scan(UPLOADS))) == ([], [])
    row, column = waiting_row(page_key("New"), "me"), waiting_column(b"0" * 16)
    wiki.rows.put(UPLOADS, row, {column: b"1"})
    assert [(one.table, one.row, one.column) for one in check(wiki).differences] == [(UPLOADS, row, column)]
    assert check(wiki, repair=True).left == ()
    assert check(wiki).differences == ()


def in_step(wiki: Wiki, wanted: str, change: Callable[[], object]) -> None:
    """Run ``change`` once, after a step of the next upload."""
    left = [wanted]

    def reached(step: str) -> None:
        if left == [step]:
            left.clear()
            change()

    wiki.files.on_step_done = reached


@pytest.mark.parametrize("step", ["refer", "blob", "stage", "commit"])
@pytest.mark.parametrize("move", ["rename", "save"])
def test_a_page_that_changes_during_the_commit_takes_the_file_along(wiki: Wiki, step: str, move: str) -> None:
    if move == "rename":
        in_step(wiki, step, lambda: wiki.mover.rename("Home", "New", ADA))
    else:
        in_step(wiki, step, lambda: wiki.save("Home", "Another.", author="Bob", base=1))
    name = "New" if move == "rename" else "Home"
    version = added(wiki, "a.txt", TEXT)
    assert wiki.files.versions(name, "a.txt") == [version]
    assert read(wiki, files_of(wiki, name)["a.txt"]) == TEXT
    rows = dict(wiki.store.run(lambda c: list(c.table(schema.PAGES).scan(columns=[FILE[:-1]]))))
    assert list(rows) == [page_key(name)]


@pytest.mark.parametrize("wiki", ["plain"], indirect=True)
def test_a_file_put_after_its_page_has_left_is_put_again(wiki: Wiki) -> None:
    """On a plain HBase the put may come between the mark of a move and its copy, or after the page has left."""
    for page, step in (("Home", "mark"), ("New mark", "arrive"), ("New arrive", "moved"), ("New moved", "leave")):
        put_current = wiki.files.committing._put_current

        def put_late(place, version, page=page, step=step, put_current=put_current):
            wiki.files.committing._put_current = put_current
            done: list[bool] = []

            def reached(reached_step: str) -> None:
                if reached_step == step:
                    done.append(put_current(place, version))

            wiki.mover.on_step_done = reached
            wiki.mover.rename(page, f"New {step}", ADA, redirect=False)
            wiki.mover.on_step_done = lambda step: None
            return done[0]

        wiki.files.committing._put_current = put_late
        added(wiki, f"{step}.txt", TEXT, page=page)
    rows = dict(wiki.store.run(lambda c: list(c.table(schema.PAGES).scan(columns=[FILE[:-1]]))))
    assert {key: len(cells) for key, cells in rows.items()} == {page_key("New leave"): 4}
    assert {read(wiki, one) for one in files_of(wiki, "New leave").values()} == {TEXT}


def test_a_stale_row_of_a_page_keeps_its_files(wiki: Wiki) -> None:
    version = added(wiki, "a.txt", TEXT)
    row = wiki.stored_page("Home").row
    fresh = wiki.store.run(lambda c: fresh_cells(c, page_key("Home"), row))
    assert fresh[file_column("a.txt")] == CurrentFile.of(version).pack()


def test_an_upload_goes_on_in_another_request(wiki: Wiki) -> None:
    content = b"0123456789abcdef" * 80_000
    place = wiki.files.begin("Home", "a.txt", "me", len(content), allow=anybody).place.decode()
    for start, stop in ((0, 7), (7, CHUNK_BYTES + 5), (CHUNK_BYTES + 5, len(content))):
        taken = wiki.files.take(wiki.files.upload(place, "me"))
        with pytest.raises(UploadGone):
            wiki.files.take(wiki.files.upload(place, "me"))
        writer = wiki.files.writer(taken)
        writer.write_piece(content[start:stop])
        assert writer.finish_part().stored_bytes == stop
        wiki.files.release_writer(taken)
    version = wiki.files.commit(wiki.files.settle(wiki.files.upload(place, "me")), ADA, allow=anybody)
    assert read(wiki, version) == content
