"""Seals of dead logs: of this version, and of older ones, whose lengths are those of files."""

from __future__ import annotations

import asyncio
from random import Random

from columnar.master import catalogue_rows
from columnar.master.catalogue import Catalogue
from columnar.master.catalogue_rows import OperatorSettings, put
from columnar.master.cluster_state import ClusterState
from columnar.master.instructions import Output, RemoveLog, Write
from columnar.model.owner import Incarnation, Owner
from columnar.model.region_info import RegionInfo
from columnar.storage.server_folders import Seal
from tests.support.changing_house import CatalogueRows

S1, DEAD = Incarnation("s1", 4), Incarnation("s2", 3)
LENGTHS = (("00000001.segment", 4_096),)


def older() -> CatalogueRows:
    """As an older program wrote them."""
    rows = CatalogueRows()
    sealed = catalogue_rows.sealed_to_json(LENGTHS)
    asyncio.run(rows.write([put(catalogue_rows.sealed_row(DEAD), sealed=sealed)]))  # type: ignore[arg-type]
    return rows


def test_a_seal_of_an_older_program_is_none_to_rely_on() -> None:
    catalogue = Catalogue(older().read(), older().write)
    assert catalogue.ownership.seal_of(DEAD) == Seal(LENGTHS, is_of_files=True)
    assert catalogue.ownership.firm_seals() == {}
    assert catalogue.ownership.seal_of(S1) is None


def test_a_seal_that_is_written_is_firm_from_then_on() -> None:
    rows = older()
    catalogue = Catalogue(rows.read(), rows.write)
    asyncio.run(catalogue.ownership.write_owners(Write(1, (), ((DEAD, LENGTHS),), (), None)))
    for found in (catalogue, Catalogue(rows.read(), rows.write)):
        assert found.ownership.seal_of(DEAD) == Seal(LENGTHS)
        assert found.ownership.firm_seals() == {DEAD: LENGTHS}
    asyncio.run(catalogue.ownership.write_owners(Write(2, (), (), (DEAD,), None)))
    assert Catalogue(rows.read(), rows.write).ownership.seal_of(DEAD) is None


def test_an_older_program_reads_the_seals_of_this_one() -> None:
    """It looks at the lengths alone."""
    rows = older()
    asyncio.run(Catalogue(rows.read(), rows.write).ownership.write_owners(Write(1, (), ((DEAD, LENGTHS),), (), None)))
    ((_, cells),) = rows.read()
    assert cells == {b"info:sealed": b'[["00000001.segment", 4096]]', b"info:whole": b"1"}


def test_a_repair_of_the_catalogue_keeps_what_a_seal_is() -> None:
    rows = older()
    catalogue = Catalogue(rows.read(), rows.write)
    changes = {change.row for change in catalogue.repairs(rows.read())}
    assert catalogue_rows.sealed_row(DEAD) not in changes


def writes(outputs: list[Output]) -> list[Write]:
    return [one for one in outputs if isinstance(one, Write)]


def test_a_damaged_log_is_behind_its_regions_and_has_no_seal() -> None:
    """A seal of what was found would hide for ever what was not."""
    info = RegionInfo("t", 2)
    state = ClusterState([(info, Owner(DEAD, 8))], {}, OperatorSettings(), Random(1))
    state.joined(S1, 0)
    state.fenced(DEAD, None, {(2, 8)}, 0)
    outputs = state.hello(S1, {}, {}, 0) + state.begin_planning(0)
    (write,) = writes(outputs)
    assert write.sealed == ()
    assert [tenure.server for _, row in write.owners for tenure in row.unreplayed_logs] == [DEAD]
    outputs = state.row_written(write.number, 1)
    assert RemoveLog(DEAD) not in outputs
    outputs = state.failed(S1, 2, 9, "the log is damaged", True, 2)
    assert RemoveLog(DEAD) not in outputs
    state.check_invariants()
