"""A data folder that does not answer: everybody hears which one, and no server is killed."""

from __future__ import annotations

import threading
import time
import urllib.request
from pathlib import Path

import pytest

from columnar.master.liveness import SILENT_MS, STUCK_MS
from tests.support.cluster_process import ClusterProcess
from tests.support.failing_disk import HELD, FailingStore, library
from tests.support.readme_blocks import await_that
from tests.support.shell import Shell
from tests.support.standalone_store import WAIT_S

pytestmark = pytest.mark.skipif(library() is None, reason="no C compiler: the disk cannot be held")

ANSWER_S = 2.0  # of the page and the command, beside what the machine's load takes
HELD_S = (STUCK_MS + 2 * SILENT_MS) / 1000  # both counts would be over by then


class HeldCluster(FailingStore, ClusterProcess):
    """Supervisor and servers meet the same disk."""


def test_a_folder_that_stalls_costs_no_server_and_no_answer(tmp_path: Path) -> None:
    with HeldCluster(tmp_path / "data", 2, "--web-port", "0") as store:
        shell, at = Shell(f"127.0.0.1:{store.port}"), ("--data", str(tmp_path / "data"))
        shell.out("balancer", "off")  # a region that is moving when the folder stalls has no server meanwhile
        shell.out("create", "pages", "text")
        shell.out("put", "pages", "x", "text:a=1")

        def page(name: str) -> str:
            with urllib.request.urlopen(f"{store.web}{name}", timeout=WAIT_S) as found:
                return str(found.read().decode())

        def remarks() -> list[str]:
            return [str(one) for one in shell.json("servers", *at)["remarks"]]

        before = [(one["name"], one["incarnation"]) for one in shell.json("servers", *at)["servers"]]
        clients = [store.connection() for _ in range(4)]
        for one in clients:
            # A server without a link to the owner cannot open one while the owner waits for its disk: it refuses the
            # call after its time for routes, and nothing is done.  A link that is open carries the call.
            assert one.table(b"pages").row(b"x") == {b"text:a": b"1"}
        makers = [
            store.connection() for _ in range(2)
        ]  # of each server one: that without the region reaches the master
        written = [
            threading.Thread(target=one.table(b"pages").put, args=(b"r%d" % n, {b"text:a": b"%d" % n}))
            for n, one in enumerate(clients)
        ]
        made = [
            threading.Thread(target=one.create_table, args=(b"later-%d" % n, {"text": {}}))
            for n, one in enumerate(makers)
        ]
        store.fail(HELD)
        held_s = time.monotonic()
        for one in written:
            one.start()
        await_that(lambda: any("has not answered" in one for one in remarks()), WAIT_S, store.log.read_text)
        for one in made:
            one.start()  # it waits for the folder, and the supervisor does not
        slowest_s = 0.0
        while time.monotonic() - held_s < HELD_S:
            begun_s = time.monotonic()
            assert any(f"the data folder {tmp_path / 'data'} has not answered for" in one for one in remarks())
            assert "has not answered for" in page("servers")
            assert "columnar_disk_free_bytes" in page("metrics")
            slowest_s = max(slowest_s, time.monotonic() - begun_s)
            threading.Event().wait(0.5)
        assert slowest_s < 3 * ANSWER_S
        store.mend()
        for thread in (*written, *made):
            thread.join(WAIT_S)
            assert not thread.is_alive()
        await_that(lambda: remarks() == [], WAIT_S, store.log.read_text)
        assert [(one["name"], one["incarnation"]) for one in shell.json("servers", *at)["servers"]] == before
        assert [shell.out("get", "pages", f"r{n}") for n in range(4)] == [f"r{n}\ttext:a\t{n}\n" for n in range(4)]
        assert {b"later-0", b"later-1"} <= set(makers[0].tables())
        for client in (*clients, *makers):
            client.close()
    log = store.log.read_text(encoding="utf-8")
    assert " is killed: " not in log
    assert "answers again after" in log
