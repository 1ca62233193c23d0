"""A random session of thousands of calls as a real HBase 2.6.1 answered it, asked of one process and of three servers.

``python -m tests.differential --record tests/golden/hbase_session.jsonl.gz`` recorded it; docs/differential.md
tells more.  The longer sessions against a running HBase find new differences, this one keeps them from coming back.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.differential.comparison import compare
from tests.differential.endpoint import Endpoint
from tests.differential.recording import Recording
from tests.support.cluster_process import ClusterProcess

SESSION = Path(__file__).with_name("hbase_session.jsonl.gz")


@pytest.mark.parametrize("servers", [1, 3])
def test_every_answer_is_the_one_that_hbase_gave(servers: int, tmp_path: Path) -> None:
    recording = Recording(SESSION)
    with ClusterProcess(tmp_path / "data", servers) as store:
        ours = Endpoint("127.0.0.1", store.port, recording.head["prefix"].encode())
        found = compare(recording.calls, recording, ours)
        ours.close()
    print(f"seed {recording.head['seed']}, {found.calls.total()} calls, documented: {dict(found.documented)}")
    assert not found.differences, "\n".join(map(str, found.differences))
