"""Files after a crash at each step, and after random operations: nothing is lost, and after a day nothing is orphaned.

The model test prints its seed; COLUMNAR_SEED repeats a run.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tests.support.falling_wiki import FallingWiki
from tests.support.seeds import seed
from tests.support.store_thread import StoreThread
from tests.support.stored_wiki import ADA, anybody, attach, empty
from wikka_port import schema
from wikka_port.consistency import check
from wikka_port.differences import Kind
from wikka_port.files.file_check import FileCheck, is_of_files
from wikka_port.files.file_rows import (
    BLOB_REFS,
    BLOB_STATE,
    BLOBS,
    CHUNK,
    CHUNKS,
    FILE,
    FILES,
    GRACE_MS,
    UPLOADS,
    CurrentFile,
    FileVersion,
    file_column,
    parse_blob_state,
)
from wikka_port.files.refusals import UploadGone
from wikka_port.moving.journal import deleted
from wikka_port.names import page_key
from wikka_port.pages import Wiki

SEED = seed(3911)
PHOTO = (
    b"\xff\xd8\xff\xe1\x00\x0aExif\0\0II" + b"\xff\xfe\x00\x08secret"
    + b"\xff\xc0\x00\x0b\x08\x00\x02\x00\x04\x01\x01\x11\x00\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00" + b"\x55" * 9
    + b"\xff\xd9"
)  # fmt: skip
UPLOAD_STEPS = ("begin", "settle", "first place", "refer", "blob", "stage", "commit", "end")
SWEEP_STEPS = ("mark", "list", "drop", "delete")
PURGE_STEPS = ("texts", "version", "unrefer", "mark", "list", "drop", "delete", "files", "done")
KINDS = ("columnar", "plain")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreThread]:
    with StoreThread(tmp_path_factory.mktemp("fallen") / "data") as running:
        Wiki("127.0.0.1", running.port, indexes="application").prepare()
        yield running


@pytest.fixture(params=KINDS)
def house(request: pytest.FixtureRequest, store: StoreThread) -> Iterator[House]:
    made = House(store.port, request.param)
    empty(made.wiki)
    made.wiki.save("Home", "A text.", author="Ada", base=0)
    yield made
    made.wiki.store.close()


class House(FallingWiki):
    """A wiki of files."""

    def __init__(self, port: int, kind: str) -> None:
        super().__init__(port, kind, "files")

    def file_check(self, *, with_contents: bool = True) -> FileCheck:
        files = self.wiki.files
        return FileCheck(
            self.wiki.rows, files.contents, files.sweep, self.clock(), lambda sha256: None, with_contents=with_contents
        )

    def differences(self, *, with_contents: bool = True) -> list[str]:
        return [one.text() for one in self.file_check(with_contents=with_contents).differences()]

    def repair(self) -> None:
        """Repair twice, as ``wikka check --repair`` does: a content is unused once its last reference has gone."""
        for _ in range(2):
            self.file_check().repair(list(self.file_check().differences()))

    def keys(self, table: bytes) -> list[bytes]:
        return self.wiki.rows.row_keys(table, b"", b"g", limit=1_000)

    def repaired(self) -> None:
        """Check that nothing is lost, and that after a day a repair leaves nothing that is orphaned."""
        assert [one for one in self.file_check().differences() if one.kind is Kind.LOST] == []
        self.clock.now += GRACE_MS + 60_000
        self.repair()
        assert self.differences() == []
        states = [parse_blob_state(cells[BLOB_STATE]) for _, cells in self.wiki.rows.scan(BLOBS)]
        live = [one for one in states if one.life == "live"]
        assert {key[:16] for key in self.keys(CHUNKS)} == {one.place for one in live if one.size_bytes}
        assert self.keys(UPLOADS) == []
        assert len(self.keys(BLOB_REFS)) == len(live)


def added(wiki: Wiki, name: str, content: bytes, page: str = "Home", replaces: str = "") -> FileVersion:
    return attach(wiki, page, name, content, replaces=replaces)


def contents(wiki: Wiki, page: str) -> dict[str, bytes]:
    found = wiki.page(page)
    assert found is not None
    return {name: b"".join(wiki.files.content(one)) for name, one in found.files.items() if one.is_there}


@pytest.mark.parametrize("step", UPLOAD_STEPS)
@pytest.mark.parametrize("has_it", [False, True], ids=["new", "equal"])
def test_an_upload_that_falls_leaves_a_whole_file_or_none(house: House, step: str, has_it: bool) -> None:
    if has_it:
        added(house.wiki, "other.jpg", PHOTO)
    others = contents(house.wiki, "Home")
    assert house.fall(step, lambda wiki: added(wiki, "a.jpg", PHOTO))
    house.repaired()
    whole = step in ("commit", "end")
    found = contents(house.wiki, "Home")
    assert found.keys() - others.keys() == ({"a.jpg"} if whole else set())
    assert all(b"secret" not in one for one in found.values())
    added(house.wiki, "b.jpg", PHOTO)
    assert house.differences() == []


def test_a_waiting_file_that_has_ended_is_taken_by_nobody_and_leaves_no_row(house: House) -> None:
    files = house.wiki.files
    writer = files.writer(files.begin("New", "a.txt", "me", allow=anybody, allow_new=lambda _page: None))
    writer.write_piece(b"one")
    files.waiting.keep(files.settle(writer.finish_part()), note="", alt="")
    (held,) = files.waiting.of("New", ["me"])
    files.contents.discard_upload(held)
    with pytest.raises(UploadGone):
        files.waiting.take(held)
    assert house.keys(UPLOADS) == house.keys(CHUNKS) == []
    assert list(house.wiki.rows.scan(UPLOADS)) == []


@pytest.mark.parametrize("step", SWEEP_STEPS)
def test_a_sweep_that_falls_loses_nothing(house: House, step: str) -> None:
    version = added(house.wiki, "a.txt", b"one")
    row = next(iter(house.keys(FILES)), b"")
    house.wiki.rows.delete(FILES, house.wiki.rows.row_keys(FILES, b"", b"g", limit=1)[0])
    house.wiki.rows.delete(schema.PAGES, page_key("Home"), [file_column("a.txt")])
    house.wiki.files.contents.unrefer(version.sha256, row)
    assert house.fall(step, lambda wiki: wiki.files.sweep.sweep_content(version.sha256))
    again = added(house.wiki, "b.txt", b"one")
    assert b"".join(house.wiki.files.content(again)) == b"one", "an equal upload while the sweep is half done"
    house.repaired()
    assert contents(house.wiki, "Home") == {"b.txt": b"one"}


@pytest.mark.parametrize("step", PURGE_STEPS)
def test_a_purge_that_falls_is_finished(house: House, step: str) -> None:
    house.wiki.save("Other", "A text.", author="Ada", base=0)
    first = added(house.wiki, "a.txt", b"one")
    added(house.wiki, "a.txt", b"two", replaces=first.token)
    added(house.wiki, "same.txt", b"in both")
    added(house.wiki, "same.txt", b"in both", page="Other")
    house.wiki.mover.delete("Home", ADA)
    row = deleted(house.wiki.rows, "Home")[0].row
    assert house.fall(step, lambda wiki: wiki.mover.purge("Home", row, ADA))
    house.wiki.mover.finish_all()
    house.repaired()
    assert deleted(house.wiki.rows, "Home") == []
    assert contents(house.wiki, "Other") == {"same.txt": b"in both"}
    assert len(house.keys(FILES)) == len(house.keys(CHUNKS)) == 1


def test_each_fault_is_named_and_repaired_or_lost(house: House) -> None:
    version = added(house.wiki, "a.txt", b"one")
    rows, key, sha = house.wiki.rows, page_key("Home"), version.sha256.encode()
    assert house.differences() == []
    right = CurrentFile.of(version).pack()
    rows.put(schema.PAGES, key, {file_column("a.txt"): right.replace(b":3:", b":4:")})
    rows.delete(BLOB_REFS, sha)
    rows.put(CHUNKS, b"0" * 16 + b"000000", {CHUNK: b"nobody's"})
    found = [one for one in check(house.wiki, clock=house.clock).differences if is_of_files(one)]
    assert sorted((one.kind.value, one.table) for one in found) == [
        ("different", schema.PAGES),
        ("missing", BLOB_REFS),
        ("stale", BLOBS),
        ("stale", CHUNKS),
    ]
    report = check(house.wiki, repair=True, clock=house.clock)
    assert [one for one in report.left if is_of_files(one)] == []
    assert house.differences() == []
    assert contents(house.wiki, "Home") == {"a.txt": b"one"}
    place = house.keys(CHUNKS)[0][:16]
    rows.put(CHUNKS, place + b"000000", {CHUNK: b"two"})
    assert house.differences(with_contents=False) == []
    assert [one.endswith(f"lost ({version.sha256})") for one in house.differences()] == [True]
    rows.delete(CHUNKS, place + b"000000")
    assert len(house.differences(with_contents=False)) == 1
    rows.delete(FILES, house.wiki.rows.row_keys(FILES, b"", b"g", limit=1)[0])
    assert any("lost" in one and "a.txt" in one for one in house.differences())


NAMES = ("Home", "One", "Two")


class Model:
    """The pages and the versions of their files, beside the wiki in which the same is done; deleted pages by row."""

    def __init__(self, house: House, rng: random.Random) -> None:
        self.house, self.wiki, self.rng = house, house.wiki, rng
        self.pages: dict[str, dict[str, list[bytes | None]]] = {"Home": {}}
        self.deleted: dict[bytes, tuple[str, dict[str, list[bytes | None]]]] = {}

    def upload(self, page: str, file: str) -> None:
        wiki, rng = self.wiki, self.rng
        content = rng.choice([b"", b"x", b"long " * 300, b"other"])
        versions = self.pages[page].setdefault(file, [])
        there = bool(versions) and versions[-1] is not None
        token = wiki.files.files_of(page)[file].token if there else ""
        if rng.random() < 0.2:
            self.house.fall(rng.choice(UPLOAD_STEPS[:6]), lambda fallen: added(fallen, file, content, page, token))
            if not versions:
                del self.pages[page][file]
            if _numbers(wiki, page, file) == len(versions):
                return  # it fell before the commit, as all but those that skip its step
        else:
            added(wiki, file, content, page, token)
        self.pages[page].setdefault(file, versions).append(content)

    def remove(self, page: str, file: str) -> None:
        versions = self.pages[page].get(file)
        if versions and versions[-1] is not None:
            self.wiki.files.remove(page, file, self.wiki.files.files_of(page)[file].token, ADA, allow=anybody)
            versions.append(None)

    def restore(self, page: str, file: str) -> None:
        versions = self.pages[page].get(file)
        if versions:
            stored = self.wiki.files.versions(page, file)
            old = self.rng.randrange(len(stored))
            self.wiki.files.restore(page, file, stored[0].token, stored[old], ADA, allow=anybody)
            versions.append(versions[-1 - old])

    def move(self, page: str, _file: str) -> None:
        act, new = self.rng.choice(("rename", "delete", "undelete", "purge")), self.rng.choice(NAMES)
        if act == "rename" and new not in self.pages:
            self.wiki.mover.rename(page, new, ADA, redirect=False)
            self.pages[new] = self.pages.pop(page)
        elif act == "delete" and len(self.pages) > 1:
            self.wiki.mover.delete(page, ADA)
            row = next(one.row for one in deleted(self.wiki.rows, page) if one.row not in self.deleted)
            self.deleted[row] = (page, self.pages.pop(page))
        elif act in ("undelete", "purge") and self.deleted:
            self._bring_back_or_purge(act)

    def _bring_back_or_purge(self, act: str) -> None:
        row = self.rng.choice(sorted(self.deleted))
        name, held = self.deleted[row]
        if act == "purge":
            self.wiki.mover.purge(name, row, ADA)
        elif name in self.pages:
            return
        else:
            self.wiki.mover.undelete(name, row, ADA)
            self.pages[name] = held
        del self.deleted[row]

    def make(self, _page: str, _file: str) -> None:
        name = self.rng.choice(NAMES)
        if name not in self.pages:
            self.wiki.save(name, "A text.", author="Ada", base=0)
            self.pages[name] = {}

    def sweep(self, _page: str, _file: str) -> None:
        self.house.clock.now += self.rng.choice((0, GRACE_MS + 60_000))
        self.wiki.files.sweep.run()

    def check(self) -> None:
        """Compare all files and versions of all pages."""
        for page, held in self.pages.items():
            expected = {file: versions[-1] for file, versions in held.items() if versions[-1] is not None}
            assert contents(self.wiki, page) == expected, (SEED, page)
            for file, versions in held.items():
                stored = self.wiki.files.versions(page, file)
                bodies = [b"".join(self.wiki.files.content(one)) if one.sha256 else None for one in stored]
                assert bodies == versions[::-1], (SEED, page, file)


@pytest.mark.parametrize("part", range(2))
def test_random_operations_agree_with_a_model(house: House, part: int) -> None:
    rng = random.Random(f"{SEED} {house.kind} {part}")
    wiki, model = house.wiki, Model(house, rng)
    upload, move = model.upload, model.move
    acts = [upload, upload, upload, model.remove, model.restore, move, move, model.make, model.sweep]
    for _ in range(45):
        rng.choice(acts)(rng.choice(sorted(model.pages)), rng.choice(("a.txt", "b.txt")))
    model.check()
    house.repaired()
    rows = [row for row, cells in wiki.rows.scan(schema.PAGES) if any(one.startswith(FILE) for one in cells)]
    assert sorted(rows) == sorted(page_key(page) for page, held in model.pages.items() if held)


def _numbers(wiki: Wiki, page: str, file: str) -> int:
    current = wiki.files.files_of(page).get(file)
    return 0 if current is None else current.number
