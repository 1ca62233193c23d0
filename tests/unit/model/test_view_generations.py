"""Generations of views: which of them readers see, what is kept, and what nobody sees any more."""

from __future__ import annotations

import pytest

from columnar.errors import DamagedData
from columnar.model.view_generations import (
    KEPT_MS,
    LEFT_MS,
    Swap,
    aliases_of,
    base_of,
    expired,
    from_json,
    generation_of,
    live_of,
    role_of,
    table_of,
    to_json,
    without_tables,
)

SWAPPED = Swap("v", "v.3", "v", 1_000)  # from the first to the third: the second was dropped before


def test_names() -> None:
    for table, base, number in (("v", "v", 1), ("v.2", "v", 2), ("ns:v.a.12", "ns:v.a", 12)):
        assert (base_of(table), generation_of(table), table_of(base, number)) == (base, number, table)
    assert (base_of("v.x"), generation_of("v.x")) == ("v.x", 1)


def test_what_readers_see() -> None:
    assert live_of("v", ()) == "v"
    assert live_of("v", (SWAPPED,)) == "v.3"
    assert (live_of("v@1", (SWAPPED,)), live_of("v@3", (SWAPPED,)), live_of("w", (SWAPPED,))) == ("v", "v.3", "w")


def test_roles() -> None:
    assert [role_of(one, ()) for one in ("v", "v.2")] == ["live", "next"]
    assert [role_of(one, (SWAPPED,)) for one in ("v", "v.2", "v.3", "v.4")] == ["kept", "kept", "live", "next"]
    back = Swap("v", "v", "v.3", 2_000)
    assert [role_of(one, (back,)) for one in ("v", "v.3", "v.4")] == ["live", "kept", "next"]


def test_aliases() -> None:
    assert aliases_of(["v", "w"], ()) == {"v@1": "v", "w@1": "w"}
    assert aliases_of(["v", "v.3"], (SWAPPED,)) == {"v@1": "v", "v@3": "v.3", "v": "v.3"}


def test_generations_that_nobody_sees_any_more() -> None:
    tables = ["v", "v.2", "v.3", "v.4", "w", "w.2"]
    assert expired(tables, (), 9_999) == []
    assert expired(tables, (SWAPPED,), 999) == ["v.2"], "neither live nor kept, and below both"
    assert expired(tables, (SWAPPED,), 1_000) == ["v.2", "v"], "what is kept goes last"
    assert expired(tables, (Swap("v", "v.3"),), 0) == ["v", "v.2"]
    fresh = Swap("v", "v.3", "v", 5 + KEPT_MS)
    assert expired(tables, (fresh,), 4 + LEFT_MS) == [], "somebody may read it still"
    assert expired(tables, (fresh,), 5 + LEFT_MS) == ["v.2"]


def test_tables_that_go() -> None:
    assert without_tables((SWAPPED,), ["v"]) == (Swap("v", "v.3"),), "the name still means the third"
    assert without_tables((SWAPPED,), ["v.3"]) == (), "the name means its own table, if there is one"
    assert without_tables((Swap("v", "v", "v.3", 5),), ["v.3"]) == ()
    assert without_tables((SWAPPED,), ["w"]) == (SWAPPED,)


def test_rows_of_the_catalogue() -> None:
    assert to_json(SWAPPED) == b'{"kept": "v", "table": "v.3", "until_ms": 1000}'
    assert from_json("v", to_json(SWAPPED)) == SWAPPED
    for wrong in (b"", b"[]", b"{}", b'{"table": "v", "kept": "", "until_ms": "soon"}'):
        with pytest.raises(DamagedData):
            from_json("v", wrong)
