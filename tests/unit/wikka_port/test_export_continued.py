"""Exports that are killed anywhere go on, and have the bytes of one that was not: every form but the static site."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from random import Random
from typing import TypeVar

import pytest

from tests.support.drawn_records import drawn_source
from tests.support.recorded_pages import FIXED, MemoryPage, MemorySource
from tests.support.seeds import seed
from wikka_port.accounts.records import Account
from wikka_port.accounts.settings import DEFAULT
from wikka_port.exchange import export_file as export_file_module
from wikka_port.exchange import written_pages
from wikka_port.exchange.account_records import AccountRecord
from wikka_port.exchange.export_file import ExportCall, export_file
from wikka_port.exchange.git_stream import write_git
from wikka_port.exchange.json_lines import write_lines
from wikka_port.exchange.markdown_folder import write_folder
from wikka_port.exchange.mediawiki_xml import write_mediawiki
from wikka_port.exchange.records import (
    CommentRecord,
    ExportError,
    PageRecord,
    RecordedFile,
    RecordedPage,
    RecordSource,
    RevisionRecord,
    SiteRecord,
)
from wikka_port.exchange.whole_file import ContentFolder
from wikka_port.exchange.wikkawiki_sql import UploadFolder, write_wikkawiki

SEED = seed(661)
ADA = Account(b"ada", "1", "Ada", "active", False, "ada@example.org", "", 1_700_000_000_000, DEFAULT)
T = TypeVar("T")


def page(name: str, *bodies: str) -> MemoryPage:
    times = range(1_700_000_100_000, 1_700_000_100_000 + len(bodies))
    of_page = (RevisionRecord(at, time, "Ada", body) for at, time, body in zip(count(1), times, bodies, strict=False))
    return MemoryPage(PageRecord(name), tuple(of_page))


# The file of the page "Ship" in a folder has the name of another page.
ALIKE = (page("Ship", "one", "two"), page("Ship.wikka", "three"), page("Ship.md", "four"))
SOURCE = replace(FIXED, of_wiki=(*FIXED.of_wiki, *ALIKE, *drawn_source(SEED).of_wiki))


@pytest.fixture(autouse=True)
def _unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills leave what was written; only power cuts lose what was not synced."""
    monkeypatch.setattr(export_file_module, "sync_all", lambda: None)


class Killed(BaseException):
    """The process ends here."""


class Dying:
    """A source whose reader is killed after so many records; what lies in ``folder`` then is copied to ``left``."""

    def __init__(self, of: MemorySource, records: int, folder: Path, left: Path) -> None:
        self.read: list[str] = []  # pages whose revisions were read
        self._of = of
        self._records = records
        self._folder = folder
        self._left = left

    def site(self) -> SiteRecord | None:
        return self._of.site()

    def pages(self) -> Iterator[RecordedPage]:
        return (_DyingPage(one, self) for one in self._of.pages())

    def counted(self, found: Iterable[T]) -> Iterator[T]:
        for one in found:
            self._records -= 1
            if self._records < 0:
                self.die()
            yield one

    def die(self) -> None:
        shutil.copytree(self._folder, self._left)
        raise Killed


class _DyingPage:
    def __init__(self, of: MemoryPage, source: Dying) -> None:
        self.record = of.record
        self._of = of
        self._source = source

    def revisions(self) -> Iterator[RevisionRecord]:
        self._source.read.append(self.record.identity)
        return self._source.counted(self._of.revisions())

    def files(self) -> Iterator[RecordedFile]:
        return self._source.counted(self._of.files())

    def comments(self) -> Iterator[CommentRecord]:
        return self._source.counted(self._of.comments())


def lines(name: str, *, has_contents: bool = False) -> Callable[[RecordSource, Path, ExportCall], object]:
    def write(source: RecordSource, folder: Path, call: ExportCall) -> object:
        keep = ContentFolder(folder / "contents").keep if has_contents else None
        with export_file(folder / name, call) as to:
            return write_lines(source, to, keep, (AccountRecord("Ada"),)).as_lines()

    return write


def git(name: str) -> Callable[[RecordSource, Path, ExportCall], object]:
    def write(source: RecordSource, folder: Path, call: ExportCall) -> object:
        with export_file(folder / name, call) as to:
            return write_git(source, to).as_lines()

    return write


def mediawiki(source: RecordSource, folder: Path, call: ExportCall) -> object:
    with export_file(folder / "wiki.xml.gz", call) as to:
        return write_mediawiki(source, to).as_lines()


def wikkawiki(source: RecordSource, folder: Path, call: ExportCall) -> object:
    with export_file(folder / "wiki.sql", call, has_files=True) as to:
        return write_wikkawiki(source, (ADA,), to, UploadFolder(folder / "uploads"))


