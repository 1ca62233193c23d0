"""Servers, also of nodes, are restarted through a port with client certificates, by any that has the connection."""

from __future__ import annotations

import json
import ssl
from pathlib import Path
from urllib.request import urlopen

from columnar.storage import run_file
from tests.support.certificates import Authority
from tests.support.cluster_process import ClusterProcess
from tests.support.many_nodes import in_new_interpreters, many_nodes
from tests.support.shell import Shell


def test_a_rolling_restart_and_a_stop_come_to_their_ends(tmp_path: Path) -> None:
    data = tmp_path / "data"
    ours = Authority(tmp_path, "ours")
    own, client = ours.sign("store"), ours.sign("client")
    flags = ["--tls-cert", own.cert, "--tls-key", own.key, "--tls-client-ca", ours.ca]
    mine = ["--tls-ca", ours.ca, "--tls-client-cert", client.cert, "--tls-client-key", client.key]
    with ClusterProcess(data, 2, *flags) as store:
        shell = Shell(f"127.0.0.1:{store.port}")
        (data / run_file.NAME).unlink()  # as from another machine

        last = {one["name"]: one["incarnation"] for one in shell.json("servers", *mine)["servers"]}

        def states() -> list[tuple[str, str, bool]]:
            found = shell.json("servers", *mine)["servers"]
            return [(one["name"], one["state"], one["incarnation"] > last[one["name"]]) for one in found]

        shell.out("create", "pages", "text", *mine)
        shell.out("put", "pages", "x", "text:a=1", *mine)
        done = [json.loads(line) for line in shell.out("restart", "--rolling", "--json", *mine).splitlines()]
        assert [(one["done"], one["text"][:12]) for one in done] == [(True, "s1 is up aga"), (True, "s2 is up aga")]
        assert states() == [("s1", "up", True), ("s2", "up", True)]
        for name in ("s1", "s2"):
            shell.out("stop", name, *mine)
            assert (name, "down", True) in states()
            shell.out("restart", name, *mine)
            assert (name, "up", True) in states()
        assert shell.out("get", "pages", "x", *mine) == "x\ttext:a\t1\n"
        handed = [line for line in store.log.read_text().splitlines() if "hands over: " in line]
        assert len(handed) == 4
        assert all("lost: 0, and 0 open scanners" in line for line in handed), handed
        assert store.stop() == 0


def test_nodes_answer_forward_and_restart_over_tls(tmp_path: Path) -> None:
    ours, theirs = Authority(tmp_path, "ours"), Authority(tmp_path, "theirs")
    own, client, stranger = ours.sign("store"), ours.sign("client"), theirs.sign("client")
    flags = ["--tls-cert", own.cert, "--tls-key", own.key, "--tls-client-ca", ours.ca]
    mine = ["--tls-ca", ours.ca, "--tls-client-cert", client.cert, "--tls-client-key", client.key]
    others = ["--tls-ca", ours.ca, "--tls-client-cert", stranger.cert, "--tls-client-key", stranger.key]
    (tmp_path / "nodes").mkdir()
    with many_nodes(tmp_path / "nodes", *flags, count=2, prepare=in_new_interpreters) as cluster:
        run_files = list(cluster.data.rglob(run_file.NAME))
        assert run_files
        for file in run_files:
            file.unlink()  # as from another machine
        shells = [Shell(f"{node.host}:{node.port}") for node in cluster.nodes]
        shells[0].out("create", "pages", "text", "--split", "m", *mine)
        for shell, other in (shells, shells[::-1]):
            for row in ("a", "z"):
                shell.out("put", "pages", row, f"text:a={row}", *mine)
                assert other.out("get", "pages", row, *mine) == f"{row}\ttext:a\t{row}\n"
            for words in (others, ["--tls-ca", ours.ca]):  # a certificate of another authority, and none
                refused = shell("get", "pages", "a", *words)
                assert refused.exit_code == 2
                assert "certificate" in refused.stderr, refused.stderr
        context = ssl.create_default_context(cafile=ours.ca)
        context.load_cert_chain(client.cert, client.key)
        for node in cluster.nodes:
            with urlopen(f"https://localhost:{node.web_port}/ready", context=context) as page:
                assert page.read() == b"ready\n"
        last = {one["name"]: one["incarnation"] for one in shells[0].json("servers", *mine)["servers"]}
        done = [json.loads(line) for line in shells[1].out("restart", "--rolling", "--json", *mine).splitlines()]
        assert all(one["done"] for one in done), done
        servers = shells[0].json("servers", *mine)["servers"]
        assert all(one["state"] == "up" and one["incarnation"] > last[one["name"]] for one in servers)
        assert shells[1].out("get", "pages", "z", *mine) == "z\ttext:a\tz\n"
