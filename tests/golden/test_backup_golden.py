"""Cells, digests and manifests of backups, as docs/formats/backups.md describes them."""

from __future__ import annotations

import io

import pytest

from columnar.backup import table_export
from columnar.backup.cell_blocks import MAGIC, ExportedCell, blocks_of, read_cells
from columnar.backup.table_export import CellDigest, ExportManifest, Part
from columnar.errors import CallerError, DamagedData
from columnar.master import snapshot_manifest
from columnar.master.snapshot_manifest import FileFacts, RegionCopy, SnapshotManifest
from columnar.model.schema import Family, make_table
from tests.support.golden import hold_to

CELLS = {
    "plain": [ExportedCell(b"r", b"f", b"q", 5, None, b"v")],
    "ttl and odd bytes": [ExportedCell(b"\x00\xff", b"f", b"", 1 << 62, 60_000, b"")],
    "same row": [
        ExportedCell(b"r", b"a", b"q", 7, None, b"newest"),
        ExportedCell(b"r", b"a", b"q", 5, 9, b"older"),
        ExportedCell(b"r", b"b", b"", 7, None, b""),
        ExportedCell(b"s", b"a", b"q", 7, None, b"other"),
    ],
    "packed": [ExportedCell(b"r", b"f", b"q", 5, None, b"v" * 300)],
}
TABLE = make_table("wiki", [Family("meta", max_versions=3, ttl_s=60), Family("body")], {"CHANGE_LOG": "60"})


def test_blocks() -> None:
    hold_to("cell-blocks.txt", {"magic": MAGIC} | {name: b"".join(blocks_of(cells)) for name, cells in CELLS.items()})


def test_digests() -> None:
    found = {}
    for name, cells in CELLS.items():
        digest, back = CellDigest(), CellDigest()
        for cell in cells:
            digest.add_cell(cell)
        for cell in reversed(cells):
            part = CellDigest()
            part.add_cell(cell)
            back.include(part)
        assert back.hex == digest.hex, "order and parts do not count"
        found[name] = f"{digest.rows} {digest.cells} {digest.hex}"
    assert len(set(found.values())) == len(found)
    hold_to("cell-digests.txt", found)


def test_manifests() -> None:
    part = Part("part-00000.cells", b"", b"m\x00", 77, 2, 3)
    exported = ExportManifest(1_700_000_000_000, TABLE, 2, 3, "ab" * 32, (part,), 1_700_000_000_009)
    data = table_export.to_json(exported)
    assert table_export.from_json(data, "x") == exported
    older = data.replace(b' "clock_ms": 1700000000009,\n', b"")
    assert table_export.from_json(older, "x").clock_ms == exported.taken_ms
    hold_to("export-manifest.txt", {"before there was clock_ms": older, "manifest": data})
    copies = (
        RegionCopy("aa", b"", b"m", {"CURRENT": FileFacts(16, "cd" * 32)}),
        RegionCopy("bb", b"m", b"", {"000009.sst": FileFacts(1_000, "ef" * 32)}),
    )
    snapshot = SnapshotManifest("s1", 1_700_000_000_000, TABLE, copies, 1_700_000_000_007)
    data = snapshot_manifest.to_json(snapshot)
    assert snapshot_manifest.from_json(data, "x") == snapshot
    older = data.replace(b' "clock_ms": 1700000000007,\n', b"")
    assert snapshot_manifest.from_json(older, "x").clock_ms == snapshot.created_ms
    hold_to("snapshot-manifest.txt", {"before there was clock_ms": older, "manifest": data})


@pytest.mark.parametrize("cells", CELLS.values(), ids=CELLS)
def test_cells_come_back_and_every_changed_byte_is_noticed(cells: list[ExportedCell]) -> None:
    data = MAGIC + b"".join(blocks_of(cells))
    assert list(read_cells(io.BytesIO(data), "x")) == cells
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 0x10
        with pytest.raises(DamagedData):
            assert list(read_cells(io.BytesIO(changed), "x")) == cells
    for length in range(len(MAGIC) + 1, len(data)):
        with pytest.raises(DamagedData):
            list(read_cells(io.BytesIO(data[:length]), "x"))


def test_manifests_that_cannot_be_are_refused() -> None:
    good = snapshot_manifest.to_json(SnapshotManifest("s", 1, TABLE, (RegionCopy("aa", b"", b"", {}),), 1))
    with pytest.raises(CallerError, match="upgrade"):
        snapshot_manifest.from_json(good.replace(b"columnar-snapshot 1", b"columnar-snapshot 2"), "x")
    for bad in (
        b"",
        b"[]",
        b"{}",
        good.replace(b'"aa"', b'"../aa"'),
        good.replace(b'"end": ""', b'"end": "6d"'),
        good.replace(b'"regions": [', b'"regions": [], "more": ['),
    ):
        with pytest.raises(DamagedData):
            snapshot_manifest.from_json(bad, "x")
        with pytest.raises((DamagedData, CallerError)):
            table_export.from_json(bad, "x")
