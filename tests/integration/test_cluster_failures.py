"""A region that no server opens, as it cannot or must not, and servers that were replaced: the others serve on."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import urllib.request
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from columnar.client import Connection
from columnar.client.cluster import ClusterAdmin
from columnar.wire.idl import hbase
from tests.support.certificates import Authority, Pair
from tests.support.cluster_process import ClusterProcess
from tests.support.readme_blocks import await_that
from tests.support.shell import Shell
from tests.support.standalone_store import WAIT_S

ROWS = (b"apple", b"melon", b"zebra")


def with_pages(store: ClusterProcess, shell: Shell) -> str:
    """The encoded name of the region of ``melon``, between the two of the other rows."""
    connection = store.connection()
    connection.create_table("pages", {"f": {}}, splits=[b"m", b"n"])
    for row in ROWS:
        connection.table("pages").put(row, {b"f:q": row})
    connection.close()
    encoded: str = shell.json("where", "pages", "melon")["region"]["encoded_name"]
    return encoded


def check_that_it_is_shut(store: ClusterProcess, encoded: str, why: str) -> None:
    for rows in store.rows_of_each():
        with rows:
            assert [rows.get(b"pages", row) for row in ROWS[::2]] == [*ROWS[::2]]
            for call in (
                partial(rows.get, b"pages", b"melon"),
                partial(rows.put, b"pages", b"melon", b"v"),
                partial(rows.client.getRows, b"pages", list(ROWS), {}),
            ):
                with pytest.raises(hbase.IOError, match=f"region {encoded} of pages is not served: {why}"):
                    call()


def check_that_all_serve(store: ClusterProcess) -> None:
    with store.rows() as rows:
        assert [rows.get(b"pages", row) for row in ROWS] == [*ROWS]


def test_a_region_stays_unassigned_over_restarts_and_amid_them_one_process_serves_it(tmp_path: Path) -> None:
    data, why = tmp_path / "data", "a person has unassigned it"
    with ClusterProcess(data, 2) as store:
        shell = Shell(f"127.0.0.1:{store.port}")
        encoded = with_pages(store, shell)
        shell.out("unassign", encoded)
        assert store.stop() == 0
        store.start()
        check_that_it_is_shut(store, encoded, why)
        shell.out("assign", encoded)
        check_that_all_serve(store)
        shell.out("unassign", encoded)
        assert store.stop() == 0
        with ClusterProcess(data, 1, port=store.port) as alone:
            check_that_all_serve(alone)
            assert alone.stop() == 0
        store.start()
        check_that_it_is_shut(store, encoded, why)
        shell.out("assign", encoded)
        check_that_all_serve(store)


def test_a_damaged_region_is_left_closed_and_the_others_go_on(tmp_path: Path) -> None:
    with ClusterProcess(tmp_path / "data", 2, "--web-port", "0") as store:
        shell = Shell(f"127.0.0.1:{store.port}")
        encoded = with_pages(store, shell)
        assert store.stop() == 0
        (manifest,) = (tmp_path / "data" / "regions" / encoded).glob("MANIFEST-*")
        kept = tmp_path / manifest.name
        os.rename(manifest, kept)

        store.start()

        def found() -> Any:
            return shell.json("where", "pages", "melon")

        await_that(lambda: found()["region"]["state"] == "FAILED_OPEN", WAIT_S, lambda: str(found()))
        (said, *_) = found()["remarks"]
        assert said.startswith("it could not be opened by s")
        assert said.endswith(f"; 'columnar assign {encoded}' tries again")
        states = {one["encoded_name"]: one["state"] for one in shell.json("regions", "pages")}
        assert sorted(states.values()) == ["FAILED_OPEN", "OPEN", "OPEN"]
        (shown,) = shell.json("transitions")
        assert (shown["kind"], shown["region"]) == ("failed", encoded)
        for path in ("transitions", "tables/pages"):
            with urllib.request.urlopen(f"{store.web}{path}") as page:
                assert "FAILED_OPEN" in page.read().decode()
        check_that_it_is_shut(store, encoded, "it could not")
        assert "is not served: it could not be opened by s" in shell("status").stderr
        assert "could not be opened: " in shell.error("assign", encoded), "it is tried again, and damaged still"
        assert found()["region"]["state"] == "FAILED_OPEN"

        os.rename(kept, manifest)
        assert json.loads(shell.out("assign", encoded, "--json"))["done"]
        check_that_all_serve(store)
        assert shell.json("transitions") == []


def test_old_connections_spread_over_the_servers_again_after_one_of_them_was_replaced(tmp_path: Path) -> None:
    with ClusterProcess(tmp_path / "data", 2) as store:
        shell = Shell(f"127.0.0.1:{store.port}")
        first = store.connection()
        first.create_table("t", {"f": {}}, splits=[b"m"])
        clients = [store.rows() for _ in range(9)]

        def held() -> list[int]:
            return sorted(one["connections"] for one in shell.json("servers")["servers"] if one["state"] == "up")

        def are_even() -> bool:
            """But for the shell's own one, which comes last."""
            found = held()
            return len(found) == 2 and found[1] - found[0] <= 2

        shell.out("restart", "--rolling")
        await_that(are_even, WAIT_S, lambda: str(held()))
        for n, client in enumerate(clients):
            with client:
                client.put(b"t", b"%d" % n, b"v")
                assert client.get(b"t", b"%d" % n) == b"v"
        assert first.tables() == [b"t"]
        first.close()


