"""Names near one that no page has: which are, in which order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wikka_port.search.nearest import CANDIDATES, forms, is_one_off, ranked

NAMES = ["HomePage", "TidalRivers", "Tidal lakes", "Café Zürich", "Ärger", "Sea", "Москва", "HomePage/Old", "Zebra"]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("homepage", ["HomePage", "HomePage/Old"]),
        ("home page", ["HomePage", "HomePage/Old"]),
        ("HOMEPAGE", ["HomePage", "HomePage/Old"]),
        ("HomePag", ["HomePage", "HomePage/Old"]),
        ("HoemPage", ["HomePage"]),
        ("omePage", ["HomePage"]),
        ("HomePagee", ["HomePage"]),
        ("tidal rivers", ["TidalRivers"]),
        ("Tidal river", ["TidalRivers"]),
        ("Tidal", ["Tidal lakes", "TidalRivers"]),
        ("cafe zurich", ["Café Zürich"]),
        ("arger", ["Ärger"]),
        ("Масква", ["Москва"]),
        ("HomePage/edti", ["HomePage"]),
        ("Se", []),
        ("Zebra", []),
        ("Nothing like it", []),
    ],
)
def test_near_names_come_in_their_order(asked: str, expected: list[str]) -> None:
    assert ranked(asked, NAMES) == expected


def test_names_that_fold_alike_come_before_a_slip_and_a_slip_before_a_beginning() -> None:
    assert ranked("home page", ["HomePages of all", "Homepages", "HomePage", "ome page"]) == [
        *("HomePage", "ome page", "Homepages", "HomePages of all")
    ]


def test_so_many_and_no_more() -> None:
    assert len(ranked("page", (f"Page {n}" for n in range(500)))) == CANDIDATES
    assert forms("TidalRivers/Old_ones") == ["tidalrivers/old_ones", "tidal rivers/old_ones", "tidalrivers"]
    assert forms("a") == ["a"]


LETTERS = st.text(alphabet="abc", max_size=6)


@given(LETTERS, LETTERS)
def test_one_off_is_what_one_change_of_a_letter_makes(one: str, other: str) -> None:
    cuts = [(one[:at], one[at:]) for at in range(len(one) + 1)]
    made = {head + tail[1:] for head, tail in cuts if tail}
    made |= {head + letter + tail for head, tail in cuts for letter in "abc"}
    made |= {head + letter + tail[1:] for head, tail in cuts if tail for letter in "abc"}
    made |= {head + tail[1] + tail[0] + tail[2:] for head, tail in cuts if len(tail) > 1}
    assert is_one_off(one, other) == (other in made - {one})
