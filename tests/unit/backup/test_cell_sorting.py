"""Sorting in runs equals sorting at once; of two equal cells the later one comes first."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from columnar.backup.cell_blocks import ExportedCell
from columnar.backup.load_inputs import order_of, sorted_cells


@pytest.mark.parametrize("run_bytes", [1, 2_000, 1 << 30])
def test_runs_make_no_difference(tmp_path: Path, run_bytes: int) -> None:
    rng = random.Random(5)
    cells = [
        ExportedCell(
            rng.randbytes(rng.randrange(1, 3)), rng.choice((b"a", b"b")), b"q", rng.randrange(3), None, b"%d" % n
        )
        for n in range(300)
    ]
    found = list(sorted_cells(iter(cells), str(tmp_path), run_bytes=run_bytes))
    cells.reverse()  # the later one of two equal cells comes first
    assert found == sorted(cells, key=order_of)
    assert os.listdir(tmp_path) == []