def test_a_renewed_certificate_is_that_of_all_ports_and_pages_also_of_a_server_that_starts(tmp_path: Path) -> None:
    old, new = Authority(tmp_path, "old"), Authority(tmp_path, "new")
    cert, key = tmp_path / "store.crt", tmp_path / "store.key"

    def put(pair: Pair) -> None:
        shutil.copy(pair.cert, cert)
        shutil.copy(pair.key, key)

    put(old.sign("store"))
    flags = ("--web-port", "0", "--tls-cert", str(cert), "--tls-key", str(key))
    with ClusterProcess(tmp_path / "data", 2, *flags) as store:
        web = int(store.web.rstrip("/").rpartition(":")[2])

        def speaks(port: int, authority: Authority) -> bool:
            try:
                with socket.create_connection(("127.0.0.1", port), timeout=WAIT_S) as plain:
                    authority.client().context().wrap_socket(plain, server_hostname="127.0.0.1").close()
            except OSError:  # ssl.SSLError among them; the port of a server that died
                return False
            return True

        with closing(Connection("127.0.0.1", store.port, timeout=60_000, tls=old.client())) as early:
            first = ClusterAdmin(early).servers().servers
            ports = [int(one.address.rpartition(":")[2]) for one in first]
            put(new.sign("store"))
            os.kill(store.pid, signal.SIGHUP)
            for port in (*ports, store.port, web):
                await_that(partial(speaks, port, new), WAIT_S, lambda port=port: f"port {port}")  # type: ignore[misc]
                assert not speaks(port, old)
            store.kill_server(0)
            os.kill(store.pid, signal.SIGHUP)  # whatever the next server is about to do, it is not its end
        with closing(Connection("127.0.0.1", store.port, timeout=60_000, tls=new.client())) as later:

            def is_replaced() -> bool:
                found = ClusterAdmin(later).servers().servers
                is_later = max(one.incarnation for one in found) > max(one.incarnation for one in first)
                return is_later and all(one.state == "up" for one in found)

            await_that(is_replaced, WAIT_S, lambda: str(ClusterAdmin(later).servers()))
        assert len(store.servers()) == 2
        assert store.stop() == 0
        ends = re.findall(r"server (s\d\.\d+) \(process \d+\) has ended", store.log.read_text())
        assert len(ends) == 3, "one was killed, and two stopped"
