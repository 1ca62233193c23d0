"""Drafts on a real store, as Columnar and as a plain HBase serve them: kept, found, displaced, ended by time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.store_thread import StoreThread
from tests.support.stored_wiki import wiki_on
from wikka_port.consistency import check
from wikka_port.editing.kept_drafts import DRAFTS, DRAFTS_S, KeptDraft, Other, owner_of_account, owner_of_browser
from wikka_port.limits import KEPT_PER_PAGE
from wikka_port.pages import Wiki, clock_ms

ADA, EVE = owner_of_account("Ada"), owner_of_browser("0" * 32)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreThread]:
    with StoreThread(tmp_path_factory.mktemp("drafts")) as running:
        yield running


@pytest.fixture(params=["application", "plain"])
def wiki(request: pytest.FixtureRequest, store: StoreThread) -> Iterator[Wiki]:
    with wiki_on(store.port, request.param) as made:
        yield made
        for row, _ in list(made.rows.scan(DRAFTS)):
            made.rows.delete(DRAFTS, row)


def draft(number: int, owner: str = ADA, at_ms: int = 0) -> KeptDraft:
    now = at_ms or clock_ms()
    return KeptDraft(f"{number:016x}", owner, owner[:4], now, now, 3, "s-x", f"té xt {number}\n", "note")


def test_kept_found_and_thrown_away(wiki: Wiki) -> None:
    kept = wiki.drafts.keep("P", draft(1))
    assert wiki.drafts.own("P", [ADA]) == [kept]
    assert wiki.drafts.own("P", [EVE]) == wiki.drafts.own("Q", [ADA]) == []
    later = wiki.drafts.keep("P", replace(kept, text="more", since_ms=kept.time_ms + 5, time_ms=kept.time_ms + 5))
    assert later.since_ms == kept.since_ms, "the spell of writing goes on"
    other = wiki.drafts.keep("P", draft(2, EVE, later.time_ms))
    assert wiki.drafts.own("P", [ADA, EVE]) == [later, other]
    assert wiki.drafts.others("P", {ADA}, later.time_ms) == [Other(EVE[:4], other.since_ms)]
    wiki.drafts.delete_draft("P", EVE, later.id)
    assert wiki.drafts.own("P", [ADA]) == [later]
    wiki.drafts.delete_draft("P", ADA, later.id)
    assert wiki.drafts.own("P", [ADA]) == []
    assert wiki.drafts.is_kept("P", EVE, other.id)
    assert not wiki.drafts.is_kept("P", ADA, later.id)


def test_the_oldest_gives_way_and_an_account_takes_all_along(wiki: Wiki) -> None:
    now = clock_ms()
    for number in range(KEPT_PER_PAGE + 2):
        wiki.drafts.keep("P", draft(number, at_ms=now + number))
    wiki.drafts.keep("Q", draft(99))
    wiki.drafts.keep("P", draft(1, EVE))
    assert [int(one.id, 16) for one in wiki.drafts.own("P", [ADA])] == list(range(KEPT_PER_PAGE + 1, 1, -1))
    assert wiki.drafts.forget(ADA) == KEPT_PER_PAGE + 1
    assert [one.owner for one in wiki.drafts.own("P", [ADA, EVE])] == [EVE]


def test_a_draft_ends_30_days_after_it_was_kept_and_check_has_nothing_to_say(wiki: Wiki) -> None:
    families = wiki.store.run(lambda c: c.table(DRAFTS).families())
    assert {one["time_to_live"] for one in families.values()} == {DRAFTS_S}
    wiki.drafts.keep("P", draft(1))
    row = next(iter(wiki.rows.scan(DRAFTS)))[0]
    old_ms = clock_ms() - (DRAFTS_S + 60) * 1000
    wiki.store.run(
        lambda c: c.table(DRAFTS).put(row[:-1] + b"f", {b"at:time": b"1", b"d:text": b"x"}, timestamp=old_ms)
    )
    assert [one.id for one in wiki.drafts.own("P", [ADA])] == [draft(1).id]
    assert not check(wiki).differences


def test_a_folder_of_before_gets_the_table(tmp_path: Path) -> None:
    with StoreThread(tmp_path) as store:
        wiki = Wiki("127.0.0.1", store.port, indexes="application")
        wiki.prepare()
        wiki.save("P", "text", author="a", base=0)
        wiki.store.run(lambda c: c.delete_table(DRAFTS, disable=True))
        wiki.prepare()
        wiki.drafts.keep("P", draft(1))
        assert [one.text for one in wiki.drafts.own("P", [ADA])] == ["té xt 1\n"]
        wiki.store.close()
