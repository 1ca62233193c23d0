"""Files of pages: uploads, versions, conflicts and bounds, on rows in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.support.memory_wiki import MemoryWiki
from wikka_port.config import FileConfig
from wikka_port.files.chunks import CHUNK_BYTES
from wikka_port.files.content_types import NotAccepted
from wikka_port.files.file_names import InvalidFileName
from wikka_port.files.file_rows import (
    BLOB_REFS,
    BLOB_STATE,
    BLOBS,
    CHUNK,
    CHUNKS,
    COMMIT_MS,
    FILES,
    GRACE_MS,
    SWEPT_ROW,
    UPLOADS,
    FileVersion,
    Upload,
    parse_blob_state,
)
from wikka_port.files.refusals import (
    FileConflict,
    MissingContent,
    NoSavedPage,
    NoSuchFile,
    TooLarge,
    TooManyFiles,
    UploadGone,
)
from wikka_port.files.stored_files import StoredFiles
from wikka_port.moving.mover import By
from wikka_port.rights.guarded import GuardedWiki
from wikka_port.rights.judging import NotAllowed
from wikka_port.rights.rules import PageRights, Privilege
from wikka_port.visitors import NOBODY

ADA = By("Ada", "account", "why")
TEXT = b"A note.\n" * 100
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000020000000308020000003668"
    "29f70000000c4944415408d763f8cfc000000301010018dd8db00000000049454e44ae426082"
)
# A JPEG of 4 x 2 pixels whose EXIF says that it lies on its side, and has a place beside.
EXIF = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0" + b"at home" * 9
JPEG = (
    b"\xff\xd8\xff\xe1" + (len(EXIF) + 2).to_bytes(2, "big") + EXIF
    + b"\xff\xc0\x00\x0b\x08\x00\x02\x00\x04\x01\x01\x11\x00\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00" + b"\x55" * 9
    + b"\xff\xd9"
)  # fmt: skip


def anybody(_name: str, _rights: PageRights) -> None:
    """Allow everything."""


@pytest.fixture
def wiki() -> MemoryWiki:
    made = MemoryWiki()
    made.save("Home", "A text.", author="Ada", base=0)
    return made


def sent(files: StoredFiles, name: str, content: bytes, page: str = "Home", **settling: Any) -> Upload:
    """Return a whole upload; the content comes in uneven pieces."""
    writer = files.writer(files.begin(page, name, "me", allow=anybody))
    for start in range(0, len(content), 300_007):
        writer.write_piece(content[start : start + 300_007])
    return files.settle(writer.finish_part(), **settling)


def added(files: StoredFiles, name: str, content: bytes, **given: Any) -> FileVersion:
    page = given.pop("page", "Home")
    return files.commit(sent(files, name, content, page), given.pop("by", ADA), allow=anybody, **given)


def read(files: StoredFiles, version: FileVersion, start: int = 0, stop: int | None = None) -> bytes:
    return b"".join(files.content(version, start, stop))


def test_a_file_is_read_as_it_was_sent(wiki: MemoryWiki) -> None:
    files, content = wiki.files, bytes(range(256)) * 4096 * 2 + TEXT
    version = added(files, "C:\\notes\\big.bin.zip", b"PK\3\4" + content, alt="two")
    assert (version.name, version.number, version.previous, version.media_type) == (
        "big.bin.zip",
        1,
        "",
        "application/zip",
    )
    assert (version.author, version.signed, version.note, version.alt) == ("Ada", "account", "why", "two")
    assert read(files, version) == b"PK\3\4" + content
    for start, stop in ((0, 1), (CHUNK_BYTES - 2, CHUNK_BYTES + 2), (5, 2 * CHUNK_BYTES + 1)):
        assert read(files, version, start, stop) == (b"PK\3\4" + content)[start:stop]
    page = wiki.page("Home")
    assert page is not None
    assert page.files["big.bin.zip"].token == version.token
    assert wiki.rows.data[UPLOADS] == {}, "nothing is under way"


def test_an_empty_file_is_a_file(wiki: MemoryWiki) -> None:
    version = added(wiki.files, "empty", b"")
    assert (version.name, version.size_bytes, read(wiki.files, version)) == ("empty.txt", 0, b"")


def test_equal_files_are_stored_once(wiki: MemoryWiki) -> None:
    first, second = added(wiki.files, "a.txt", TEXT), added(wiki.files, "b.txt", TEXT)
    assert first.sha256 == second.sha256 == hashlib.sha256(TEXT).hexdigest()
    assert len(wiki.rows.data[CHUNKS]) == 1
    assert len(wiki.rows.data[BLOB_REFS][first.sha256.encode()]) == 2
    assert read(wiki.files, second) == TEXT


@pytest.mark.parametrize("damage", ["bytes", "length", "gone"])
def test_a_damaged_content_is_replaced_by_the_next_equal_upload(wiki: MemoryWiki, damage: str) -> None:
    """So nobody can put other bytes into another person's file by knowing its digest (F3)."""
    first = added(wiki.files, "a.txt", TEXT)
    row = next(iter(wiki.rows.data[CHUNKS]))
    wrong = {"bytes": b"x" + TEXT[1:], "length": TEXT[:-1], "gone": b""}[damage]
    wiki.rows.data[CHUNKS][row] = {CHUNK: wrong}
    added(wiki.files, "b.txt", TEXT)
    assert read(wiki.files, first) == TEXT
    surplus = [Upload for cells in wiki.rows.data[UPLOADS].values() if cells[b"u:state"] == b"surplus"]
    assert len(surplus) == 1, "the sweep finds the place that nothing names any more"


