"""Access lists: WikkaWiki's language whole, twice evaluated; errors that say what to do."""

from __future__ import annotations

import os
import random

import pytest

from tests.support.acl_evaluator import lets_in
from wikka_port.rights.acl import LIST_CHARS_MAX, LIST_LINES_MAX, BadList, checked, members_of, read_list, verdict

RANDOM_LISTS = int(os.environ.get("COLUMNAR_ACL_LISTS", "2000"))
USERS = ["Ann", "ann", "ÄNN", "Bob", "Zoë", "ZOE", "X+Y", "Mallory Jones", "straße", "STRASSE"]
GROUPS = {
    "Editors": "The editors: +Ann+ and +Zoë+.",
    "Many": "+Bob+Ann+mallory jones+",
    "Struck": "++Ann++ and + Bob + and 1+1",
    "Broken": "+Ann\n+Bob+ 2",
    "Empty": "nobody",
    "Bob": "+Ann+",  # a page of a user's name
}
WHO = [*USERS, *GROUPS, "Nobody", "*", "+", "!", "#", "# Ann", "", " ", "* Ann", "+Ann", "!Ann"]


def random_list(rng: random.Random) -> str:
    lines = []
    for _ in range(rng.randrange(6)):
        line = rng.choice(["", "", "", "!", "!!", "!#", "#", " ", "\t! "]) + rng.choice(WHO)
        lines.append(line + rng.choice(["", "", " ", "\r"]))
    return "\n".join(lines)


def groups_in(text: str) -> dict[str, frozenset[str]]:
    return {name: members_of(GROUPS.get(name, "")) for name in read_list(text).names}


@pytest.mark.parametrize("seed", range(4))
def test_random_lists_mean_the_same_to_both_evaluators(seed: int) -> None:
    rng = random.Random(seed)
    let_in = 0
    for _ in range(RANDOM_LISTS // 4):
        text = random_list(rng)
        user = rng.choice([None, *USERS])
        ours = verdict(read_list(text), user, groups_in(text))
        assert ours.allowed == lets_in(text, user, GROUPS), (seed, text, user)
        let_in += ours.allowed
    assert RANDOM_LISTS // 40 < let_in < RANDOM_LISTS // 5, "both answers are common"


@pytest.mark.parametrize(
    ("text", "anonymous", "ann", "bob"),
    [
        ("*", True, True, True),
        ("+", False, True, True),
        ("!*", False, False, False),
        ("!+", True, False, False),
        ("", False, False, False),
        ("# all\n*", True, True, True),
        ("!Ann\n*", True, False, True),
        ("Ann", False, True, False),
        ("aNN", False, True, False),
        ("!Editors\n+", False, False, True),
        ("Editors\n!*", False, True, False),
        ("*\n!Ann", True, True, True),
        ("+\n*", False, True, True),  # as in WikkaWiki "+" speaks of everybody
        ("!\nAnn", False, True, False),
        ("!# Ann\nBob", False, True, True),  # the page Bob lists Ann
    ],
)
def test_lists_of_the_manual(text: str, anonymous: bool, ann: bool, bob: bool) -> None:
    found = [verdict(read_list(text), user, groups_in(text)).allowed for user in (None, "Ann", "Bob")]
    assert found == [anonymous, ann, bob]


def test_the_entry_that_decided_is_told() -> None:
    found = verdict(read_list("# first\n\n!Bob\n+"), "bob", {})
    assert found.entry is not None
    assert (found.entry.line, found.entry.text) == (3, "!Bob")
    assert verdict(read_list("Ann"), None, {}).entry is None


def test_members_of_a_group() -> None:
    assert members_of(GROUPS["Many"]) == {"bob", "ann", "mallory jones"}
    assert members_of(GROUPS["Struck"]) == {"ann"}
    assert members_of("+") == members_of("") == members_of("+Ann") == frozenset()
    assert members_of("+" + "a" * 76 + "+") == frozenset()


@pytest.mark.parametrize(
    ("text", "line", "hint"),
    [
        ("Ann\n!", 2, "nobody"),
        ("* Ann", 1, "line of its own"),
        ("+Ann+", 1, "line of its own"),
        ("Ann\n+B", 2, "behind “+” stands “B”"),
        ("!!Ann", 1, "once"),
        ("Ann, Bob", 1, "one name a line"),
        ("A\x07", 1, "control character"),
        ("x" * 300, 1, "300 characters"),
        ("a\n" * (LIST_LINES_MAX + 1), None, "group page"),
        ("# " + "x" * LIST_CHARS_MAX, None, "are the most"),
    ],
)
def test_a_list_that_is_a_mistake_is_refused(text: str, line: int | None, hint: str) -> None:
    with pytest.raises(BadList) as refused:
        checked(text)
    assert refused.value.line == line
    assert hint in str(refused.value)
    read_list(text)  # never fails


@pytest.mark.parametrize("text", ["# " + "x" * (LIST_CHARS_MAX - 2), "\n".join(["a"] * LIST_LINES_MAX)])
def test_a_list_may_be_as_long_as_its_bounds(text: str) -> None:
    assert checked(text) == text


def test_a_list_is_kept_tidy() -> None:
    assert checked("  Ann \r\n+\r\n\r\n") == "Ann\n+"
    assert checked("") == ""
