"""A flipped bit in a table file of any space is found: an opening reads some of them that hold no cells."""

from __future__ import annotations

from pathlib import Path

import pytest

from columnar.checking.findings import Report
from columnar.checking.region_check import RegionCheck
from columnar.model.region_info import RegionInfo
from columnar.model.schema import Family, make_table
from columnar.regions.region import spaces_of
from columnar.storage.layout import cell_key, pack_cell
from columnar.storage.rocks import RocksEngine
from columnar.storage.server_log import MARK_SPACE

TABLE = make_table("t", [Family("f")])
GONE = "f:gone"  # of a family that was deleted


@pytest.mark.parametrize("space", ["f:f", MARK_SPACE, "meta", GONE])
def test_a_damaged_block_of_any_space_is_an_error(space: str, tmp_path: Path) -> None:
    path = tmp_path / "region"
    store = RocksEngine().open_store(str(path), spaces_of(TABLE) | {GONE})
    batch = store.batch()
    for number in range(50):
        batch.put(space, cell_key(b"%03d" % number, b"q"), pack_cell(9, 1, b"value"))
    store.write_batch(batch)
    store.files.flush()
    store.close()
    assert checked(path) == ([], True)
    file = max(path.glob("*.sst"), key=lambda one: one.stat().st_size)
    content = bytearray(file.read_bytes())
    content[42] ^= 4
    file.write_bytes(content)
    errors, is_whole = checked(path)
    assert not is_whole
    assert f"damaged table file in {space}" in errors[0]


def checked(path: Path) -> tuple[list[str], bool]:
    report = Report()
    store = RocksEngine().open_reading(str(path))  # whose cache is empty
    try:
        is_whole = RegionCheck(store, TABLE, RegionInfo("t", 2), report).run()
    finally:
        store.close()
    return [finding.line() for finding in report.findings], is_whole
