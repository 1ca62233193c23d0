"""What an import decides about one page."""

from __future__ import annotations

import pytest

from wikka_port.import_plan import ImportedRevision, PagePart, attribution, plan, rising


def part(*times: int, first: int = 1) -> PagePart:
    revisions = tuple(ImportedRevision(at, "Ann", "", f"text {at}", 0, is_redirect=False) for at in times)
    return PagePart("Page", 0, first, revisions, "", is_last=True)


@pytest.mark.parametrize(
    ("stored", "new", "kept"),
    [
        ({}, [1, 2, 3], False),
        ({1: 10}, [2, 3], False),
        ({1: 10, 2: 20}, [3], False),
        ({1: 10, 2: 20, 3: 30}, [], False),
        ({1: 10, 2: 20, 3: 30, 4: 99}, [], False),
        ({1: 10, 2: 77}, [], True),
        ({1: 9}, [], True),
        ({1: 10, 2: 20, 3: 31, 4: 32}, [], True),
    ],
)
def test_what_is_new_of_three_revisions(stored: dict[int, int], new: list[int], kept: bool) -> None:
    planned = plan(part(10, 20, 30), max(stored, default=0), stored)
    assert ([number for number, _ in planned.new], planned.kept) == (new, kept)


def test_a_later_part_builds_on_the_one_before() -> None:
    assert [number for number, _ in plan(part(30, 40, first=3), 2, {2: 20}).new] == [3, 4]
    assert plan(part(30, first=3), 1, {}).kept, "what it goes on from is not there"
    assert plan(part(30, first=3), 3, {2: 20, 3: 31}).kept


def test_times_rise_strictly_and_always_alike() -> None:
    assert rising(part(10, 10, 10, 11, 50).revisions, -1) == [10, 11, 12, 13, 50]
    assert rising(part(10, 20).revisions, 30) == [31, 32]
    assert not plan(part(10, 10), 2, {1: 10, 2: 11}).new


@pytest.mark.parametrize(
    ("base", "at", "licence", "text"),
    [
        (
            "https://ltg.wikipedia.org/wiki/Suokuma_puslopa",
            1_500_000_000_000,
            None,
            "From Wikipedeja, https://ltg.wikipedia.org/wiki/M%C4%81ja_lapa, by its contributors there; "
            "CC BY-SA 3.0 and GFDL.",
        ),
        (
            "https://ltg.wikipedia.org/wiki/X",
            1_700_000_000_000,
            None,
            "From Wikipedeja, https://ltg.wikipedia.org/wiki/M%C4%81ja_lapa, by its contributors there; CC BY-SA 4.0.",
        ),
        (
            "https://wiki.example/X",
            0,
            None,
            "From Wikipedeja, https://wiki.example/M%C4%81ja_lapa, by its contributors there; "
            "under the licence of that site.",
        ),
        (
            "https://wiki.example/X",
            0,
            "CC0",
            "From Wikipedeja, https://wiki.example/M%C4%81ja_lapa, by its contributors there; CC0.",
        ),
    ],
)
def test_the_attribution_names_site_address_and_licence(base: str, at: int, licence: str | None, text: str) -> None:
    assert attribution("Wikipedeja", base, "Māja lapa", at, licence) == text
