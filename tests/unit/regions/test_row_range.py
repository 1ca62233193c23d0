"""Rows outside a range go, those inside stay with their older versions, whatever bytes they begin with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from columnar.model.region_info import RegionInfo
from columnar.model.schema import Family, make_table
from columnar.regions.read.family_view import views_of
from columnar.regions.region import spaces_of
from columnar.regions.spaces import clip
from columnar.regions.write.column_draft import VERSIONS_SPACE
from columnar.storage.layout import cell_key, split_cell_key, split_version_key, version_key
from columnar.storage.memory import MemoryEngine
from columnar.storage.rocks import RocksEngine

TABLE = make_table("t", [Family("a"), Family("b", max_versions=3), Family("c", max_versions=2)])
ROWS = [b"\x00", b"\x00\x01", b"a", b"a\x00", b"a\x00\xff", b"b", b"b\xff", b"\xff", b"\xff" * 300]


@pytest.mark.parametrize("engine", [MemoryEngine(), RocksEngine()], ids=["memory", "rocks"])
@pytest.mark.parametrize(
    ("start", "end"), [(b"", b""), (b"a", b""), (b"", b"a\x00"), (b"a\x00", b"b\xff"), (b"\x00\x01", b"\x00\x02")]
)
def test_clipped(engine: Any, tmp_path: Path, start: bytes, end: bytes) -> None:
    store, views, info = (
        engine.open_store(str(tmp_path / "s"), spaces_of(TABLE)),
        views_of(TABLE),
        RegionInfo("t", 1, start, end),
    )
    batch = store.batch()
    batch.put("log", b"k", b"stays")
    for row in ROWS:
        for view in views.values():
            batch.put(view.space, cell_key(row, b"q"), b"v")
            batch.put(VERSIONS_SPACE, version_key(view.number, cell_key(row, b"q"), 7), b"v")
    store.write_batch(batch)
    clip(store, views, info)
    expected = [row for row in ROWS if info.contains_row(row)]
    for view in views.values():
        assert [split_cell_key(key)[0] for key, _ in store.scan(view.space, b"", None)] == expected
    older = [split_cell_key(split_version_key(key)[0])[0] for key, _ in store.scan(VERSIONS_SPACE, b"", None)]
    assert older == expected * len(views)
    assert store.get("log", b"k") == b"stays"
    store.close()
