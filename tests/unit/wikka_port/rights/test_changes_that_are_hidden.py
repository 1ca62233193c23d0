"""The list of changes to a visitor who may not read all: every page of it is full, in order, and tells of no other.

The hidden changes stand first, last, at the seam of two pages and at random (COLUMNAR_SEED repeats a run).
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from tests.support.memory_wiki import MemoryWiki
from tests.support.seeds import seed
from wikka_port.rights import readable_lists
from wikka_port.rights.guarded import GuardedWiki
from wikka_port.rights.rules import PageRights, Privilege
from wikka_port.visitors import Visitor

SEED = seed(438)
NOBODY = Visitor(None, "", "", False, "")  # type: ignore[arg-type]  # as a stranger


def wiki_of(hidden: Sequence[bool]) -> MemoryWiki:
    """A change for each, the newest first."""
    wiki = MemoryWiki()
    for number, is_hidden in reversed(list(enumerate(hidden))):
        name = f"Page {number}"
        wiki.save(name, "text", author="Ann", base=0)
        if is_hidden:
            wiki.rights.change(name, PageRights(), "", {Privilege.READ: "Ann"})
    wiki.rights.change_rules("elsewhere/", {Privilege.READ: "Ann"}, wiki.rights.rules())
    return wiki


def assert_listed(hidden: Sequence[bool], limit: int) -> None:
    wiki = wiki_of(hidden)
    stamps = {item.name: item.time_ms for item in wiki.changes(limit=1_000)[0]}
    expected = [f"Page {number}" for number, is_hidden in enumerate(hidden) if not is_hidden]
    found: list[str] = []
    token = ""
    for _ in range(len(hidden) + 2):
        items, token = GuardedWiki(wiki, NOBODY).changes(before=token, limit=limit)  # type: ignore[arg-type]
        names = [item.name for item in items]
        assert names == expected[len(found) :][:limit], (hidden, limit)
        found += names
        if not token:
            break
        assert names, "a page without a change is the last"
        assert token == str(stamps[names[-1]]), "the token is that of a change that is shown"
    assert found == expected, (hidden, limit)
    guarded_wiki = GuardedWiki(wiki, NOBODY)  # type: ignore[arg-type]
    assert guarded_wiki.count_changes() == len(expected), "the number tells of no other either"


def test_rules_hold_from_the_moment_they_are_changed() -> None:
    """What was read before is young enough to be kept otherwise: the page is shut at once, and open at once."""
    wiki = wiki_of([False])
    for text in ("Ann", None, "Ann"):
        before = wiki.rights.rules()
        after = wiki.rights.change_rules("page", {Privilege.READ: text}, before)
        assert wiki.rights.rules().cells == after.cells != before.cells
        read = GuardedWiki(wiki, NOBODY).changes(limit=5)[0]  # type: ignore[arg-type]
        assert [item.name for item in read] == ([] if text else ["Page 0"])


@pytest.mark.parametrize("step", [1, 2, 3, 200])
def test_each_page_of_changes_is_what_the_visitor_may_read(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readable_lists, "LISTED_STEP", step)
    print(f"COLUMNAR_SEED={SEED}")
    rng = random.Random(f"{SEED} {step}")
    for count in range(6):
        for bits in range(1 << count):
            hidden = [bool(bits >> at & 1) for at in range(count)]
            for limit in (1, 2, 3):
                assert_listed(hidden, limit)
    for _ in range(10):
        assert_listed([rng.random() < 0.5 for _ in range(rng.randrange(20))], rng.randrange(1, 8))