def test_a_photograph_loses_its_place_unless_asked(wiki: MemoryWiki) -> None:
    plain = added(wiki.files, "a.jpg", JPEG)
    assert (plain.metadata, plain.width, plain.height) == ("removed", 2, 4)
    assert b"at home" not in read(wiki.files, plain)
    kept = wiki.files.commit(sent(wiki.files, "b.jpg", JPEG, keep_metadata=True), ADA, allow=anybody)
    assert (kept.metadata, read(wiki.files, kept)) == ("kept", JPEG)
    assert len(wiki.rows.data[CHUNKS]) == 2, "the first place of the picture is gone"
    assert wiki.rows.data[UPLOADS] == {}


def test_a_picture_without_metadata_stays_where_it_is(wiki: MemoryWiki) -> None:
    begun = wiki.files.begin("Home", "dot.gif", "me", allow=anybody)
    writer = wiki.files.writer(begun)
    writer.write_piece(PNG)
    whole = wiki.files.settle(writer.finish_part())
    assert (whole.place, whole.name) == (begun.place, "dot.png")
    version = wiki.files.commit(whole, ADA, allow=anybody)
    assert (version.metadata, version.width, version.height) == ("", 2, 3)


def test_a_damaged_picture_is_refused_and_leaves_nothing(wiki: MemoryWiki) -> None:
    with pytest.raises(NotAccepted, match="damaged"):
        sent(wiki.files, "a.png", PNG[:40])
    (upload,) = wiki.files.uploads("me")
    wiki.files.abandon(upload)
    wiki.files.abandon(upload)
    assert (wiki.rows.data[UPLOADS], wiki.rows.data[CHUNKS]) == ({}, {})


def test_a_name_is_taken_whatever_its_case(wiki: MemoryWiki) -> None:
    first = added(wiki.files, "A b.txt", TEXT)
    upload = sent(wiki.files, "a_B.txt", b"other")
    with pytest.raises(FileConflict) as conflict:
        wiki.files.commit(upload, ADA, allow=anybody)
    assert (conflict.value.name, conflict.value.current and conflict.value.current.token) == ("A b.txt", first.token)
    second = wiki.files.commit(upload, ADA, replaces=first.token, allow=anybody)
    assert (second.name, second.number, second.previous) == ("A b.txt", 2, first.token)
    assert len(wiki.rows.data[FILES]) == 2, "the refused attempt left nothing"
    with pytest.raises(FileConflict):
        wiki.files.commit(sent(wiki.files, "a b.txt", b"third"), ADA, replaces=first.token, allow=anybody)


