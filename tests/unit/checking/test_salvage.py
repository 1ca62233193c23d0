"""What is readable around damaged blocks, wherever they stand; nothing is made up."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from columnar.checking.salvage import salvage
from columnar.model.schema import Family, make_table
from columnar.regions.region import spaces_of
from columnar.storage.layout import cell_key, pack_cell, version_key
from columnar.storage.rocks import RocksEngine

TABLE = make_table("t", [Family("f", max_versions=2)])
NUMBER = TABLE.families[0].number
ROWS = 2_000


def row(n: int) -> bytes:
    return b"row%06d" % n


@pytest.mark.parametrize("damages", [(0.5,), (0.0,), (0.2, 0.25, 0.8), (0.97,)])
def test_blocks_are_lost_and_no_more(tmp_path: Path, damages: tuple[float, ...]) -> None:
    engine, path = RocksEngine(), str(tmp_path / "region")
    store = engine.open_store(path, spaces_of(TABLE))
    rng = random.Random(3)
    batch = store.batch()
    held = {}
    for n in range(ROWS):
        key = cell_key(row(n), b"q")
        held[key] = pack_cell(9, 1, rng.randbytes(200))
        batch.put("f:f", key, held[key])
        batch.put("versions", version_key(NUMBER, key, 5), pack_cell(5, 1, b"older"))
    store.write_batch(batch)
    store.files.flush()
    store.close()
    file = max(tmp_path.glob("region/*.sst"), key=lambda one: one.stat().st_size)
    content = bytearray(file.read_bytes())
    data_bytes = ROWS * 220
    for place in damages:
        content[int(data_bytes * place) + 50] ^= 0xFF
    file.write_bytes(content)
    found = salvage(engine, path, str(tmp_path / "new"), TABLE, can_be_opened=True)
    new = engine.open_reading(str(tmp_path / "new"))
    saved = dict(new.scan("f:f", b"", None))
    assert saved.items() <= held.items(), "nothing is made up"
    lost_blocks = len(damages)
    assert len(held) - len(saved) <= lost_blocks * 90, "a block of 16 KB holds some 70 of them"
    assert 1 <= len(found.lost) <= lost_blocks
    missing = sorted(held.keys() - saved.keys())
    for gap in found.lost:
        assert gap.space == "f:f"
        assert any(gap.after < key and (gap.to is None or key < gap.to) for key in missing)
    assert all(any(g.after < key and (g.to is None or key < g.to) for g in found.lost) for key in missing)
    older = {key[2:-10] for key, _ in new.scan("versions", b"", None)}
    assert older == saved.keys(), "older versions go with their newest"
    new.close()
    assert sorted(os.listdir(tmp_path)) == ["new", "region"]
