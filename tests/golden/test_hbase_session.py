"""What a real HBase 2.6.1 answered to a random session of some thousand calls, asked of a real process of ours.

``python -m tests.differential --record tests/golden/hbase_session.jsonl.gz`` recorded it; docs/differential.md
tells more.  The longer sessions against a running HBase find new differences, this one keeps them from coming back.
"""

from __future__ import annotations

from pathlib import Path

from tests.differential.comparison import compare
from tests.differential.endpoint import Endpoint
from tests.differential.recording import Recording
from tests.support.standalone_store import StoreProcess

SESSION = Path(__file__).with_name("hbase_session.jsonl.gz")


def test_every_answer_is_the_one_that_hbase_gave(tmp_path: Path) -> None:
    recording = Recording(SESSION)
    with StoreProcess(tmp_path / "data") as store:
        ours = Endpoint("127.0.0.1", store.port, recording.head["prefix"].encode())
        found = compare(recording.calls, recording, ours)
        ours.close()
    print(f"seed {recording.head['seed']}, {found.calls.total()} calls, documented: {dict(found.documented)}")
    assert not found.differences, "\n".join(map(str, found.differences))