def test_a_file_is_replaced_by_one_of_its_type(wiki: MemoryWiki) -> None:
    first = added(wiki.files, "a.png", PNG)
    with pytest.raises(NotAccepted, match="another type"):
        wiki.files.commit(sent(wiki.files, "a.jpg", JPEG), ADA, replaces=first.token, allow=anybody)


def test_versions_follow_the_chain(wiki: MemoryWiki) -> None:
    files = wiki.files
    first = added(files, "a.txt", b"one")
    second = added(files, "a.txt", b"two", replaces=first.token)
    removed = files.remove("Home", "a.txt", second.token, ADA, allow=anybody)
    assert not files.files_of("Home")["a.txt"].is_there
    restored = files.restore("Home", "a.txt", removed.token, first, ADA, allow=anybody)
    named = files.describe("Home", "a.txt", restored.token, ADA, alt="Eins", allow=anybody)
    assert files.versions("Home", "A.TXT") == [named, restored, removed, second, first]
    assert [one.number for one in files.versions("Home", "a.txt")] == [5, 4, 3, 2, 1]
    assert (named.alt, read(files, named)) == ("Eins", b"one")
    assert files.version("Home", "a.txt", second.token) == second
    for stale in (first, restored):
        with pytest.raises(FileConflict):
            files.remove("Home", "a.txt", stale.token, ADA, allow=anybody)
    with pytest.raises(NoSuchFile):
        files.remove("Home", "b.txt", first.token, ADA, allow=anybody)
    with pytest.raises(NoSuchFile):
        files.version("Home", "a.txt", "0" * 16)


def test_a_removed_file_takes_no_name_and_keeps_its_versions(wiki: MemoryWiki) -> None:
    first = added(wiki.files, "a.txt", b"one")
    removed = wiki.files.remove("Home", "a.txt", first.token, ADA, allow=anybody)
    with pytest.raises(NoSuchFile):
        wiki.files.describe("Home", "a.txt", removed.token, ADA, alt="x", allow=anybody)
    again = added(wiki.files, "A.txt", b"two")
    assert (again.name, again.number, again.previous) == ("a.txt", 3, removed.token)


def test_rows_that_lost_are_no_versions(wiki: MemoryWiki) -> None:
    first = added(wiki.files, "a.txt", b"one")
    lost = replace(first, number=2, previous=first.token, note="crashed")
    wiki.files.committing._stage(b"".join([wiki.files.committing.find_page("Home", b"").history]), lost, b"")
    assert wiki.files.versions("Home", "a.txt") == [first]


def test_the_bounds_of_a_page_and_a_file() -> None:
    wiki = MemoryWiki()
    wiki.save("Home", "A text.", author="Ada", base=0)
    wiki.files.config = FileConfig(bytes_max=1_000, per_page=1, types=frozenset({"txt"}))
    with pytest.raises(TooLarge, match="1,000"):
        wiki.files.begin("Home", "a.txt", "me", 1_001, allow=anybody)
    with pytest.raises(TooLarge):
        sent(wiki.files, "a.txt", bytes(1_001))
    with pytest.raises(NotAccepted, match="takes no files"):
        sent(wiki.files, "a.png", PNG)
    with pytest.raises(InvalidFileName):
        wiki.files.begin("Home", "///", "me", allow=anybody)
    with pytest.raises(NoSavedPage):
        wiki.files.begin("Nowhere", "a.txt", "me", allow=anybody)
    late = sent(wiki.files, "c.txt", b"late")
    first = added(wiki.files, "a.txt", b"one")
    with pytest.raises(TooManyFiles):
        wiki.files.begin("Home", "b.txt", "me", allow=anybody)
    with pytest.raises(TooManyFiles):
        wiki.files.commit(late, ADA, allow=anybody)
    removed = wiki.files.remove("Home", "a.txt", first.token, ADA, allow=anybody)
    wiki.files.commit(late, ADA, allow=anybody)
    with pytest.raises(TooManyFiles):
        wiki.files.restore("Home", "a.txt", removed.token, first, ADA, allow=anybody)


