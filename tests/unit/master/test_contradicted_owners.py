"""Rows of owners and seals that are lost, damaged or another region's: named before anything is served."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace

import pytest

from columnar.checking.findings import Report
from columnar.checking.store_check import say_server_logs
from columnar.errors import DamagedData
from columnar.master import dead_servers
from columnar.master.catalogue import Catalogue
from columnar.master.catalogue_rows import region_row
from columnar.master.dead_servers import check_owners, contradictions
from columnar.model import owner, region_info, schema
from columnar.model.mutation import Delete, Put, RowMutation
from columnar.model.owner import Incarnation, first_owner
from columnar.model.region_info import RegionInfo
from columnar.model.schema import Family, make_table
from columnar.storage.server_folders import log_of, note_log
from columnar.storage.server_log_files import begin_run

ONE, TWO = RegionInfo("t", 3, b"", b"m"), RegionInfo("t", 4, b"m", b"")
DEAD = {ONE: Incarnation("s1", 5), TWO: Incarnation("s2", 6)}
Rows = dict[bytes, dict[bytes, bytes]]


async def nothing(_mutations: list[RowMutation]) -> None:
    raise AssertionError("nothing is written")


@pytest.fixture
def rows(tmp_path: Path) -> Rows:
    """A catalogue's; each of two dead servers has writes of its region in its log."""
    (tmp_path / "regions").mkdir()
    for info, server in DEAD.items():
        name = str(server)
        (tmp_path / "servers" / name).mkdir(parents=True)
        log, _ = begin_run(log_of(str(tmp_path), name), has_begun=lambda name=name: note_log(str(tmp_path), name))
        log.prepare()
        log.append([(info.encoded, 8, 1, 0, [("a", b"k", b"v", None)])])
    table = {b"info:schema": schema.to_json(make_table("t", [Family("f")])), b"info:state": b"enabled"}
    held = {region_row(info): {b"info:region": region_info.to_json(info)} for info in DEAD}
    for info, server in DEAD.items():
        held[region_row(info)][b"info:owner"] = owner.to_json(first_owner(server, 8))
    return {b"t/t": table, **held}


def said(rows: Rows, data: Path) -> list[str]:
    return contradictions(Catalogue(rows.items(), nothing), str(data))


def refusal(rows: Rows, data: Path) -> str:
    with pytest.raises(DamagedData) as damage:
        check_owners(Catalogue(rows.items(), nothing), str(data))
    assert f"'columnar repair --data {data}'" in damage.value.text
    return damage.value.text


def test_rows_that_say_what_the_logs_say_are_sound(rows: Rows, tmp_path: Path) -> None:
    check_owners(Catalogue(rows.items(), nothing), str(tmp_path))
    rows[region_row(ONE)][b"info:owner"] = owner.to_json(first_owner(DEAD[TWO], 9))  # it moved on
    assert said(rows, tmp_path) == []


def test_a_region_without_an_owner_that_a_log_has_writes_of_is_not_served(rows: Rows, tmp_path: Path) -> None:
    """It was taken for one that nobody ever owned, and acknowledged writes were gone in silence."""
    del rows[region_row(ONE)][b"info:owner"]
    assert (
        f"the log of server s1.5 has writes of region {ONE.encoded} at epoch 8, and the catalogue has no owner"
        in refusal(rows, tmp_path)
    )
    report = Report()
    say_server_logs(report, str(tmp_path), Catalogue(rows.items(), nothing))
    assert [finding.text for finding in report.findings if finding.severity.name == "ERROR"] == said(rows, tmp_path)


def test_without_any_owner_one_process_has_taken_the_folder_over(rows: Rows, tmp_path: Path) -> None:
    """It was cut off before it removed the logs, which every region has the writes of."""
    for info in DEAD:
        del rows[region_row(info)][b"info:owner"]
    assert said(rows, tmp_path) == []


@pytest.mark.parametrize("epoch", [7, 8])
def test_an_owner_that_did_not_write_what_the_log_has_is_damage(rows: Rows, tmp_path: Path, epoch: int) -> None:
    rows[region_row(ONE)][b"info:owner"] = owner.to_json(first_owner(DEAD[TWO], epoch))
    assert f"the catalogue has s2.6 at epoch {epoch} as its owner" in refusal(rows, tmp_path)


@pytest.mark.parametrize("value", [b"", b'{"server": "s1', b"[]", b"null", b'{"server": "s1.5"}', b"\xff"])
def test_an_owner_that_does_not_decode_is_named(rows: Rows, tmp_path: Path, value: bytes) -> None:
    """A start ended with a traceback."""
    rows[region_row(ONE)][b"info:owner"] = value
    assert f"the catalogue has an owner of region {ONE.encoded} of t, which is none of ours" in refusal(rows, tmp_path)


@pytest.mark.parametrize("value", [b"", b"[[1, 2]]", b'[["a"]]', b"7"])
def test_a_seal_that_does_not_decode_is_named(rows: Rows, tmp_path: Path, value: bytes) -> None:
    rows[b"s/s1.5"] = {b"info:sealed": value, b"info:whole": b"1"}
    assert "the catalogue has a seal of the log of s1.5, which is none of ours" in refusal(rows, tmp_path)


def test_a_repair_takes_out_what_does_not_decode(rows: Rows) -> None:
    rows[region_row(ONE)][b"info:owner"] = b""
    rows[b"s/s1.5"] = {b"info:sealed": b""}
    written: list[RowMutation] = []

    async def write(mutations: list[RowMutation]) -> None:
        written.extend(mutations)

    catalogue = Catalogue(rows.items(), write)
    assert set(catalogue.ownership.unread) == {region_row(ONE), b"s/s1.5"}
    asyncio.run(catalogue.ownership.forget_servers(catalogue.regions()))
    gone = {mutation.row for mutation in written for one in mutation.operations if isinstance(one, Delete)}
    assert gone == {region_row(ONE), region_row(TWO), b"s/s1.5"}
    assert any(isinstance(one, Put) for mutation in written for one in mutation.operations), "the epoch"
    assert not catalogue.ownership.unread


@pytest.mark.parametrize("row", [b"t/t", region_row(ONE), b"w/wishes", b"e", b"s/nobody"])
def test_any_other_row_that_is_none_of_ours_is_named(rows: Rows, row: bytes) -> None:
    rows[row] = {}
    with pytest.raises(DamagedData, match="of the catalogue is none of ours: "):
        Catalogue(rows.items(), nothing)


def test_regions_of_no_table_and_in_the_row_of_another_are_named(rows: Rows) -> None:
    rows[region_row(ONE)], rows[region_row(TWO)] = rows[region_row(TWO)], rows[region_row(ONE)]
    with pytest.raises(DamagedData, match="it holds another region"):
        Catalogue(rows.items(), nothing)
    del rows[b"t/t"]
    rows[region_row(ONE)], rows[region_row(TWO)] = rows[region_row(TWO)], rows[region_row(ONE)]
    with pytest.raises(DamagedData, match="names a region of no table"):
        Catalogue(rows.items(), nothing)


def test_logs_that_the_disk_does_not_let_be_read_hold_no_start_up(
    rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their regions wait for them; the others are served."""
    from columnar.errors import HostError

    def refuse(*_: object) -> SimpleNamespace:
        raise HostError("the disk fails")

    monkeypatch.setattr(dead_servers, "read_dead_server_logs", refuse)
    check_owners(Catalogue(rows.items(), nothing), str(tmp_path))
