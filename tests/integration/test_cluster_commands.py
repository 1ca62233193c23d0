"""Commands at a cluster of real processes: by the port, by the private socket, and refused where they must be."""

from __future__ import annotations

import json
import os
import stat
import urllib.request
from pathlib import Path

import pytest

from columnar.client import ClusterAdmin
from columnar.client.errors import IOError
from columnar.shell import private_connection
from columnar.storage import run_file
from tests.support.cluster_process import ClusterProcess
from tests.support.shell import Shell
from tests.support.stopped_process import stop_process


def states(shell: Shell) -> list[tuple[str, str, int]]:
    return [(one["name"], one["state"], one["regions"]) for one in shell.json("servers")["servers"]]


def test_a_session_at_a_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "data"
    with ClusterProcess(data, 2, "--web-port", "0") as store:
        shell = Shell(f"127.0.0.1:{store.port}")
        shell.out("create", "pages", "text")
        shell.out("put", "pages", "x", "text:a=1")
        (region,) = shell.json("regions", "pages")
        other = "s2" if region["server"] == "s1" else "s1"
        moved = shell.json("move", region["encoded_name"], other)
        assert [(one["from"], one["to"]) for one in moved["moves"]] == [(region["server"], other)]
        assert shell.json("where", "pages", "x")["region"]["server"] == other
        assert shell.out("get", "pages", "x") == "x\ttext:a\t1\n"
        assert shell.out("balancer") == "on\n"
        assert shell.out("shell", "-c", "balancer --json") == '{"balancer": true}\n'

        # By the port alone nobody ends a process, whichever server is asked.
        connection = store.connection()
        for work in (ClusterAdmin(connection).stop, ClusterAdmin(connection).fence, ClusterAdmin(connection).restart):
            with pytest.raises(IOError, match="not everybody who reaches this port may do"):
                work(other)
        assert stat.S_IMODE(os.stat(data / run_file.NAME).st_mode) == 0o600

        # The store's own user finds the private socket, by the folder or by the store's answer.
        shell.out("stop", other, "--data", str(data))
        at = ("--data", str(data))
        assert {one["state"] for one in shell.json("servers", *at)["servers"]} == {"up", "down"}
        assert shell.json("transitions", *at) == []
        assert shell.json("where", "pages", "x", *at)["region"]["state"] == "OPEN"
        assert [one["encoded_name"] for one in shell.json("regions", "pages", *at)] == [region["encoded_name"]]
        assert (other, "down", 0) in states(shell)
        assert shell.out("get", "pages", "x") == "x\ttext:a\t1\n"
        assert shell.json("restart", other)["text"].startswith(f"{other} is up again as {other}.")
        assert shell.out("get", "pages", "x") == "x\ttext:a\t1\n"
        done = [json.loads(line) for line in shell.out("restart", "--rolling", "--json").splitlines()]
        assert [one["done"] for one in done] == [True, True]
        assert "answers nothing any more" in shell.json("fence", "s1", "--confirm", "s1")["text"]

        with urllib.request.urlopen(f"{store.web}tables/pages") as page:
            assert region["encoded_name"] in page.read().decode()
        connection.close()
        assert store.stop() == 0
        assert not (data / run_file.NAME).exists()
        error = shell.error("stop", "s1", "--data", str(data), status=2)
        assert error.startswith(
            f"nobody serves {data} with several servers; start it with 'columnar standalone --servers"
        )

        # A supervisor that hangs is named, and is not waited for.
        store.start()
        pid = store.pid
        monkeypatch.setattr(private_connection, "PING_S", 0.5)
        stop_process(pid)
        error = shell.error("servers", "--data", str(data), status=2)
        assert error.startswith(f"the supervisor (process {pid}) does not answer within 0.5 s; end it with 'kill -9 ")

        # After a kill the file stays, and nobody is behind it.
        store.kill()
        error = shell.error("restart", "--rolling", "--data", str(data), status=2)
        assert error.startswith(f"process {pid} does not serve {data} any more; start it with")
