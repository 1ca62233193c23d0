"""A link is spent by one of two requests, whichever step of the other the first one comes between."""

from __future__ import annotations

from typing import get_args

import pytest

from tests.support.memory_rows import MemoryRows
from wikka_port.accounts.links import LIFE_S, Kind, Link, Links

KINDS: tuple[Kind, ...] = get_args(Kind)
STEPS = ("rows.row", "rows.change")


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("kind", KINDS)
def test_of_two_requests_that_spend_one_link_one_gets_it(kind: Kind, step: str) -> None:
    between: list[Link | None] = []

    def asked(what: str) -> None:
        if what == step and not between:
            between.append(None)  # the other's steps are its own
            between[0] = links.spend(token, kind)

    rows = MemoryRows()
    links = Links(rows, lambda: 1_000)
    token = links.issue(kind, b"ada", "extra")
    rows.asked = asked
    got = [links.spend(token, kind), *between]
    assert sorted(map(str, got)) == sorted(map(str, [None, Link(kind, b"ada", "extra")]))
    assert links.spend(token, kind) is None
    assert links.find_link(token, kind) is None


@pytest.mark.parametrize("kind", KINDS)
def test_a_link_is_good_until_its_last_millisecond_and_for_its_kind_alone(kind: Kind) -> None:
    now_ms = [1_000]
    links = Links(MemoryRows(), lambda: now_ms[0])
    token, brief = links.issue(kind, b"ada"), links.issue(kind, b"ada", life_s=3)
    assert [links.find_link(token, other) is not None for other in KINDS] == [other == kind for other in KINDS]
    for one, life_s in ((brief, 3), (token, LIFE_S[kind])):
        now_ms[0] = 1_000 + life_s * 1_000 - 1
        assert links.find_link(one, kind) == Link(kind, b"ada", "")
        now_ms[0] += 1
        assert links.find_link(one, kind) is None
        assert links.spend(one, kind) is None


def test_what_is_no_token_is_no_link() -> None:
    rows = MemoryRows()
    links = Links(rows, lambda: 1_000)
    links.issue("reset", b"ada")
    asked: list[str] = []
    rows.asked = asked.append
    assert links.find_link("", "reset") is None
    assert links.find_link("x" * 101, "reset") is None
    assert asked == [], "a page of text is not looked for in the store"
    assert links.find_link("x" * 100, "reset") is None
