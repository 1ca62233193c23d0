"""Groups of pages that an import saves with one call: conflicts are of their page, revisions keep their order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.stored_wiki import stored_wiki
from wikka_port import bulk_save, schema
from wikka_port.bulk_save import BulkSaver, Stored
from wikka_port.consistency import check
from wikka_port.import_plan import ImportedRevision, PagePart
from wikka_port.names import page_key
from wikka_port.pages import Wiki


@pytest.fixture
def wiki(tmp_path: Path) -> Iterator[Wiki]:
    with stored_wiki(tmp_path, "triggers") as made:
        yield made


def part(name: str, *bodies: str, ordinal: int = 0) -> PagePart:
    revisions = tuple(
        ImportedRevision(1_000 + number, "Ann", "", body, 0, is_redirect=False) for number, body in enumerate(bodies)
    )
    return PagePart(name, ordinal, 1, revisions, "", is_last=True)


def save(wiki: Wiki, *parts: PagePart) -> Stored:
    with BulkSaver(wiki, lambda mark: None) as saver:
        saver.put(parts, len(parts))
        saver.drain()
    return saver.stored


def settled(wiki: Wiki) -> None:
    assert wiki.settle("", 30)
    assert check(wiki).differences == ()


@pytest.mark.parametrize("call_chars", [bulk_save.CALL_CHARS, 10])
def test_pages_of_a_group_come_in_with_all_revisions_in_order(
    wiki: Wiki, call_chars: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_save, "CALL_CHARS", call_chars)
    parts = (part("One", "a", "b", "c [[Two]]"), part("Two", "[[One]]"), part("Three", "x", "y"), part("Empty"))
    assert save(wiki, *parts).revisions == 6
    again = save(wiki, *parts)
    assert (again.revisions, again.already, again.kept) == (0, 6, set())
    assert [one.body for one in wiki.revisions("One", bodies=True)] == ["c [[Two]]", "b", "a"]
    settled(wiki)


def test_a_page_that_a_group_has_twice_is_kept_as_the_first_says(wiki: Wiki) -> None:
    stored = save(wiki, part("One", "first"), part("Two", "beside"), part("One", "second", "third"))
    assert (stored.revisions, stored.kept) == (2, {"One"})
    assert [one.body for one in wiki.revisions("One", bodies=True)] == ["first"]
    assert staged_of(wiki, "One") == 1
    settled(wiki)


def test_a_page_that_a_group_has_twice_with_one_revision_in_common_loses_none(wiki: Wiki) -> None:
    """What the second one staged and removes is not what the first one committed."""
    stored = save(wiki, part("One", "first", "common"), part("One", "other", "common", "third"))
    assert (stored.revisions, stored.kept) == (2, {"One"})
    assert [one.body for one in wiki.revisions("One", bodies=True)] == ["common", "first"]
    assert staged_of(wiki, "One") == 2
    settled(wiki)


def test_a_page_that_is_edited_meanwhile_is_kept_and_the_others_come_in(
    wiki: Wiki, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit_all = wiki.commit_all

    def edited(steps: Any) -> Any:
        monkeypatch.undo()
        wiki.save("Two", "by hand", author="Bob", base=0)
        return commit_all(steps)

    monkeypatch.setattr(wiki, "commit_all", edited)
    stored = save(wiki, part("One", "a", "b"), part("Two", "c", "d", "e"), part("Three", "f"))
    assert (stored.revisions, stored.kept) == (3, {"Two"})
    assert [one.body for one in wiki.revisions("Two", bodies=True)] == ["by hand"]
    assert staged_of(wiki, "Two") == 1, "what was staged for it is removed"
    settled(wiki)


def staged_of(wiki: Wiki, name: str) -> int:
    key = page_key(name)
    return wiki.store.run(lambda c: len(list(c.table(schema.REVISIONS).scan(row_prefix=key))))
