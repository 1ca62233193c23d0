"""What a registration asks of changes: columns that count, conditions, images, looks; and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from columnar.errors import IllegalArgument
from columnar.model.trigger_registration import Registration, checked

GOOD = Registration("links", "pages", "m:links", ("f", "g"), images=True)


def test_a_column_counts_and_so_does_its_family_when_it_is_deleted() -> None:
    scope = replace(GOOD, columns=("f:a", "g")).scope()
    assert scope.touches(b"f", b"a")
    assert scope.touches(b"f", None)
    assert not scope.touches(b"f", b"b")
    assert scope.touches(b"g", b"anything")
    assert not scope.touches(b"h", b"a")


def test_without_columns_the_families_count_whole() -> None:
    scope = GOOD.scope()
    assert scope.touches(b"f", b"a")
    assert not scope.touches(b"h", None)
    assert scope.images == {b"f": None, b"g": None}


def test_images_are_of_columns_conditions_and_looks() -> None:
    asked = replace(
        GOOD, columns=("f:a",), where=("f:b=1", "h:c exists"), look=(("fans", "followers", "g:user"),), before=True
    )
    assert asked.scope().images == {
        b"f": frozenset({b"a", b"b"}),
        b"h": frozenset({b"c"}),
        b"g": frozenset({b"user"}),
    }
    assert replace(asked, columns=("f",)).scope().images[b"f"] is None, "a family whole has its columns"
    unpictured = replace(asked, images=False).scope()
    assert unpictured.images == {b"f": frozenset({b"b"}), b"h": frozenset({b"c"}), b"g": frozenset({b"user"})}
    assert unpictured.has_image_of(b"f:b")
    assert not unpictured.has_image_of(b"f:a")


def test_a_registration_of_an_earlier_version_asks_for_no_image() -> None:
    assert Registration("links", "pages", "m:links", ("f",), before=True).scope().images == {}


def test_all_conditions_hold() -> None:
    scope = replace(GOOD, where=("f:state=ready", "number(f:n)>=3")).scope()
    assert scope.matches_row({b"f:state": b"ready", b"f:n": b"10"})
    assert not scope.matches_row({b"f:state": b"ready", b"f:n": b"2"})
    assert not scope.matches_row({b"f:n": b"10"})


def test_a_look_names_one_row() -> None:
    (fans,) = replace(GOOD, look=(("fans", "followers", "row.split('/', 0)"),)).scope().lookups
    assert (fans.name, fans.table) == ("fans", b"followers")
    assert fans.row(b"ann/7", {}) == b"ann"
    (friend,) = replace(GOOD, look=(("friend", "people", "f:friend"),)).scope().lookups
    assert friend.row(b"r", {b"f:friend": b"bob"}) == b"bob"
    assert friend.row(b"r", {}) == b"", "no such cell"
    (far,) = replace(GOOD, look=(("far", "people", "row.split('/', 9)"),)).scope().lookups
    assert far.row(b"ann/7", {}) == b"", "no such piece"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"columns": ("h:a",)}, "family h, which is none"),
        ({"columns": (":a",)}, "family:qualifier"),
        ({"columns": tuple(f"f:{n}" for n in range(101))}, "at most 100 columns"),
        ({"where": ("f:a>9",)}, "number"),
        ({"where": ("f:a=1",) * 17}, "at most 16 conditions"),
        ({"look": (("a", "t", "each f:"),)}, "a look is of one row"),
        ({"look": (("a b", "t", "row"),)}, "letters, digits"),
        ({"look": (("a", "t", "row"), ("a", "u", "row"))}, "not twice a"),
        ({"look": tuple((f"a{n}", "t", "row") for n in range(5))}, "at most 4 looks"),
        ({"look": (("a", "t", "key[0]"),)}, "not a view"),
    ],
)
def test_what_is_wrong_is_told(change: dict[str, Any], message: str) -> None:
    with pytest.raises(IllegalArgument, match=message):
        checked(replace(GOOD, **change), ("m",))
