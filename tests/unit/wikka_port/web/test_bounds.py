"""A page over a bound: refused when it is saved, with the text; shown and repaired where it is there already."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.memory_wiki import MemoryWiki
from tests.support.wiki_client import WikiClient
from wikka_port.limits import ACTIONS_S, LINKS_MAX
from wikka_port.rendering import _runner

HOSTILE = "".join(f"[[{number:x}]]" for number in range(221_111))[:1_990_000]


@pytest.fixture
def web() -> WikiClient:
    return WikiClient(edit_burst=100)


def bring_in(web: WikiClient, name: str, *texts: str) -> None:
    """As an import does, which refuses no text."""
    for base, text in enumerate(texts):
        web.wiki.save(name, text, author="import", base=base, autolink=False)


def test_a_page_of_too_many_links_is_refused_with_its_text(web: WikiClient) -> None:
    answer = web.save("/P", HOSTILE)
    assert answer.status_code == 413
    assert f"more than {LINKS_MAX:,} pages" in answer.text
    assert "divide it into several pages" in answer.text
    assert HOSTILE in answer.text
    assert web.wiki.page("P") is None


def test_an_import_over_the_bound_is_shown_up_to_it(web: WikiClient) -> None:
    bring_in(web, "P", HOSTILE)
    answer = web.get("/P")
    assert answer.status_code == 200
    assert "From here on it is shown as it was typed" in answer.text
    assert answer.text.count('class="missing"') == LINKS_MAX
    assert HOSTILE[-1_000:] in answer.text
    assert web.get("/P/raw").text == HOSTILE


def test_an_import_over_the_bound_can_be_made_shorter_and_brought_back(web: WikiClient) -> None:
    bring_in(web, "P", HOSTILE)
    assert web.save("/P", HOSTILE + "x").status_code == 413
    assert web.save("/P", HOSTILE[:-100]).status_code == 303
    assert web.save("/P", "spoilt").status_code == 303
    fields = web.form("/P/revert?revision=1")
    assert web.post("/P/revert?revision=1", fields).status_code == 303
    assert web.wiki.page("P").body == HOSTILE


def test_a_preview_says_where_it_is_cut(web: WikiClient) -> None:
    fields = {**web.form("/P/edit"), "body": HOSTILE, "preview": "1"}
    assert "From here on it is shown as it was typed" in web.post("/P/edit", fields).text


def test_the_same_action_twice_is_run_once(web: WikiClient) -> None:
    bring_in(web, "P", "{{pageindex}}" * 20 + '{{pageindex limit="3"}}')
    assert web.get("/P").status_code == 200
    assert web.wiki.calls.count("names") == 2


def test_actions_that_begin_too_late_say_so() -> None:
    web = WikiClient()
    now = [0.0]

    class Slow(MemoryWiki):
        def names(self, **options: Any) -> list[str]:
            now[0] += ACTIONS_S
            return super().names(**options)

        def names_part(self, **options: Any) -> tuple[list[str], str]:
            return self.names(**options), ""

    wiki: Any = Slow()
    site: Any = web.application._site  # type: ignore[attr-defined]
    object.__setattr__(site, "wiki", wiki)
    run = _runner(site, "P", clock=lambda: now[0])
    shown = [run("pageindex", {"limit": str(limit)}) or "" for limit in (1, 2, 3)]
    assert ["put some of them on another page" in html for html in shown] == [False, False, True]
    assert wiki.calls.count("names") == 2