def markdown(*, convert: bool) -> Callable[[RecordSource, Path, ExportCall], object]:
    return lambda source, folder, call: write_folder(source, folder / "wiki", convert=convert, call=call).as_lines()


FORMS = {
    "json-lines": lines("wiki.jsonl", has_contents=True),
    "json-lines.gz": lines("wiki.jsonl.gz"),
    "git": git("wiki.git-stream"),
    "git.gz": git("wiki.git-stream.gz"),
    "mediawiki.gz": mediawiki,
    "wikkawiki": wikkawiki,
    "markdown": markdown(convert=False),
    "markdown converted": markdown(convert=True),
}


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def killed(form: str, of: MemorySource, records: int, folder: Path, call: ExportCall) -> Dying | None:
    """Kill an export after so many records, and leave what the process has left; None if it was whole before."""
    left = folder.with_name("left")
    source = Dying(of, records, folder, left)
    try:
        FORMS[form](source, folder, call)
    except Killed:
        shutil.rmtree(folder)
        left.rename(folder)
        return source
    return None


@pytest.mark.parametrize("noted", [1, 4])
@pytest.mark.parametrize("form", FORMS)
def test_an_export_that_is_killed_anywhere_has_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, noted: int
) -> None:
    print("seed", SEED)
    draw = Random(SEED + noted)
    monkeypatch.setattr(written_pages, "NOTED", noted)
    whole, broken = made(tmp_path / "whole"), made(tmp_path / "broken")
    said = FORMS[form](SOURCE, whole, ExportCall("one"))
    behind: list[int] = []
    kills = 0
    while killed(form, SOURCE, draw.randrange(40), broken, ExportCall("one", note_written=behind.append)):
        kills += 1
        names = {one.name for one in whole.iterdir()} - {"contents", "uploads"}
        assert not names & {one.name for one in broken.iterdir()}
    assert bytes_of(broken) == bytes_of(whole)
    print(kills, "kills; went on behind", behind)
    assert kills >= 3
    assert behind == sorted(behind), "no page that was written is written again"
    assert behind[-1] > len(SOURCE.of_wiki) // 3
    shutil.rmtree(broken)
    assert FORMS[form](SOURCE, made(broken), ExportCall("one")) == said


class Killing(Dying):
    """A source whose reader gets a SIGKILL from itself."""

    def die(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("form", FORMS)
def test_processes_that_are_killed_leave_what_the_next_one_goes_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    print("seed", SEED)
    draw = Random(SEED)
    monkeypatch.setattr(written_pages, "NOTED", 2)
    whole, broken = made(tmp_path / "whole"), made(tmp_path / "broken")
    FORMS[form](SOURCE, whole, ExportCall())
    kills = 0
    while (status := _status_of_child(form, draw.randrange(60), broken)) != 0:
        assert os.WTERMSIG(status) == signal.SIGKILL
        kills += 1
    assert kills >= 2
    assert bytes_of(broken) == bytes_of(whole)


def _status_of_child(form: str, records: int, folder: Path) -> int:
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    try:
        FORMS[form](Killing(SOURCE, records, Path(os.devnull), Path(os.devnull)), folder, ExportCall())
        os._exit(0)
    finally:
        os._exit(1)


@pytest.mark.parametrize("form", FORMS)
def test_counts_and_digests_go_on_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    monkeypatch.setattr(written_pages, "NOTED", 2)
    whole, broken = made(tmp_path / "whole"), made(tmp_path / "broken")
    said = FORMS[form](SOURCE, whole, ExportCall())
    assert killed(form, SOURCE, 40, broken, ExportCall()) is not None
    missing: list[str] = []
    assert FORMS[form](SOURCE, broken, ExportCall(missing=missing)) == said
    assert missing == []


def test_what_the_source_lacks_is_named_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written_pages, "NOTED", 1)
    folder, call = made(tmp_path / "broken"), ExportCall()
    source = Dying(SOURCE, 20, folder, tmp_path / "left")
    call.missing.append("Ship: lost.png")
    with pytest.raises(Killed):
        FORMS["git"](source, folder, call)
    again = ExportCall()
    FORMS["git"](SOURCE, folder, again)
    assert again.missing == ["Ship: lost.png"]


@pytest.mark.parametrize("form", FORMS)
def test_a_checkpoint_comes_after_so_many_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    monkeypatch.setattr(export_file_module, "CHECKPOINT_BYTES", 1)
    folder, behind = made(tmp_path / "broken"), list[int]()
    assert killed(form, SOURCE, 30, folder, ExportCall()) is not None
    FORMS[form](SOURCE, folder, ExportCall(note_written=behind.append))
    assert behind
    assert behind[0] > 1


