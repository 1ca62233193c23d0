"""Lists while the indexes do not know yet that a page was deleted or has another name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.stored_wiki import stored_wiki
from tests.support.wiki_client import WikiClient
from wikka_port.moving.mover import By
from wikka_port.rights.rules import PageRights, Privilege

MIA = By("Mia", "account")
LISTS = (
    *("/-/recentchanges", "/-/recentchanges.xml", "/-/pageindex", "/-/pageindex?letter=h", "/api/titles"),
    *("/-/search?q=moon", "/-/search?q=hidden", "/-/search?q=in:Hidden", "/-/suggest?q=hid", "/-/suggest?q=plan"),
    *("/Open/backlinks", "/Shown"),
)
ACTIONS = "{{recentchanges}} {{pageindex}} {{backlinks page='Open'}} {{highscores}} {{category page='Open'}}"


class Fallen(Exception):
    pass


@pytest.fixture
def web(tmp_path: Path) -> Iterator[WikiClient]:
    with stored_wiki(tmp_path) as wiki:
        wiki.save("Open", "the moon", author="Ann", base=0)
        wiki.save("Hidden plan", "to the moon [[Open]]", author="Mia", note="a dark note", base=0, owner="Mia")
        yield WikiClient(wiki)


def gone_before_the_indexes_know(web: WikiClient, move: Callable[[], object]) -> None:
    def fall(step: str) -> None:
        if step == "leave":
            raise Fallen

    web.wiki.mover.on_step_done = fall
    with pytest.raises(Fallen):
        move()
    web.wiki.mover.on_step_done = lambda step: None


@pytest.mark.parametrize("kind", ["delete", "rename"])
def test_a_page_that_nobody_may_read_is_named_in_no_list_that_lags_behind_its_end(web: WikiClient, kind: str) -> None:
    web.wiki.save("Shown", ACTIONS, author="Ann", base=0)
    web.wiki.rights.change("Hidden plan", PageRights("Mia"), "Mia", {Privilege.READ: "Mia"})
    gone_before_the_indexes_know(
        web,
        lambda: (
            web.wiki.mover.delete("Hidden plan", MIA)
            if kind == "delete"
            else web.wiki.mover.rename("Hidden plan", "Other", MIA, redirect=False)
        ),
    )
    assert "Hidden plan" in web.wiki.names(), "the index is behind"
    for reader in (web, web.signed_in("Bob")):
        for path in LISTS:
            answer = reader.get(path)
            assert answer.status_code == 200, path
            assert not any(word in answer.text for word in ("Hidden plan", "Hidden_plan", "dark note", "Mia")), path


def test_a_search_goes_on_while_the_index_has_words_of_a_page_that_ended(web: WikiClient) -> None:
    gone_before_the_indexes_know(web, lambda: web.wiki.mover.delete("Hidden plan", MIA))
    for query in ("moon", '"the moon"', "moon by:Ann", "moon changed:>2020-01-01"):
        answer = web.get("/-/search", query_string={"q": query})
        assert answer.status_code == 200, query
        assert "/Open" in answer.text, query
        assert "Hidden" not in answer.text, query
