"""An import of an export, stopped at calls of the store all over it: it goes on, and both sides are equal."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from tests.integration.test_wiki_export import digests_of, lines_of, wiki_in
from tests.support.exported_wiki import add_file
from wikka_port.comments.stored_comments import NewComment
from wikka_port.consistency import check
from wikka_port.exchange.export_file import piped
from wikka_port.exchange.json_lines import JsonLines, write_lines
from wikka_port.exchange.page_source import StorePages
from wikka_port.exchange.record_import import RecordImport, RecordsImported
from wikka_port.moving.mover import By
from wikka_port.pages import Wiki
from wikka_port.rights.rules import Privilege
from wikka_port.store import Store

STEP = 2  # calls more that each attempt may make than the one before it


class Stopped(BaseException):
    """The process ends here."""


def written(wiki: Wiki) -> bytes:
    out = io.BytesIO()
    with piped(out.write) as to:
        write_lines(StorePages(wiki), to)
    return out.getvalue()


def bring_in(wiki: Wiki, data: bytes) -> RecordsImported:
    def opened() -> BinaryIO:
        return io.BytesIO(data)

    made = RecordImport(wiki, JsonLines(opened), pause=lambda seconds: None)
    return made.run(origin="test", restart=False, progress=lambda read, pages: None)


def fill(wiki: Wiki) -> None:
    for name in ("Ship", "Pier", "Tide"):
        for number in range(3):
            wiki.save(name, f"{name} {number}", author="Ada", base=number, time_ms=1_700_000_000_000 + number * 7_000)
        wiki.mover.hide(name, 2, hidden=True)
    for content in (b"one", b"two"):
        add_file(wiki.files, "Ship", f"{content.decode()}.txt", content, By("Ada"))
    wiki.files.remove("Ship", "one.txt", wiki.files.files_of("Ship")["one.txt"].token, By("Eve"), allow=lambda *_: None)
    wiki.rights.change("Pier", wiki.rights.of(["Pier"])["Pier"], "Ada", {Privilege.READ: "Ada"})
    wiki.rights.change_rules("", {Privilege.WRITE: "+"}, wiki.rights.rules())
    new = NewComment("buy", "Eve", "visitor", "form", "wikka")
    wiki.comments.add("Tide", b"", new, allow=lambda *_: None)
    add_file(wiki.files, "Tide", "three.txt", b"three", By("Ada"))
    wiki.rights.change("Tide", wiki.rights.of(["Tide"])["Tide"], "Ada", {Privilege.READ: "Ada"})
    wiki.mover.delete("Tide", By("Ada", "account", "spam"))


def test_an_import_that_is_stopped_at_any_call_of_the_store_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with wiki_in(tmp_path / "old") as old, wiki_in(tmp_path / "new") as new:
        fill(old)
        data = written(old)
        original, left = Store.run, [0]

        def run(self: Store, work: Any, **given: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise Stopped
            return original(self, work, **given)

        stops = 0
        while True:
            left[0] = STEP * (stops + 1)
            with monkeypatch.context() as patched:
                patched.setattr(Store, "run", run)
                try:
                    done = bring_in(new, data)
                except Stopped:
                    stops += 1
                    continue
            break
        print(stops, "stops")
        assert stops > 10
        assert done.compared.is_equal, done.compared.named
        assert lines_of(digests_of(new)) == lines_of(digests_of(old))
        assert check(new, repair=True).differences is not None
        assert check(new).differences == ()
        assert lines_of(digests_of(new)) == lines_of(digests_of(old))