def test_another_export_or_a_new_beginning_takes_nothing_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written_pages, "NOTED", 1)
    other = replace(SOURCE, of_wiki=SOURCE.of_wiki[3:9])
    for form in FORMS:
        for number, call in enumerate((ExportCall("two"), ExportCall("one", restart=True))):
            folder, whole = made(tmp_path / f"{form} {number}"), made(tmp_path / f"{form} {number} whole")
            assert killed(form, SOURCE, 40, folder, ExportCall("one")) is not None
            FORMS[form](other, folder, call)
            FORMS[form](other, whole, ExportCall())
            found, wanted = bytes_of(folder), bytes_of(whole)
            assert {name: found[name] for name in wanted} == wanted, form
            beside = {name for name in found.keys() - wanted.keys() if not name.startswith(("contents/", "uploads/"))}
            assert beside == set(), form


@pytest.mark.parametrize("damage", ["record", "short", "gone", "other file"])
def test_what_a_power_cut_damages_is_written_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str) -> None:
    monkeypatch.setattr(written_pages, "NOTED", 1)
    folder, whole = made(tmp_path / "broken"), made(tmp_path / "whole")
    assert killed("json-lines", SOURCE, 40, folder, ExportCall()) is not None
    part, record = folder / "wiki.jsonl.part", folder / "wiki.jsonl.part-written"
    if damage == "record":
        record.write_bytes(b"no database" * 1_000)
    elif damage == "short":
        with part.open("r+b") as stream:
            stream.truncate(10)
    elif damage == "gone":
        part.unlink()
    else:
        record.unlink()
    FORMS["json-lines"](SOURCE, folder, ExportCall())
    FORMS["json-lines"](SOURCE, whole, ExportCall())
    assert bytes_of(folder) == bytes_of(whole)


def test_two_exports_to_one_file_do_not_meet(tmp_path: Path) -> None:
    out = tmp_path / "wiki.jsonl"
    with export_file(out, ExportCall()) as first:
        first.write(b"one")
        with pytest.raises(ExportError, match="another export"), export_file(out, ExportCall()):
            pass
        first.write(b"two")
    assert out.read_bytes() == b"onetwo"
    assert [path.name for path in tmp_path.iterdir()] == ["wiki.jsonl"]


@pytest.mark.parametrize(("noted", "kept"), [(1, 4), (3, 3)])
def test_an_export_that_fails_leaves_its_name_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, noted: int, kept: int
) -> None:
    monkeypatch.setattr(written_pages, "NOTED", noted)
    out, behind = tmp_path / "wiki.jsonl", list[int]()
    out.write_bytes(b"an older export")

    class Failing(MemorySource):
        def pages(self) -> Iterator[MemoryPage]:
            yield from super().pages()
            raise ExportError("a page was changed")

    with pytest.raises(ExportError, match="a page was changed"):
        FORMS["json-lines"](Failing(SOURCE.of_wiki[:4], SOURCE.rights), tmp_path, ExportCall())
    assert out.read_bytes() == b"an older export"
    FORMS["json-lines"](SOURCE, tmp_path, ExportCall(note_written=behind.append))
    assert behind == [kept], "up to the last checkpoint"
    FORMS["json-lines"](SOURCE, made(tmp_path / "whole"), ExportCall())
    assert out.read_bytes() == (tmp_path / "whole" / "wiki.jsonl").read_bytes()


def test_a_page_that_is_named_like_the_file_of_another_comes_too(tmp_path: Path) -> None:
    write_folder(replace(SOURCE, of_wiki=ALIKE), tmp_path / "wiki", convert=False)
    texts = {path.name for path in (tmp_path / "wiki").glob("*.wikka") if path.is_file()}
    assert texts == {"Ship.wikka", "Ship.wikka.wikka", "Ship.md.wikka"}


@pytest.mark.parametrize("convert", [False, True])
def test_a_folder_keeps_no_file_of_a_page_that_went_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, convert: bool
) -> None:
    monkeypatch.setattr(written_pages, "NOTED", 2)
    form = "markdown converted" if convert else "markdown"
    folder, whole = made(tmp_path / "broken"), made(tmp_path / "whole")
    gone = (page("Ship", "one"), page("Deep/Er/Gone", "two"))
    of = replace(SOURCE, of_wiki=(*SOURCE.of_wiki[:2], *gone, *SOURCE.of_wiki[4:]))
    records = sum(len(one.of_page) + len(one.of_files) + len(one.of_comments) for one in of.of_wiki[:3])
    assert killed(form, of, records, folder, ExportCall()) is not None
    assert list((folder / "wiki.part").rglob("Ship*")), "a text behind the last checkpoint"
    left = replace(of, of_wiki=tuple(one for one in of.of_wiki if one not in gone))
    FORMS[form](left, folder, ExportCall())
    FORMS[form](left, whole, ExportCall())
    assert bytes_of(folder) == bytes_of(whole)
    assert not (folder / "wiki" / "Deep").exists()
