"""``python -m tests.proofs.wiki`` for some seconds: of two servers one is killed in the import, one in the replay.

Of two nodes one is killed in the import, with its server, and started again.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.proofs.wiki import prove
from tests.support.deep import cases

SEED = int(os.environ.get("COLUMNAR_SEED", "20261123"))
DUMP = Path(__file__).parents[1] / "data" / "small-dump.xml"


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # sockets whose server was shot
@pytest.mark.parametrize("nodes", cases("the wiki, on nodes and on servers", deep=(0, 2), short=(0,)))
def test_no_request_fails_and_no_index_differs(tmp_path: Path, nodes: int) -> None:
    print(f"COLUMNAR_SEED={SEED}")
    found = prove((DUMP,), tmp_path, servers=2, nodes=nodes, kills=1, every_s=0.2, rate=20, seconds=3, seed=SEED)
    assert found.wrong == []
    assert found.kills == 2
    assert found.requests > 40
