"""Lists in plain words, and what they warn of."""

from __future__ import annotations

import pytest

from wikka_port.rights.acl import read_list
from wikka_port.rights.words import Named, in_words, who_always


def named(name: str) -> Named:
    if name in ("Ann", "Bob"):
        return Named("user")
    return Named("group", 3, "everybody") if name == "Editors" else Named("nobody")


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("*", ["Everybody may."]),
        ("!*", ["Nobody may."]),
        ("", ["Nobody may."]),
        ("+", ["Everybody who is signed in may; nobody besides."]),
        ("!Ann\n*", ["Ann may not.", "Everybody else may."]),
        ("Ann\n!+", ["Ann may.", "Everybody else who is not signed in may; nobody besides."]),
        ("Editors", ["The group Editors (its 3 members) may.", "Nobody else may."]),
    ],
)
def test_in_words(text: str, lines: list[str]) -> None:
    assert list(in_words(read_list(text), named).lines) == lines


def test_warnings() -> None:
    found = in_words(read_list("Editors\nAnn\nann\nCarl\n+\nBob"), named).warnings
    assert [warning.split(":")[0].split(" does")[0].split(" and")[0] for warning in found] == [
        "Line 1", "Line 3", "Line 4", "Line 6",
    ]  # fmt: skip
    assert "make anybody a member" in found[0]


def test_who_always_may() -> None:
    assert who_always("Ann").startswith("Ann, who owns the page")
    assert who_always("") == who_always("(Public)") == "Administrators always may."
