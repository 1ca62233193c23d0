"""The proofs for some seconds each, with kills; ``python -m tests.proofs --minutes 30`` is the long form.

The same over several servers, whose long form has ``--servers 3``.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from columnar.client import Put
from tests.proofs.asking import Lost, StoreClient
from tests.proofs.battle import PROOFS, fight
from tests.proofs.cluster_asking import ClusterClient
from tests.proofs.grounds import LOGGED, PLAIN, Ground
from tests.proofs.killed_cluster import KilledCluster, why_killed
from tests.proofs.killed_store import KilledStore, StoreBroken
from tests.proofs.row_semantics import Change, Read
from tests.proofs.verdict import Plan
from tests.support.cluster_process import gone, until
from tests.support.deep import IS_DEEP, cases, seeds
from tests.support.standalone_store import WAIT_S

SEED = int(os.environ.get("COLUMNAR_SEED", "20261121"))
SECONDS = float(os.environ.get("COLUMNAR_PROOF_SECONDS") or seeds("seconds of a proof", deep=2.0, short=1.2))
OVER_SERVERS = [
    ("linked-list", PLAIN, False),
    ("acid", PLAIN, False),
    ("linearizable", LOGGED, False),
    ("linearizable", PLAIN, True),
    ("groups", PROOFS["groups"].grounds[1], False),
    ("groups", PROOFS["groups"].grounds[0], True),
]
KILLS = 3  # not more: on a busy machine a start takes seconds, and a trigger would not come to its work


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # sockets whose server was shot
@pytest.mark.parametrize("name", PROOFS)
def test_it_holds(name: str, tmp_path: Path) -> None:
    print(f"COLUMNAR_SEED={SEED}")
    plan = Plan(SECONDS, 3, SEED, kill_every_s=SECONDS / 2, upheaval_pause_s=0.1, most_kills=KILLS)
    verdict = fight(name, plan, tmp_path, lambda _: None)
    print(verdict.counts, verdict.against)
    assert verdict.problems == []
    assert any(how.startswith(("kill", "SIGTERM")) for how in verdict.against)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize(
    ("name", "ground", "routing"), cases("proofs over three servers", deep=OVER_SERVERS, short=OVER_SERVERS[:4])
)
def test_it_holds_over_three_servers(
    name: str, ground: Ground, *, routing: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each proof runs with one kind of table, as a start takes longer and writes take the paths of one process."""
    print(f"COLUMNAR_SEED={SEED}")
    monkeypatch.setitem(PROOFS, name, replace(PROOFS[name], grounds=(ground,)))
    plan = Plan(
        SECONDS, 3, SEED, kill_every_s=SECONDS / 3, upheaval_pause_s=0.1, most_kills=KILLS, servers=3, routing=routing
    )
    verdict = fight(name, plan, tmp_path, lambda _: None)
    print(verdict.counts, verdict.against)
    assert verdict.problems == []
    assert any(how.startswith("kill -9") for how in verdict.against)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.skipif(not IS_DEEP, reason="a kill of a node costs its lease")
@pytest.mark.parametrize("name", PROOFS)
def test_it_holds_over_three_nodes(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    print(f"COLUMNAR_SEED={SEED}")
    proof = PROOFS[name]
    ground = proof.grounds[0] if name == "groups" else LOGGED if name == "linearizable" else PLAIN
    monkeypatch.setitem(PROOFS, name, replace(proof, grounds=(ground,)))
    plan = Plan(15.0, 3, SEED, kill_every_s=3.0, upheaval_pause_s=0.2, nodes=3)
    verdict = fight(name, plan, tmp_path, lambda _: None)
    print(verdict.counts, verdict.against)
    assert verdict.problems == []
    assert any(how.startswith("kill -9") for how in verdict.against)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_server_that_ends_by_itself_is_no_kill_of_ours(tmp_path: Path) -> None:
    with KilledCluster(tmp_path / "data", Plan(0, 1, SEED, kill_every_s=0, servers=2)) as store:
        client = ClusterClient(store, b"t")
        client.ask(lambda connection: connection.create_table(b"t", {"f": {}}))
        client.perform(b"r", Change((Put(b"f:x", b"1"),)))
        for server in store.servers():
            os.kill(server, signal.SIGKILL)
        with pytest.raises(StoreBroken, match="nobody had killed it"):
            client.perform(b"r", Read())


def test_the_supervisor_says_whom_it_killed() -> None:
    log = (
        "server s1.3 is killed: it has said nothing for 3.2 s\n"
        "server s1.3 (process 71) has ended: by SIGKILL\n"
        "server s2.4 (process 72) has ended: by SIGKILL\n"
    )
    assert why_killed(log, 71) == "it has said nothing for N s"
    assert why_killed(log, 72) == why_killed(log, 73) == ""


def test_a_process_whose_first_thread_has_ended_is_there_until_the_others_have() -> None:
    """Such a process is shown as a zombie, and keeps its files open."""
    script = (
        "import ctypes, sys, threading\n"
        "threading.Thread(target=sys.stdin.read).start()\n"
        "print('begun', flush=True)\n"
        "ctypes.CDLL(None).pthread_exit(None)"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        until(lambda: Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z")
        assert not gone([process.pid], 0)
        process.kill()
        assert gone([process.pid], WAIT_S), "nobody has reaped it as yet"


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
