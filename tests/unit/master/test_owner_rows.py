"""Owners, sealed logs and wishes in the catalogue: written in one batch, read back, gone with regions, repaired."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from columnar.master.catalogue import Catalogue
from columnar.master.catalogue_rows import (
    OperatorSettings,
    operator_settings_to_json,
    sealed_from_json,
    sealed_server,
    sealed_to_json,
)
from columnar.master.instructions import Write
from columnar.model.owner import Incarnation, Owner, OwnershipPeriod, first_owner
from columnar.model.region_info import RegionInfo
from columnar.model.schema import Family, make_table
from tests.support.changing_house import CatalogueRows

S1, S2 = Incarnation("s1", 4), Incarnation("s2", 17)
TABLE = make_table("t", [Family("f")])
WISHES = OperatorSettings(frozenset({"s2"}), frozenset({7}), balancer=False)


def finish(what: Awaitable[object]) -> None:
    async def run() -> None:
        await what

    asyncio.run(run())


def filled() -> tuple[CatalogueRows, Catalogue, list[RegionInfo]]:
    rows = CatalogueRows()
    catalogue = Catalogue(rows.read(), rows.write)

    async def fill() -> list[RegionInfo]:
        infos = await catalogue.reserve("t", [(b"", b"k"), (b"k", b"")])
        await catalogue.adopt(TABLE, infos)
        return infos

    infos = asyncio.run(fill())
    return rows, catalogue, infos


def test_owners_sealed_logs_and_wishes_are_read_back() -> None:
    rows, catalogue, (left, right) = filled()
    moved = Owner(S2, 9, 0, OwnershipPeriod(S1, 8), (OwnershipPeriod(S1, 7),))
    sealed = ((S1, (("00000001.segment", 4_096), ("00000002.segment", 17))),)
    finish(catalogue.ownership.write_owners(Write(1, ((left, first_owner(S1)), (right, moved)), sealed, (), WISHES)))
    again = Catalogue(rows.read(), rows.write)
    assert (
        again.ownership.owners
        == catalogue.ownership.owners
        == {left.region_id: first_owner(S1), right.region_id: moved}
    )
    assert again.ownership.sealed == catalogue.ownership.sealed == dict(sealed)
    assert again.ownership.operator_settings == catalogue.ownership.operator_settings == WISHES
    assert again.tables["t"].regions == [left, right]


def test_a_forgotten_log_has_no_row() -> None:
    rows, catalogue, _ = filled()
    finish(catalogue.ownership.write_owners(Write(1, (), ((S1, ()), (S2, ())), (), None)))
    finish(catalogue.ownership.write_owners(Write(2, (), (), (S1,), None)))
    assert Catalogue(rows.read(), rows.write).ownership.sealed == {S2: ()}


def test_an_owner_of_a_region_that_was_dropped_meanwhile_is_left_out() -> None:
    rows, catalogue, (left, right) = filled()
    finish(catalogue.drop("t", catalogue.derivations.triggers))
    finish(
        catalogue.ownership.write_owners(Write(1, ((left, first_owner(S1)), (right, first_owner(S1))), (), (), None))
    )
    assert not [row for row in rows.cells if row.startswith(b"r/")]
    assert catalogue.ownership.owners == {}


def test_successors_of_a_split_have_their_owner_by_the_same_write() -> None:
    rows, catalogue, (left, right) = filled()
    finish(
        catalogue.ownership.write_owners(Write(1, ((left, first_owner(S1, 8)), (right, first_owner(S2))), (), (), None))
    )
    fresh = [RegionInfo("t", 8, b"", b"c"), RegionInfo("t", 9, b"c", b"k")]
    finish(catalogue.replace([left], fresh, first_owner(S1)))
    again = Catalogue(rows.read(), rows.write)
    assert (
        again.ownership.owners
        == catalogue.ownership.owners
        == {8: first_owner(S1), 9: first_owner(S1), right.region_id: first_owner(S2)}
    )
    assert again.tables["t"].regions == [*fresh, right]


def test_owners_go_with_their_regions() -> None:
    _, catalogue, (left, right) = filled()
    finish(
        catalogue.ownership.write_owners(Write(1, ((left, first_owner(S1)), (right, first_owner(S2))), (), (), None))
    )
    finish(catalogue.drop("t", catalogue.derivations.triggers))
    assert catalogue.ownership.owners == {}


def test_after_a_write_of_unknown_outcome_owners_and_logs_are_as_before() -> None:
    rows, catalogue, (left, right) = filled()
    finish(catalogue.ownership.write_owners(Write(1, ((left, first_owner(S1)),), ((S1, (("1", 2),)),), (), WISHES)))
    other = Catalogue(rows.read(), rows.write)
    new = Write(2, ((left, Owner(S2, 2)), (right, first_owner(S2))), ((S2, ()),), (S1,), OperatorSettings())
    finish(other.ownership.write_owners(new))
    finish(rows.write(catalogue.repairs(rows.read())))
    again = Catalogue(rows.read(), rows.write)
    assert again.ownership.owners == {left.region_id: first_owner(S1)}
    assert again.ownership.sealed == {S1: (("1", 2),)}
    assert again.ownership.operator_settings == WISHES


def test_regions_that_are_exchanged_stay_ascending() -> None:
    _, catalogue, (left, right) = filled()
    fresh = [RegionInfo("t", 21, b"d", b"k"), RegionInfo("t", 20, b"", b"d")]
    finish(catalogue.exchange("t", [left], fresh))
    assert catalogue.tables["t"].regions == [fresh[1], fresh[0], right]


def test_values_are_written_as_they_are_documented() -> None:
    assert sealed_to_json((("00000001.segment", 12),)) == b'[["00000001.segment", 12]]'
    assert sealed_from_json(b'[["a", 1], ["b", 2]]') == (("a", 1), ("b", 2))
    assert sealed_server(b"s/s2.17") == S2
    assert (
        operator_settings_to_json(WISHES)
        == b'{"auto_split": true, "balancer": false, "drained": ["s2"], "unassigned": [7]}'
    )
