"""A node that stops while one of its threads waits in a dead mount: it ends, and others have what it acknowledged."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from columnar.runtime.stop_limit import LEFT
from tests.support.many_nodes import WAIT_S, NodeProcess, many_nodes

# A node with short limits, and with a thread that never returns from its folder.
PATCHED = """
import asyncio, os, sys, threading
from columnar.cli import main
from columnar.roles import leased_membership, node, server_processes, store_process

def wait_in_a_dead_mount():
    threading.Event().wait()

start = leased_membership.LeasedMembership.start

async def start_stuck(self):
    await start(self)
    asyncio.get_running_loop().run_in_executor(None, wait_in_a_dead_mount)

def execve(_program, command, _environment):
    sys.exit(store_process.main(command[-1]))

leased_membership.LeasedMembership.start = start_stuck
node.REST_S, server_processes.STOP_S = 1.0, {stop_s}
os.execve = execve  # this process stays as it is
main(prog_name="columnar")
"""
STOP_S = 10.0


@pytest.mark.parametrize("which", [0, 1], ids=["leads", "follows"])
def test_a_node_with_a_stuck_thread_ends(tmp_path: Path, which: int) -> None:
    def prepare(node: NodeProcess) -> None:
        at = node._command.index("-m")
        node._command[at : at + 2] = ["-c", PATCHED.format(stop_s=STOP_S)]

    with many_nodes(tmp_path, count=2, prepare=prepare) as cluster:
        leader = cluster.leader()
        stopping = sorted(cluster.nodes, key=lambda node: node is not leader)[which]
        (other,) = {*cluster.nodes} - {stopping}
        with stopping.connection() as connection:
            connection.create_table("t", {"f": {}}, splits=[b"d", b"h"])
            for row in (b"a", b"e", b"i"):
                connection.table(b"t").put(row, {b"f:q": b"1"})
        family = stopping.family()
        begun_s = time.monotonic()
        stopping.signal(signal.SIGTERM, [stopping.pid])
        assert stopping.has_ended(WAIT_S)
        assert stopping.status == LEFT
        assert time.monotonic() - begun_s > 1.0 + STOP_S / 2, "the servers had their time"
        log = stopping.log.read_text()
        assert "the stop is not over after 11 s, as if the data folder stood still; this process ends" in log
        assert "threading.py" in log.partition("It waits in ")[2]
        assert not any(Path(f"/proc/{pid}/exe").exists() for pid in family), "its servers stopped or died with it"
        with other.connection() as connection:
            assert [row for row, _ in connection.table(b"t").scan()] == [b"a", b"e", b"i"]
        stopping.close_output()
        stopping.begin()
        stopping.await_ready()
