"""Commands that ask the supervisor: each has its answer while no server is up, and none waits for one that hangs."""

from __future__ import annotations

import copy
import socket
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from columnar.cluster.method_routing import METHOD_ROUTES, MethodRoute
from columnar.cluster.row_forms import THRIFT1
from columnar.roles.master_service import CATALOGUE_READ_METHODS
from columnar.shell import connecting, private_connection, wrong_port
from columnar.storage import run_file
from columnar.wire.server import WireServer
from tests.support.cluster_store import ClusterStore
from tests.support.ports import free_port
from tests.support.shell import Shell


@dataclass(frozen=True)
class Supervised:
    store: ClusterStore
    data: str
    shell: Shell  # at a port where nobody listens

    def without_servers(self) -> None:
        cluster = self.store.cluster.cluster

        def kill() -> None:
            for server in list(cluster.servers):
                cluster.kill(server)
            cluster.run(cluster.now_ms + 500)

        self.store.serving.do(kill)


@pytest.fixture
def supervised(tmp_path: Path) -> Iterator[Supervised]:
    """A private socket that answers what a master answers, and nothing that servers know."""
    store = ClusterStore(tmp_path / "store")
    serving, data = store.serving, tmp_path / "data"
    data.mkdir()

    def made() -> WireServer:
        store.answer_as(may_end_servers=True)
        service = copy.copy(store.doors.services[THRIFT1])
        ways, handlers = METHOD_ROUTES[THRIFT1], service.handlers.items()
        service.handlers = {
            name: one for name, one in handlers if ways[name] is MethodRoute.MASTER or name in CATALOGUE_READ_METHODS
        }
        return WireServer(service)

    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(data / "control"))
    listening.listen()
    wire = serving.do(made)
    serving.run(wire.serve_privately(listening))
    run_file.write(str(data), run_file.RunFile(4711, "id", str(data / "control")))
    try:
        yield Supervised(store, str(data), Shell(f"127.0.0.1:{free_port()}"))
    finally:
        serving.run(wire.close(0.1))
        store.stop()


def test_every_command_of_a_cluster_is_answered_while_no_server_is_up(supervised: Supervised) -> None:
    supervised.without_servers()
    shell, at = supervised.shell, ("--data", supervised.data)
    found = shell.json("servers", *at)
    assert {one["state"] for one in found["servers"]} == {"down"}
    assert (found["unassigned"], found["remarks"]) == (6, ["no server is up: 6 regions have no owner"])
    said = shell("transitions", *at)
    assert (said.exit_code, said.stderr) == (0, "no server is up: 6 regions have no owner\n")
    assert [line.split("\t")[0] for line in said.stdout.splitlines()] == ["waiting"] * 6
    assert shell.json("decisions", *at)
    regions = shell.json("regions", "pages", *at)
    assert [(one["state"], one["server"]) for one in regions] == [("OFFLINE", "")] * 6
    region = regions[1]["encoded_name"]
    assert shell.out("regions", "pages", *at).splitlines()[1].split("\t")[:4] == [region, "d", "h", "OFFLINE"]
    where = shell.json("where", "pages", "dog", *at)
    assert where["remarks"][0].startswith("no server has owned it for ")
    assert where["triggers"] is None, "servers know of them"

    assert shell.json("balancer", "off", *at)["text"] == "balancer is off"
    assert shell.out("balancer", *at) == "off\n"
    assert shell.json("auto-split", "off", *at)["text"] == "auto-split is off"
    assert "is off" in shell.error("balance", *at)
    assert "no other server is up" in shell.error("drain", "s1", *at)
    assert shell.json("undrain", "s1", *at)["done"]
    assert shell.json("unassign", region, *at)["text"].startswith(f"region {region} of pages is closed")
    assert not shell.json("assign", region, "--dry-run", *at)["done"]
    assert "s1 is not up" in shell.error("move", regions[0]["encoded_name"], "s1", *at)
    assert "s1 is down" in shell.error("fence", "s1", "--confirm", "s1", *at)


def test_a_change_by_the_private_socket(supervised: Supervised) -> None:
    shell, at = supervised.shell, ("--data", supervised.data)
    one = shell.json("regions", "pages", *at)[0]
    target = "s1" if one["server"] != "s1" else "s2"
    assert shell.json("move", one["encoded_name"], target, *at)["done"]
    assert shell.json("where", "pages", "a", *at)["region"]["server"] == target
    assert shell.json("drain", target, "--wait", *at)["regions_left"] == 0


def test_a_supervisor_that_hangs_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes some connections and answers none, and refuses those behind them."""
    monkeypatch.setattr(private_connection, "PING_S", 0.1)
    path, shell = str(tmp_path / "control"), Shell(f"127.0.0.1:{free_port()}")
    run_file.write(str(tmp_path), run_file.RunFile(4711, "id", path))
    with closing(socket.socket(socket.AF_UNIX)) as hanging:
        hanging.bind(path)
        hanging.listen(0)
        for words in (["servers"], ["transitions"], ["drain", "s1"], ["restart", "s1"], ["fence", "s1"]):
            assert shell.error(*words, "--data", str(tmp_path), status=2) == (
                "the supervisor (process 4711) does not answer within 0.1 s; end it with 'kill -9 4711' and start the "
                "store again: no acknowledged write is lost"
            )
    error = shell.error("servers", "--data", str(tmp_path), status=2)
    assert error.startswith(f"process 4711 does not serve {tmp_path} any more; start it with")


def test_a_port_that_keeps_its_connections_leads_to_the_supervisor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connecting, "ANSWER_TIMEOUT_S", 0.2)
    monkeypatch.setattr(wrong_port, "ANSWER_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        assert Shell(address).error("servers", status=2) == (
            f"{address} did not answer within 0.2 s, so the outcome is unknown; 'columnar servers', with --data DIR "
            "where no server is up, and the store's log say what keeps it"
        )
