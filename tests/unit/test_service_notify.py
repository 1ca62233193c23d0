"""Notices to a service manager: a fake manager's socket, and a store that is started as systemd starts it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from columnar.runtime.service_notify import UNMANAGED, ServiceNotifier
from tests.support.cluster_process import children
from tests.support.standalone_store import ROOT

WAIT_S = 60.0


class Manager:
    def __init__(self, address: str) -> None:
        self.address = address
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address.replace("@", "\0", 1) if address.startswith("@") else address)
        self.socket.settimeout(WAIT_S)

    def receive(self) -> dict[str, str]:
        return dict(line.split("=", 1) for line in self.socket.recv(4_096).decode().splitlines())

    def receive_other_than_beats(self) -> dict[str, str]:
        while (found := self.receive()) == {"WATCHDOG": "1"}:
            pass
        return found


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Manager]:
    name = f"@columnar-test-{os.getpid()}-{id(tmp_path)}" if request.param == "abstract" else str(tmp_path / "notify")
    made = Manager(name)
    yield made
    made.socket.close()


def test_notices_are_those_of_sd_notify(manager: Manager) -> None:
    service = ServiceNotifier(manager.address)
    service.report_ready("serves")
    assert manager.receive() == {"READY": "1", "STATUS": "serves"}
    before = time.monotonic_ns() // 1_000
    service.report_reloading()
    found = manager.receive()
    assert found.keys() == {"RELOADING", "MONOTONIC_USEC"}
    assert before <= int(found["MONOTONIC_USEC"]) <= time.monotonic_ns() // 1_000
    service.report_stopping()
    assert manager.receive()["STOPPING"] == "1"
    service.report_ready("late")  # of a reload that a stop has interrupted
    manager.socket.settimeout(0.0)
    with pytest.raises(BlockingIOError):
        manager.receive()


def test_the_watchdog_is_notified_by_the_loop_and_only_while_that_runs(manager: Manager) -> None:
    manager.socket.setblocking(False)

    async def run() -> None:
        loop = asyncio.get_running_loop()
        service = ServiceNotifier(manager.address, watchdog_s=0.06)
        service.begin_watchdog()
        for _ in range(3):
            assert await asyncio.wait_for(loop.sock_recv(manager.socket, 100), WAIT_S) == b"WATCHDOG=1"
        manager.socket.settimeout(0.2)  # ten beats
        with pytest.raises(TimeoutError):
            manager.socket.recv(100)  # in which the loop is stuck
        manager.socket.setblocking(False)
        assert await asyncio.wait_for(loop.sock_recv(manager.socket, 100), WAIT_S) == b"WATCHDOG=1"
        service.end_watchdog()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("environment", "watchdog_s"),
    [
        ({"NOTIFY_SOCKET": "/run/x", "WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "12"}, 30.0),
        ({"NOTIFY_SOCKET": "/run/x", "WATCHDOG_USEC": "30000000"}, 30.0),
        ({"NOTIFY_SOCKET": "/run/x", "WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "13"}, 0.0),
        ({"NOTIFY_SOCKET": "/run/x", "WATCHDOG_USEC": "soon"}, 0.0),
        ({"NOTIFY_SOCKET": "vsock:2:1", "WATCHDOG_USEC": "30000000"}, 0.0),
        ({}, 0.0),
    ],
)
def test_the_variables_are_of_this_process_and_of_no_child(environment: dict[str, str], watchdog_s: float) -> None:
    left = {**environment, "PATH": "/bin"}
    service = ServiceNotifier.taken_from(left, 12)
    assert left == {"PATH": "/bin"}
    assert service._watchdog_s == watchdog_s
    assert bool(service._address) == (environment.get("NOTIFY_SOCKET") == "/run/x")


def test_without_a_manager_and_with_one_that_has_gone_nothing_is_raised(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    UNMANAGED.report_ready("x")
    UNMANAGED.report_reloading()
    assert caplog.text == ""
    ServiceNotifier(str(tmp_path / "gone")).report_ready("x")
    assert "does not get READY=1: No such file or directory" in caplog.text


def test_a_store_notifies_its_manager_and_its_servers_do_not(tmp_path: Path) -> None:
    manager = Manager(str(tmp_path / "notify"))
    file = tmp_path / "columnar.toml"
    file.write_text("[standalone]\nslow-ms = 5\n")
    words = [
        "--config",
        str(file),
        "--data",
        str(tmp_path / "data"),
        "--port",
        "0",
        "--web-port",
        "-1",
        "--servers",
        "2",
    ]
    environment = {**os.environ, "NOTIFY_SOCKET": manager.address, "WATCHDOG_USEC": "2000000"}
    with subprocess.Popen(
        [sys.executable, "-m", "columnar", "standalone", *words],
        cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as store:  # fmt: skip
        assert manager.receive() == {"READY": "1", "STATUS": "serves"}, "nothing before the store serves"
        assert store.stdout is not None
        assert store.stdout.readline().startswith(b"columnar ready "), "and no notice before the ready line"
        assert manager.receive() == {"WATCHDOG": "1"}
        for child in children(store.pid):
            assert b"NOTIFY_SOCKET" not in Path(f"/proc/{child}/environ").read_bytes()
        store.send_signal(signal.SIGHUP)
        assert manager.receive_other_than_beats().keys() == {"RELOADING", "MONOTONIC_USEC"}
        assert manager.receive_other_than_beats()["READY"] == "1"
        store.terminate()
        assert manager.receive_other_than_beats()["STOPPING"] == "1"
        assert store.wait(WAIT_S) == 0
    manager.socket.close()
