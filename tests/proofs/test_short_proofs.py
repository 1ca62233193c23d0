"""The three proofs for some seconds each, with kills; ``python -m tests.proofs --minutes 30`` is the long form."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from columnar.client import Put
from tests.proofs.asking import Lost, StoreClient
from tests.proofs.battle import PROOFS, fight
from tests.proofs.killed_store import KilledStore, StoreBroken
from tests.proofs.row_semantics import Change, Read
from tests.proofs.verdict import Plan

SEED = int(os.environ.get("COLUMNAR_SEED", "20261121"))
SECONDS = float(os.environ.get("COLUMNAR_PROOF_SECONDS", "2"))
KILLS = 3  # not more: on a busy machine a start takes seconds, and a trigger would not come to its work


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # sockets whose server was shot
@pytest.mark.parametrize("name", PROOFS)
def test_it_holds(name: str, tmp_path: Path) -> None:
    print(f"COLUMNAR_SEED={SEED}")
    plan = Plan(SECONDS, 3, SEED, kill_every_s=1, upheaval_pause_s=0.1, most_kills=KILLS)
    verdict = fight(name, plan, tmp_path, lambda _: None)
    print(verdict.counts, verdict.against)
    assert verdict.problems == []
    assert any(how.startswith(("kill", "SIGTERM")) for how in verdict.against)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_store_that_ends_by_itself_is_no_kill_of_ours(tmp_path: Path) -> None:
    with KilledStore(tmp_path / "data", Plan(0, 1, SEED, kill_every_s=0)) as store:
        client = StoreClient(store, b"t")
        client.ask(lambda connection: connection.create_table(b"t", {"f": {}}))
        store.settle(store.generation)  # ours: it comes back, with the table
        with pytest.raises(Lost):
            client.perform(b"r", Change((Put(b"f:x", b"1"),)))
        client.perform(b"r", Change((Put(b"f:x", b"2"),)))
        assert client.perform(b"r", Read()) == ((b"f:x", b"2"),)
        os.kill(store.pid, signal.SIGKILL)
        with pytest.raises(StoreBroken, match="nobody had killed it"):
            client.perform(b"r", Read())
