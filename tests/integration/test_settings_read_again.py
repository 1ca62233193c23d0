"""SIGHUP to a store with a settings file: one process, and a master with servers."""

from __future__ import annotations

import http.client
import os
import signal
from pathlib import Path

import pytest

from columnar.client import Connection
from columnar.client.cluster import ClusterAdmin
from columnar.client.errors import IllegalArgument
from tests.support.cluster_process import ClusterProcess
from tests.support.readme_blocks import await_that
from tests.support.standalone_store import WAIT_S

PAGE = "https://app.example"
BROKEN = '[standalone]\nslow-ms = "soon"\n'


class Settings:
    """A settings file and the log of the store that has it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "columnar.toml"
        self.write(slow_ms=60_000)

    def write(self, *, slow_ms: int, extra: str = "") -> None:
        self.path.write_text(f"[standalone]\nslow-ms = {slow_ms}\n{extra}")

    def read_again(self, store: ClusterProcess, lines: int = 1) -> list[str]:
        """Send SIGHUP; return the lines of the log that say what it did."""
        before = len(self._said(store))
        os.kill(store.pid, signal.SIGHUP)
        await_that(lambda: len(self._said(store)) >= before + lines, WAIT_S, store.log.read_text)
        return self._said(store)[before:]

    def _said(self, store: ClusterProcess) -> list[str]:
        return [line for line in store.log.read_text().splitlines() if " columnar.settings: " in line]


def answer_to_a_page(port: int) -> int:
    """The status of a request that a page of PAGE sends to a port."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_S)
    connection.request("POST", "/", b"\x80\x01\x00\x01", {"Origin": PAGE, "Content-Type": "application/x-thrift"})
    status = connection.getresponse().status
    connection.close()
    return status


def is_slow(store: ClusterProcess, port: int) -> bool:
    """Return whether the server at the port logs a call that takes some milliseconds."""
    before = store.log.read_text().count("slow request: mutateRows")
    connection = Connection("127.0.0.1", port, timeout=60_000)
    with connection.table("t").batch() as batch:
        for n in range(500):
            batch.put(b"%d" % n, {b"f:a": b"x" * 100})
    connection.close()
    return store.log.read_text().count("slow request: mutateRows") > before


@pytest.mark.parametrize("servers", [1, 2])
def test_a_changed_file_is_taken_by_every_port_and_a_broken_one_by_none(servers: int, tmp_path: Path) -> None:
    settings = Settings(tmp_path)
    with ClusterProcess(tmp_path / "data", servers, "--config", str(settings.path)) as store:
        connection = Connection("127.0.0.1", store.port, timeout=60_000)
        connection.create_table("t", {"f": {}})
        found = ClusterAdmin(connection).servers().servers
        ports = {store.port, *(int(one.address.rpartition(":")[2]) for one in found)}
        connection.close()
        assert not any(is_slow(store, port) for port in ports)
        assert {answer_to_a_page(port) for port in ports} == {403}

        settings.path.write_text(BROKEN)
        (line,) = settings.read_again(store)
        assert "ERROR" in line
        assert f"{settings.path}:2: [standalone] slow-ms: this must be an integer, and is a text" in line
        assert not is_slow(store, store.port)

        changed = f'allow-origin = ["{PAGE}"]\nlog-level = "error"\ntrigger-modules = ["m"]\nport = 1\n'
        settings.write(slow_ms=1, extra=changed)
        taken, waiting = settings.read_again(store, lines=2)
        for said in (
            "slow-ms 1 (before: 60000)",
            f'allow-origin ["{PAGE}"] (before: [])',
            'log-level "error" (before: "info")',
        ):
            assert said in taken
        assert waiting.endswith("needs a restart: trigger-modules"), "the port is a flag"
        settings.write(slow_ms=1, extra=changed.replace("error", "warning"))
        assert 'log-level "warning" (before: "error")' in settings.read_again(store, lines=2)[0]
        for port in ports:
            await_that(lambda port=port: is_slow(store, port), WAIT_S, store.log.read_text)  # type: ignore[misc]
            await_that(lambda port=port: answer_to_a_page(port) != 403, WAIT_S, store.log.read_text)  # type: ignore[misc]

        connection = Connection("127.0.0.1", store.port, timeout=60_000)
        admin = ClusterAdmin(connection)
        processes = set(admin.log_levels())
        assert {one.partition(".")[0] for one in processes} == (
            {"standalone"} if servers == 1 else {"node", "s1", "s2"}
        )
        assert admin.log_levels() == dict.fromkeys(processes, "root=warning")
        changed_levels = "root=warning columnar.flows=error columnar.wire=debug"
        answer = admin.log_levels("columnar.wire=debug", "columnar.flows=error")
        assert answer == admin.log_levels() == dict.fromkeys(processes, changed_levels)
        with pytest.raises(IllegalArgument, match="no level of a logger"):
            admin.log_levels("columnar.wire=warning", "columnar.x=loud")
        answer = admin.log_levels("columnar.wire=default", "root=info")
        assert answer == dict.fromkeys(processes, "root=info columnar.flows=error")
        settings.read_again(store, lines=0)
        await_that(lambda: set(admin.log_levels().values()) == {"root=warning"}, WAIT_S, store.log.read_text)
        connection.close()
        assert store.stop() == 0
