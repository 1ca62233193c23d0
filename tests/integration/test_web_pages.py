"""The status page, the metrics and the health, over HTTP, of a store that serves."""

from __future__ import annotations

import asyncio
import errno
import logging
import re
import socket
import threading
import time
from collections.abc import Coroutine, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import requests

from columnar.client import Connection
from columnar.client.errors import IOError
from columnar.config import StandaloneConfig
from columnar.errors import HostError
from columnar.model.flow_status import TriggerStatus
from columnar.roles.standalone import Standalone
from columnar.runtime import log_lines
from columnar.version import PYTHON, VERSION, known
from columnar.webui import server as web_server
from columnar.webui.server import WebServer, bind, served_at

WAIT_S = 20
HOSTILE = "<script>alert(1)</script>"


class Served:
    """A store and its page on a loop of their own."""

    def __init__(self, folder: Path) -> None:
        self.trigger_lines: list[TriggerStatus] = []  # what the page is told of triggers
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever)
        self._thread.start()
        self.store, self.web = self.run(self._start(folder))
        self.url = f"http://127.0.0.1:{self.web.port}"

    async def _start(self, folder: Path) -> tuple[Standalone, WebServer]:
        store = Standalone.locked(StandaloneConfig(data=str(folder), port=0, slow_request_ms=0))
        await store.start()
        sources = replace(store.pages(), triggers=lambda: self.trigger_lines)
        web = served_at(bind("127.0.0.1", 0), sources, visitors=store.ports.visitors)
        await web.start()
        return store, web

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(WAIT_S)

    def get(self, path: str, method: str = "GET") -> requests.Response:
        return requests.request(method, self.url + path, timeout=WAIT_S)

    def metrics(self) -> dict[str, float]:
        lines = self.get("/metrics").text.splitlines()
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}

    def close(self) -> None:
        self.run(self.web.stop())
        self.run(self.store.stop())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    served = Served(tmp_path_factory.mktemp("web") / "data")
    connection = Connection("127.0.0.1", served.store.port)
    connection.create_table("pages", {"text": {}}, splits=[b"<m>"])
    connection.table("pages").put(b"a", {b"text:body": b"x" * 1_000})
    with pytest.raises(IOError):
        connection.table("pages").row(b"a", columns=[b"nope"])
    yield served
    connection.close()
    served.close()


def test_the_page_shows_tables_regions_and_requests(served: Served) -> None:
    page = served.get("/")
    assert page.status_code == 200
    for text in ("pages", "&lt;m&gt;", "mutateRows", "enabled", "requests per second", 'content="5"'):
        assert text in page.text
    assert "<m>" not in page.text


def test_the_page_escapes_what_triggers_say(served: Served) -> None:
    served.trigger_lines = [
        TriggerStatus(
            "t-one", "pages", "m:f", "blocked", 12_345, 6.78, 1, 2, HOSTILE, 1_234.56, 777, "slow-ones", "rate=10/s",
            True,
        )
    ]  # fmt: skip
    page = served.get("/").text
    assert HOSTILE not in page
    texts = (
        "t-one",
        "blocked",
        "12,345",
        "6.8 s",
        "&lt;script&gt;",
        "1,234.6/s",
        "777",
        "slow-ones",
        "rate=10/s",
        "16 hops",
    )
    for text in texts:
        assert text in page
    metrics = served.metrics()
    assert metrics['columnar_trigger_lag_changes{table="pages",trigger="t-one"}'] == 12_345
    assert metrics['columnar_trigger_lag_seconds{table="pages",trigger="t-one"}'] == 6.78
    assert metrics['columnar_trigger_running{table="pages",trigger="t-one"}'] == 0


@pytest.mark.parametrize("path", ["/", "/metrics", "/health", "/style.css", "/icon.svg", "/nope"])
def test_no_answer_allows_scripts_frames_or_foreign_content(served: Served, path: str) -> None:
    headers = served.get(path).headers
    assert headers["Content-Security-Policy"].startswith("default-src 'none'; style-src 'self'")
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"


