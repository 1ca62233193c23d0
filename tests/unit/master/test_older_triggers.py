"""Triggers of an older folder move to the catalogue by one write: they stand in the one or in the other."""

from __future__ import annotations

import asyncio
import logging

import pytest

from columnar.errors import DamagedData, OutcomeUnknown
from columnar.master.catalogue import Catalogue
from columnar.master.derivation_rows import TRIGGERS_TABLE
from columnar.master.older_triggers import take_in, triggers_of
from columnar.model.derivations import Numbers, Triggers
from columnar.model.region_info import RegionInfo
from columnar.model.schema import Family, Table, make_table
from columnar.model.trigger_registration import Registration
from tests.support.changing_house import CatalogueRows
from tests.support.older_store import TABLE, older_rows

LINKS = Registration("links", "t", "m:f", ("f",))
HELD = Triggers().adding(LINKS).with_state("links", "running")
HELD = HELD.adding(Registration("gone", "t", "m:f", ("f",))).without(["gone"])
HELD = HELD.adding(Registration("more", "t", "m:g", ("f",))).with_state("more", "paused")


def with_families(rows: dict[bytes, dict[bytes, bytes]]) -> list[tuple[bytes, dict[bytes, bytes]]]:
    return [(row, {b"info:" + column: value for column, value in cells.items()}) for row, cells in rows.items()]


def moved(rows: dict[bytes, dict[bytes, bytes]]) -> Triggers:
    found = triggers_of(with_families(rows), {"t"})
    found.check_invariants()
    return found


def test_all_of_them_with_their_numbers() -> None:
    assert moved(older_rows(HELD)) == HELD


def test_a_trigger_of_before_there_were_numbers() -> None:
    rows = older_rows(HELD)
    del rows[b"links"][b"number"], rows[b"more"], rows[b"#numbers"]
    found = moved(rows)
    assert [(one.name, one.number, one.state) for one in found.all] == [("links", 0, "running")]
    assert not found.is_removed("links", 0)
    assert found.adding(Registration("next", "t", "m:f", ("f",))).numbers == Numbers(1)


def test_what_was_half_made_is_called_off() -> None:
    found = moved(older_rows(HELD.adding(Registration("half", "t", "m:f", ("f",))).without(["half"]), beginning=4))
    assert found.is_removed("half", 4)
    rows = older_rows(HELD, beginning=3)
    assert moved(rows) == HELD, "its registration had come to be"
    del rows[b"more"]
    assert moved(rows).numbers == Numbers(3, ((2, 3),))


def test_what_was_half_removed_is_no_trigger() -> None:
    rows = older_rows(HELD.without(["links"]))
    rows[b"links"] = older_rows(HELD)[b"links"]
    assert moved(rows) == HELD.without(["links"])


def test_unreadable_rows_come_along_and_strays_do_not(caplog: pytest.LogCaptureFixture) -> None:
    rows = older_rows(HELD)
    rows[b"links"][b"registration"] = b"{"
    rows[b"#numbers"][b"numbers"] = b"["
    rows[b"stray"] = {b"state": b"running"}
    rows[b"\xff"] = rows[b"more"]
    with caplog.at_level(logging.WARNING):
        found = moved(rows)
    assert [(one.name, bool(one.unusable_reason), one.number) for one in found.all] == [
        ("links", True, 1),
        ("more", False, 3),
    ]
    assert found.numbers is None
    assert "row b'stray'" in caplog.text
    assert "row b'\\xff'" in caplog.text


# --- one write -------------------------------------------------------------------------------------


async def older(rows: CatalogueRows) -> None:
    catalogue = Catalogue(rows.read(), rows.write)
    await catalogue.adopt(make_table("t", [Family("f")]), await catalogue.reserve("t", [(b"", b"")]))
    await catalogue.adopt(TABLE, await catalogue.reserve(TRIGGERS_TABLE, [(b"", b"")]))


def rows_of(_table: Table, info: RegionInfo) -> list[tuple[bytes, dict[bytes, bytes]]]:
    assert info.table == TRIGGERS_TABLE
    return with_families(older_rows(HELD))


def start(rows: CatalogueRows) -> Catalogue:
    catalogue = Catalogue(rows.read(), rows.write)
    asyncio.run(take_in(catalogue, rows_of))
    return catalogue


def test_the_table_goes_with_its_regions_and_a_second_start_has_nothing_to_do() -> None:
    rows = CatalogueRows()
    asyncio.run(older(rows))
    first = start(rows)
    assert first.derivations.triggers == HELD
    assert list(first.tables) == ["t"]
    assert [info.table for info in first.dropped] == [TRIGGERS_TABLE], "its folder goes when the start is over"
    held = dict(rows.cells)
    assert start(rows).derivations.triggers == HELD
    assert rows.cells == held


@pytest.mark.parametrize("is_there", [True, False])
def test_a_start_that_ends_in_the_write_leaves_the_one_or_the_other(is_there: bool) -> None:
    rows = CatalogueRows()
    asyncio.run(older(rows))
    rows.failure, rows.takes_what_fails = OutcomeUnknown("the machine went"), is_there
    with pytest.raises(OutcomeUnknown):
        start(rows)
    rows.failure = None
    left = Catalogue(rows.read(), rows.write)
    assert (TRIGGERS_TABLE in left.tables) is not is_there
    assert (left.derivations.triggers == HELD) is is_there
    assert (left.derivations.triggers == Triggers()) is not is_there
    assert start(rows).derivations.triggers == HELD


def test_a_table_that_cannot_be_read_keeps_the_store_from_starting() -> None:
    rows = CatalogueRows()
    asyncio.run(older(rows))
    held = {row: dict(cells) for row, cells in rows.cells.items()}

    def damaged(_table: Table, _info: RegionInfo) -> list[tuple[bytes, dict[bytes, bytes]]]:
        raise DamagedData("a block's sum is wrong")

    catalogue = Catalogue(rows.read(), rows.write)
    with pytest.raises(DamagedData):
        asyncio.run(take_in(catalogue, damaged))
    assert rows.cells == held
