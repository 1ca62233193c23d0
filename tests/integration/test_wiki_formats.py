"""The format and the mark of a minor edit in the tables: written once they say something, and never wrong after it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.stored_wiki import stored_wiki
from wikka_port import schema
from wikka_port.consistency import check
from wikka_port.names import page_key
from wikka_port.pages import Wiki


@pytest.fixture(params=["application", "plain"])
def wiki(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Wiki]:
    with stored_wiki(tmp_path, request.param) as made:
        yield made


def _cells(wiki: Wiki, name: str) -> dict[bytes, bytes]:
    return wiki.store.run(lambda c: c.table(schema.PAGES).row(page_key(name), columns=[schema.FORMAT, schema.MINOR]))


def test_formats_and_minor_edits(wiki: Wiki) -> None:
    wiki.save("P", "//a//", author="Ann", base=0)
    assert _cells(wiki, "P") == {}, "a page that never had another format has no cell more than before"
    wiki.save("P", "*a* [w](Other)", author="Ann", base=1, markup="markdown", minor=True)
    wiki.save("P", "*b* [w](Other)", author="Ann", base=2)
    wiki.save("P", "//c//", author="Ann", base=3, markup="wikka")
    last = wiki.save("P", "//d// OtherPage", author="Ann", base=4)
    wiki.settle(last.sequence)
    found = wiki.revisions("P", bodies=True)
    assert [(one.markup, one.minor) for one in found] == [
        *[("wikka", False)] * 2,
        ("markdown", False),
        ("markdown", True),
        ("wikka", False),
    ]
    page = wiki.page("P")
    assert page is not None
    assert (page.markup, page.minor) == ("wikka", False)
    assert [one.minor for one in wiki.changes()[0]] == [False, False, False, True, False]
    assert (wiki.backlinks("Other"), wiki.backlinks("OtherPage")) == ([], ["P"])
    wiki.save("M", "[w](Only_here) //x//", author="Ann", base=0, markup="markdown")
    wiki.settle("")
    assert wiki.backlinks("Only here") == ["M"]
    report = check(wiki)
    assert report.differences == ()


def test_pages_of_an_owner(wiki: Wiki) -> None:
    for name, owner in (("B", "Ann"), ("A", "Ann"), ("C", "Ben"), ("O'Hara", "O'Hara"), ("D", "")):
        wiki.save(name, "x", author="a", base=0, owner=owner)
    for name, new in (("A", "Ben"), ("C", "Ann")):
        page = wiki.page(name)
        assert page is not None
        wiki.rights.change(name, page.rights, new, {})
    assert wiki.owned("Ann", limit=10) == ["B", "C"]
    assert wiki.owned("Ben", limit=10) == ["A"]
    assert wiki.owned("O'Hara", limit=10) == ["O'Hara"]
    assert len(wiki.owned("Ann", limit=1)) == 1
