"""The ports that tests choose: no two processes get the same one, even if neither listens yet."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

from tests.support.ports import FIRST, free_port

TAKE = "import sys; from pathlib import Path; from tests.support.ports import free_port; "
TAKE += "print(*(free_port(Path(sys.argv[1])) for _ in range(60)))"


def test_processes_at_once_get_different_ports(tmp_path: Path) -> None:
    words = [sys.executable, "-c", TAKE, str(tmp_path / "next")]
    takers = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    ports = [port for taker in takers for port in taker.communicate(timeout=60)[0].split()]
    assert len(ports) == 240
    assert len(set(ports)) == len(ports)


def test_a_port_that_is_listened_on_is_passed_over(tmp_path: Path) -> None:
    turns = tmp_path / "next"
    taken = free_port(turns)
    with socket.create_server(("127.0.0.1", taken)):
        turns.write_bytes(b"%d" % (taken - FIRST))
        assert free_port(turns) > taken
