"""``python -m tests.proofs.wiki_notices`` for a few seconds: one kill of the sender, and a fan-out in several steps."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.proofs.wiki_notices import kill_senders, measure_lag
from tests.support.standalone_store import StoreProcess
from wikka_port.notices import fan_out
from wikka_port.pages import Wiki

SEED = int(os.environ.get("COLUMNAR_SEED", "20261129"))


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # of the mail server, whose client was killed
def test_each_watcher_is_notified_and_each_notice_is_mailed(tmp_path: Path) -> None:
    print(f"COLUMNAR_SEED={SEED}")
    with StoreProcess(tmp_path / "data", "--trigger-modules", "wikka_port.triggers") as store:
        wiki = Wiki("127.0.0.1", store.port)
        wiki.prepare()
        watchers = 2 * fan_out.FAN_OUT_STEP + 1
        assert measure_lag(wiki, watchers, 2).notices == watchers
        mailed = kill_senders(wiki, store.port, 1, 2, SEED)
        wiki.store.close()
    assert (mailed.different, mailed.unequal) == (mailed.notices, 0)