def test_an_announced_length_is_kept(wiki: MemoryWiki) -> None:
    writer = wiki.files.writer(wiki.files.begin("Home", "a.txt", "me", 3, allow=anybody))
    writer.write_piece(b"one")
    with pytest.raises(TooLarge):
        writer.write_piece(b"2")


def test_an_upload_goes_on_where_it_broke_off(wiki: MemoryWiki) -> None:
    files, content = wiki.files, b"0123456789abcdef" * 100_000
    upload = files.begin("Home", "a.txt", "me", len(content), allow=anybody)
    for start, stop in ((0, 5), (5, CHUNK_BYTES), (CHUNK_BYTES, CHUNK_BYTES + 9), (CHUNK_BYTES + 9, len(content))):
        taken = files.take(files.upload(upload.place.decode(), "me"))
        writer = files.writer(taken)
        writer.write_piece(content[start:stop])
        assert writer.finish_part().stored_bytes == stop
        files.release_writer(taken)
    version = files.commit(files.settle(files.upload(upload.place.decode(), "me")), ADA, allow=anybody)
    assert read(files, version) == content


def test_an_upload_has_one_writer_and_one_owner(wiki: MemoryWiki) -> None:
    files = wiki.files
    begun = files.begin("Home", "a.txt", "me", allow=anybody)
    place = begun.place.decode()
    for stranger, owner in ((place, "you"), ("0" * 16, "me"), ("../etc", "me"), ("ü" * 16, "me")):
        with pytest.raises(UploadGone):
            files.upload(stranger, owner)
    taken = files.take(begun)
    with pytest.raises(UploadGone):
        files.take(files.upload(place, "me"))
    wiki._now_ms += 91_000
    later = files.take(files.upload(place, "me"))
    late = files.writer(taken)
    late.write_piece(b"x")
    with pytest.raises(UploadGone):
        late.finish_part()
    assert files.writer(later).finish_part().stored_bytes == 0


def test_an_upload_that_waited_is_committed_within_a_day(wiki: MemoryWiki) -> None:
    waited, late = sent(wiki.files, "a.txt", b"one"), sent(wiki.files, "b.txt", b"two")
    wiki._now_ms += COMMIT_MS + 1
    assert read(wiki.files, wiki.files.commit(waited, ADA, allow=anybody)) == b"one"
    wiki._now_ms += GRACE_MS
    with pytest.raises(UploadGone):
        wiki.files.commit(late, ADA, allow=anybody)


def test_an_upload_that_goes_on_is_not_swept(wiki: MemoryWiki) -> None:
    """The sweep has read its row before, and what it removed then would be parts of a file."""
    files = wiki.files
    begun = files.begin("Home", "a.txt", "me", allow=anybody)
    wiki._now_ms += GRACE_MS + 1
    (old,) = files.sweep.old_uploads()
    taken = files.take(files.upload(begun.place.decode(), "me"))
    writer = files.writer(taken)
    writer.write_piece(b"one")
    whole = files.settle(writer.finish_part())
    assert not files.sweep.sweep_upload(old)
    assert read(files, files.commit(whole, ADA, allow=anybody)) == b"one"


def test_of_two_processes_that_look_at_once_one_sweeps(wiki: MemoryWiki, monkeypatch: pytest.MonkeyPatch) -> None:
    sweep, row, swept = wiki.files.sweep, wiki.rows.row, list[bool]()

    def looked(table: bytes, key: bytes, columns: Sequence[bytes] | None = None) -> dict[bytes, bytes]:
        found = dict(row(table, key, columns))
        if key == SWEPT_ROW and not swept:
            swept.append(False)
            wiki._now_ms += 1
            swept[0] = sweep.run_if_due() is not None
        return found

    monkeypatch.setattr(wiki.rows, "row", looked)
    assert (sweep.run_if_due(), swept) == (None, [True])


def on_stage(files: StoredFiles, change: Callable[[], object]) -> None:
    """Run ``change`` once, between the last step that is read of a page and the commit."""
    done: list[bool] = []

    def reached(step: str) -> None:
        if step == "stage" and not done:
            done.append(True)
            change()

    files.on_step_done = reached


