"""A random session of thousands of calls as a real HBase 2.6.1 answered it: one process, three servers and three nodes
answer the same.

``python -m tests.differential --record tests/golden/hbase_session.jsonl.gz`` recorded it; docs/differential.md
tells more.  The longer sessions against a running HBase find new differences, this one keeps them from coming back.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.differential.comparison import compare
from tests.differential.endpoint import Endpoint
from tests.differential.recording import Recording
from tests.support.cluster_process import ClusterProcess
from tests.support.deep import cases
from tests.support.many_nodes import PATIENT, NodesCluster

SESSION = Path(__file__).with_name("hbase_session.jsonl.gz")
STORES: dict[str, Callable[[Path], ClusterProcess | NodesCluster]] = {
    "process": lambda folder: ClusterProcess(folder, 1),
    "servers": lambda folder: ClusterProcess(folder, 3),
    "nodes": lambda folder: NodesCluster(folder, 3, *PATIENT),
}


@pytest.mark.parametrize("kind", cases("kinds of stores beside HBase", deep=[*STORES], short=["process", "servers"]))
def test_every_answer_is_the_one_that_hbase_gave(kind: str, tmp_path: Path) -> None:
    recording = Recording(SESSION)
    with STORES[kind](tmp_path / "data") as store:
        ours = Endpoint("127.0.0.1", store.port, recording.head["prefix"].encode())
        found = compare(recording.calls, recording, ours)
        ours.close()
    print(f"seed {recording.head['seed']}, {found.calls.total()} calls, documented: {dict(found.documented)}")
    assert not found.differences, "\n".join(map(str, found.differences))
