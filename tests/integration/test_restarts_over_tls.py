"""Servers are restarted through a port with client certificates, by whichever of them has the connection."""

from __future__ import annotations

import json
from pathlib import Path

from columnar.storage import run_file
from tests.support.certificates import Authority
from tests.support.cluster_process import ClusterProcess
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
