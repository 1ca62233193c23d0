"""``python -m tests.proofs.wiki_round_trip`` without dumps; and each kind of difference is one that it finds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.proofs.compared_wikis import KINDS, exact_fields, wikkawiki_fields
from tests.proofs.wiki_round_trip import WIKKAWIKI, take_out_and_in
from tests.support.exported_wiki import NAMES
from tests.support.recorded_pages import WITH_DELETED, MemoryPage, MemorySource
from tests.support.seeds import seed
from wikka_port.exchange.records import RecordedFile, SiteRecord

SEED = seed(410)


def test_no_form_changes_anything_that_it_can_hold(tmp_path: Path) -> None:
    print("seed", SEED)
    for trip in take_out_and_in(tmp_path, (), SEED, ("git", WIKKAWIKI), NAMES[:6]):
        assert {kind: keys for kind, keys in trip.differences.items() if keys} == {}, trip.form
        assert trip.there.revisions > 9
        assert all(trip.there.of[kind] for kind in ("text", "rights", "files", "comments")), trip.form


class DamagedPage(MemoryPage):
    """A page whose files have other bytes than their records say."""

    def files(self) -> Iterator[RecordedFile]:
        for file in super().files():
            yield replace(file, content=None if file.content is None else iter([b"other"]))


def changed(kind: str) -> MemorySource:
    """Return the records with one field of a kind changed."""
    page, *others = WITH_DELETED.of_wiki
    newest = page.of_page[-1]
    of_revision: dict[str, dict[str, Any]] = {
        "text": {"body": newest.body + " "},
        "time": {"time_ms": newest.time_ms + 1},
        "author": {"signed": "wiki"},
        "note": {"note": newest.note + " "},
        "marks": {"minor": not newest.minor},
    }
    if kind in of_revision:
        page = replace(page, of_page=(*page.of_page[:-1], replace(newest, **of_revision[kind])))
    elif kind == "rights":
        page = replace(page, record=replace(page.record, lists={"read": "+"}))
    elif kind == "files":
        page = DamagedPage(page.record, page.of_page, page.of_files, page.of_comments)
    elif kind == "comments":
        page = replace(page, of_comments=page.of_comments[:-1])
    else:
        others[-1] = replace(others[-1], record=replace(others[-1].record, reason="another"))
    return replace(WITH_DELETED, of_wiki=(page, *others))


@pytest.mark.parametrize("kind", KINDS)
def test_a_change_of_a_kind_is_a_difference_of_that_kind(kind: str) -> None:
    there, here = (exact_fields(one.pages(), one.site()) for one in (WITH_DELETED, changed(kind)))
    assert [one for one, keys in there.differences(here).items() if keys] == [kind]


def test_what_a_wikkawiki_cannot_hold_is_counted() -> None:
    made = wikkawiki_fields(WITH_DELETED.pages(), SiteRecord({"": {"write": "+"}, "harb": {"comment_read": "Ada"}}))
    assert made.of["rights"]["Harbour/Pier",] == repr(("ada", ["+", "Ada", "Ada", "*"]))
    assert made.of["rights"]["日本",] == repr(("", ["*", "+", "*", "*"]))
    lost = {what: number for what, number in made.losses.items() if number}
    assert lost == {
        "deleted pages": 2,
        "hidden revisions": 1,
        "times of milliseconds": 2,
        "minor marks": 1,
        "original texts": 1,
        "attributions": 1,
        "texts in Markdown": 1,
        "languages": 1,
        "CamelCase not linked": 1,
        "older versions of files": 2,
        "marks of edited comments": 1,
    }