def test_a_text_that_is_saved_meanwhile_does_not_stop_a_file(wiki: MemoryWiki) -> None:
    on_stage(wiki.files, lambda: wiki.save("Home", "Other text.", author="Bob", base=1))
    version = added(wiki.files, "a.txt", b"one")
    assert wiki.files.versions("Home", "a.txt") == [version]
    assert len(wiki.rows.data[FILES]) == 1


def test_a_right_that_is_lost_meanwhile_stops_a_file(wiki: MemoryWiki) -> None:
    guarded = GuardedWiki(wiki, NOBODY).files("Home")  # type: ignore[arg-type]  # the wiki in memory
    lists = {Privilege.WRITE: "Rita"}
    on_stage(wiki.files, lambda: wiki.rights.change("Home", PageRights(), "", lists))
    writer = guarded.writer(guarded.begin("a.txt", "me"))
    writer.write_piece(b"one")
    whole = guarded.settle(writer.finish_part())
    wiki.clock_s += 1_000
    with pytest.raises(NotAllowed):
        guarded.commit(whole)
    assert guarded.current() == {}
    assert (wiki.rows.data[FILES], wiki.rows.data[BLOB_REFS]) == ({}, {})
    with pytest.raises(NotAllowed):
        guarded.begin("b.txt", "me")


def test_two_uploads_of_one_name_at_once_leave_one_file(wiki: MemoryWiki) -> None:
    other = sent(wiki.files, "a.txt", b"two")
    won: list[FileVersion] = []
    on_stage(wiki.files, lambda: won.append(wiki.files.commit(other, ADA, allow=anybody)))
    with pytest.raises(FileConflict) as conflict:
        added(wiki.files, "a.txt", b"one")
    assert conflict.value.current is not None
    assert conflict.value.current.token == won[0].token
    assert wiki.files.versions("Home", "a.txt") == won
    assert len(wiki.rows.data[FILES]) == 1


def test_a_lost_content_is_said_before_the_first_byte(wiki: MemoryWiki) -> None:
    version = added(wiki.files, "a.txt", TEXT)
    wiki.rows.data[CHUNKS].clear()
    with pytest.raises(MissingContent, match=version.sha256):
        wiki.files.content(version)
    state = parse_blob_state(wiki.rows.data[BLOBS][version.sha256.encode()][BLOB_STATE])
    wiki.rows.data[BLOBS][version.sha256.encode()] = {BLOB_STATE: replace(state, life="gone").pack()}
    with pytest.raises(MissingContent):
        wiki.files.restore("Home", "a.txt", version.token, version, ADA, allow=anybody)
    assert len(wiki.rows.data[BLOB_REFS][version.sha256.encode()]) == 1


def test_an_upload_to_a_redirect_goes_to_its_page(wiki: MemoryWiki) -> None:
    wiki.save("Old", "#REDIRECT [[Home]]", author="Ada", base=0)
    assert sent(wiki.files, "a.txt", b"one", "Old").page == "Home"
    wiki.save("Away", "#REDIRECT [[Nowhere]]", author="Ada", base=0)
    assert sent(wiki.files, "a.txt", b"one", "Away").page == "Away"


def test_a_commit_whose_answer_is_lost_stands_even_if_others_follow_at_once(
    wiki: MemoryWiki, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, change = wiki.files, wiki.rows.change
    upload = sent(files, "a.txt", b"one")

    def change_and_lose_the_answer(table: bytes, *given: Any) -> bool:
        done = change(table, *given)
        if done and table == b"pages":
            monkeypatch.setattr(wiki.rows, "change", change)
            added(files, "a.txt", b"two", replaces=wiki.page("Home").files["a.txt"].token)
            return False
        return done

    monkeypatch.setattr(wiki.rows, "change", change_and_lose_the_answer)
    version = files.commit(upload, ADA, allow=anybody)
    found = files.versions("Home", "a.txt")
    assert [one.number for one in found] == [2, 1]
    assert found[1] == version
    assert [read(files, one) for one in found] == [b"two", b"one"]