def test_the_page_keeps_to_its_own_policy(served: Served) -> None:
    page = served.get("/").text
    assert not re.search(r"<script|\sstyle=|\son\w+=", page)
    linked = set(re.findall(r'(?:href|src)="(/[^"]*)"', page))
    assert {path for path in linked if not path.startswith("/?table=")} == {
        "/icon.svg",
        "/style.css",
        "/metrics",
        "/health",
        "/where",
        "/servers",
        "/transitions",
        "/decisions",
        "/requests",
        "/flows",
    }
    assert all(served.get(path).status_code == 200 for path in linked)


def test_a_length_that_is_said_in_two_ways_is_refused_and_what_follows_is_no_request(served: Served) -> None:
    """RFC 9112, 6.1: a proxy may believe the other one."""
    head = b"GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
    with socket.create_connection(("127.0.0.1", served.web.port), timeout=WAIT_S) as connection:
        connection.sendall(head + b"0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answer = b"".join(iter(lambda: connection.recv(65_536), b""))
    assert answer.startswith(b"HTTP/1.1 400")
    assert answer.count(b"HTTP/1.1") == 1
    assert b"not both" in answer


def test_metrics_count_what_was_done(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = served.metrics()
    assert metrics['columnar_requests_total{method="mutateRows",outcome="ok"}'] == 1
    assert metrics['columnar_requests_total{method="getRowWithColumns",outcome="NoSuchColumnFamily"}'] == 1
    assert metrics['columnar_request_seconds_count{method="mutateRows"}'] == 1
    assert metrics['columnar_request_seconds_bucket{le="+Inf",method="mutateRows"}'] == 1
    assert metrics['columnar_received_bytes_total{method="mutateRows"}'] > 1_000
    assert metrics['columnar_sent_bytes_total{method="mutateRows"}'] > 0
    assert metrics["columnar_connections"] == 1
    assert metrics['columnar_table_regions{table="pages"}'] == 2
    assert metrics['columnar_table_bytes{table="pages"}'] > 1_000
    assert metrics["columnar_open_regions"] >= 1
    assert metrics["columnar_open_scanners"] == 0
    assert metrics["columnar_commits_total"] >= 1
    assert metrics["columnar_slow_requests_total"] >= 3  # every one is, with a bound of 0 ms
    (program,) = [name for name in metrics if name.startswith("columnar_build_info")]
    build = known().text.removesuffix("-dirty")
    assert program.startswith(f'columnar_build_info{{build="{build}')
    assert program.endswith(f'python="{PYTHON}",version="{VERSION}"}}')
    assert metrics["columnar_log_lines_dropped_total"] == 0
    monkeypatch.setattr(log_lines, "dropped", lambda: 7)
    assert served.metrics()["columnar_log_lines_dropped_total"] == 7
    assert metrics["process_resident_memory_bytes"] > 1_000_000


def test_slow_requests_are_logged_with_table_region_and_cost(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    connection = Connection("127.0.0.1", served.store.port)
    with caplog.at_level(logging.WARNING, "columnar.slow"):
        list(connection.table("pages").scan())
    connection.close()
    (line,) = [one.message for one in caplog.records if "scannerGetList" in one.message and "rows=1" in one.message]
    region = served.store.serving.server.tables.known(b"pages").regions[1].encoded
    assert f"table=pages region={region} rows=1 cells=1 cells_read=1 reply_bytes=" in line
    assert "; peer=127.0.0.1:" in line


def test_other_paths_and_methods(served: Served) -> None:
    assert served.get("/nope").status_code == 404
    assert served.get("/", "POST").status_code == 405
    assert served.get("/", "HEAD").text == ""
    assert served.get("/health").text == "ok\n"
    assert {served.get(path).text for path in ("/livez", "/live")} == {"ok\n"}
    assert {served.get(path).text for path in ("/readyz", "/ready")} == {"ready\n"}


def test_a_loop_that_does_not_answer_is_unhealthy(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    assert served.get("/health").status_code == 200  # the loop opens the page for its first visitor
    monkeypatch.setattr(web_server, "LOOP_TIMEOUT_S", 0.05)
    held, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        held.set()
        go_on.wait(WAIT_S)

    served.loop.call_soon_threadsafe(hold)
    assert held.wait(WAIT_S)
    try:
        for path in ("/health", "/livez", "/readyz", "/metrics", "/"):
            answer = served.get(path)
            assert (answer.status_code, answer.text) == (503, "unhealthy: the store has not answered for 0.05 s\n")
    finally:
        go_on.set()
    assert served.get("/health").status_code == 200


def test_a_port_in_use_says_what_to_do(served: Served) -> None:
    with pytest.raises(HostError, match="choose another with --web-port, or -1 for none"):
        bind("127.0.0.1", served.web.port)


def test_a_closed_region_is_measured_on_disk(tmp_path: Path) -> None:
    served = Served(tmp_path / "data")
    connection = Connection("127.0.0.1", served.store.port)
    connection.create_table("t", {"f": {}})
    connection.table("t").put(b"a", {b"f:a": b"x" * 50_000})
    connection.disable_table("t")
    metrics = served.metrics()
    connection.close()
    served.close()
    assert metrics['columnar_table_enabled{table="t"}'] == 0
    assert metrics['columnar_table_open_regions{table="t"}'] == 0
    assert metrics['columnar_table_bytes{table="t"}'] > 50_000


@pytest.mark.parametrize("path", ["/", "/metrics", "/health", "/style.css"])
def test_a_name_that_is_not_this_machine_is_not_answered(served: Served, path: str) -> None:
    """A page whose name was made to lead here would be of our own origin, and could read it."""
    foreign = requests.get(served.url + path, headers={"Host": f"rebound.example:{served.web.port}"}, timeout=WAIT_S)
    assert (foreign.status_code, "rebound.example" in foreign.text) == (403, True)
    own = requests.get(served.url + path, headers={"Host": f"localhost:{served.web.port}"}, timeout=WAIT_S)
    assert own.status_code == 200


def test_a_web_server_whose_thread_is_awake_stops_as_any_other() -> None:
    """The thread runs what it is told before the call that wakes it has written to its pipe."""
    told: list[object] = []

    class Trigger:
        def pull_trigger(self, close: object) -> None:
            told.append(close)
            raise OSError(errno.EBADF, "Bad file descriptor")

    web_server._end(SimpleNamespace(trigger=Trigger()))
    assert len(told) == 1


def test_readers_of_change_streams_are_counted(served: Served) -> None:
    assert not any(name.startswith("columnar_stream_") for name in served.metrics()), "no reader has come"
    connection, reader = (Connection("127.0.0.1", served.store.port) for _ in range(2))
    connection.create_table("followed", {"f": {}}, attributes={"CHANGE_LOG": "3600"})
    connection.table("followed").put(b"r", {b"f:x": b"v" * 500})
    stream = reader.changes("followed", start="beginning")
    assert len(stream.poll(0)) == 1
    found = served.metrics()
    assert found["columnar_stream_events_total"] == 1
    assert 500 < found["columnar_stream_sent_bytes_total"] < 600
    assert found["columnar_stream_replies_total"] == 1
    assert found["columnar_stream_waiting_readers"] == 0
    waiting = threading.Thread(target=stream.poll, args=(WAIT_S * 1_000,))
    waiting.start()
    deadline = time.monotonic() + WAIT_S
    while served.metrics()["columnar_stream_waiting_readers"] != 1:
        assert time.monotonic() < deadline
    connection.table("followed").put(b"r", {b"f:x": b"2"})
    waiting.join()
    found = served.metrics()
    assert (found["columnar_stream_waiting_readers"], found["columnar_stream_events_total"]) == (0, 2)
    for one in (connection, reader):
        one.close()
