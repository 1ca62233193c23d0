"""What a page of a running replay is sent, the addresses that are taken, and the bound of its clients."""

from __future__ import annotations

import json
import os
import socket
from contextlib import ExitStack

import pytest
import requests

from gauge.histogram import Histogram
from wikibench.errors import PlanError
from wikibench.findings.dashboard import Dashboard, parse_address
from wikibench.findings.running import Running
from wikibench.latency import Recorder, Sample
from wikibench.limits import DASHBOARD_CLIENTS
from wikibench.live import Snapshot
from wikibench.outcome import Kind, Outcome

ABOUT = {"what": "replay", "target": "http://127.0.0.1:1/", "requirements": [], "interval_s": 1.0}


def snapshot(recorder: Recorder, now_s: float) -> Snapshot:
    lateness = Histogram()
    lateness.record(2_000)
    return Snapshot(
        now_s, 60, 0, 1.0, 3, recorder.failed(), dict(enumerate(recorder.intervals)), recorder.pairs, lateness
    )


def page_view(at_s: float, outcome: Outcome = Outcome.OK) -> Sample:
    return Sample(Kind.PAGE, outcome, at_s, at_s, at_s + 0.02)


def test_an_event_has_the_intervals_that_changed_and_the_first_one_has_all() -> None:
    recorder, running = Recorder(60), Running()
    assert running.whole()["intervals"] == []
    recorder.add(page_view(0.1))
    recorder.add(page_view(1.1))
    assert [row["start_s"] for row in running.take_snapshot(snapshot(recorder, 2.0))["intervals"]] == [0.0, 1.0]
    recorder.add(page_view(1.5, Outcome.TIMEOUT))
    event = running.take_snapshot(snapshot(recorder, 3.0))
    assert [row["start_s"] for row in event["intervals"]] == [1.0]
    assert event["intervals"][0]["failed"] == {"timeout": 1}
    assert [row["asked"] for row in running.whole()["intervals"]] == [1, 2]
    assert running.whole("complete")["state"] == "complete"
    json.dumps(running.whole())


def test_metrics_count_each_request_once() -> None:
    recorder, running = Recorder(60), Running()
    for number in range(10):
        recorder.add(page_view(number / 10))
    recorder.add(page_view(0.5, Outcome.BROKEN))
    running.take_snapshot(snapshot(recorder, 2.0))
    lines = running.metrics().splitlines()
    assert 'wikibench_requests_total{kind="page",outcome="2xx"} 10' in lines
    assert 'wikibench_requests_total{kind="page",outcome="broken"} 1' in lines
    assert 'wikibench_response_seconds_bucket{kind="page",le="0.01"} 0' in lines
    assert 'wikibench_response_seconds_bucket{kind="page",le="0.025"} 11' in lines
    assert 'wikibench_response_seconds_count{kind="page"} 11' in lines
    assert "wikibench_own_lateness_seconds_count 1" in lines
    assert "wikibench_open_requests 3" in lines
    assert "wikibench_planned_requests_per_second 11" in lines


SEARCH = {
    "title": "try 2: 100/s",
    "answer": ["kept so far: 50.0 per second"],
    "tries": [["1", "50", "49.8", "12", "0", "kept"]],
    "bounds": {"low": 50.0, "answer": 50.0, "high": 50.0},
}


def test_each_try_of_a_search_begins_anew_and_the_tries_so_far_stay() -> None:
    recorder, running = Recorder(60), Running()
    recorder.add(page_view(0.1))
    assert "search" not in running.whole()
    running.take_snapshot(snapshot(recorder, 2.0))
    event = running.begin_try(SEARCH)
    assert (event["whole"], event["intervals"], event["search"]) == (True, [], SEARCH)
    following = running.take_snapshot(snapshot(recorder, 1.0))
    assert following["search"] == SEARCH, "who came before has to forget the intervals of the try before"
    assert following["whole"]
    recorder.add(page_view(0.3))
    again = running.take_snapshot(snapshot(recorder, 2.0))
    assert (again["whole"], "search" in again) == (False, False)
    ended = running.end_try({**SEARCH, "title": "ended"})
    assert (ended["search"]["title"], [row["asked"] for row in ended["intervals"]]) == ("ended", [2])
    lines = running.metrics().splitlines()
    assert 'wikibench_search_requests_per_second{bound="answer"} 50' in lines
    assert "wikibench_search_tries 1" in lines


def test_a_fork_waits_for_the_thread_and_its_child_has_no_connection() -> None:
    with Dashboard.listening("127.0.0.1:0", ABOUT) as dashboard:
        port = int(dashboard.url.partition("/#")[0].rpartition(":")[2])
        dashboard.tick(snapshot(Recorder(60), 1.0))
        with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
            client.sendall(b"GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert client.recv(65_536)
            ours, theirs = socket.socketpair()
            child = os.fork()
            if not child:  # until the end of the test
                ours.close()
                theirs.recv(1)
                os._exit(0)
            theirs.close()
            dashboard.note_ending("complete")
            dashboard.finish()
            received = b""
            while data := client.recv(65_536):  # its end would not come while a child had the connection, too
                received += data
            assert b'"state":"complete"' in received
            ours.close()
            assert os.waitpid(child, 0)[1] == 0


def test_the_stop_button_is_remembered_where_nobody_hears_its_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.kill", lambda _process, _signal: None)
    with Dashboard.listening("127.0.0.1:0", ABOUT) as dashboard:
        dashboard.begin_try(SEARCH)
        bare, _, token = dashboard.url.partition("#token=")
        assert requests.post(f"{bare}stop", headers={"X-Token": "guessed"}, timeout=30).status_code == 403
        assert not dashboard.is_stopping
        assert requests.post(f"{bare}stop", headers={"X-Token": token}, timeout=30).status_code == 202
        assert dashboard.is_stopping


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:9000", ("127.0.0.1", 9000)),
        (":9000", ("127.0.0.1", 9000)),
        ("bench.lan", ("bench.lan", 8089)),
        ("[::1]:80", ("::1", 80)),
        ("[::1]", ("::1", 8089)),
    ],
)
def test_addresses(text: str, address: tuple[str, int]) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["", "day/trace", "a:b", "h:70000"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(PlanError, match="an address such as"):
        parse_address(text)


def test_a_taken_port_is_wrong_usage() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, pytest.raises(PlanError, match="give another"):
        Dashboard.listening(f"127.0.0.1:{other.getsockname()[1]}", ABOUT)


def test_one_client_too_many_is_answered_503_and_all_hear_the_end() -> None:
    dashboard = Dashboard.listening("127.0.0.1:0", ABOUT)
    port = int(dashboard.url.partition("/#")[0].rpartition(":")[2])
    dashboard.tick(snapshot(Recorder(60), 1.0))
    with ExitStack() as stack:
        following = []
        for _ in range(DASHBOARD_CLIENTS + 1):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
            client.sendall(b"GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            following.append(client)
            first = client.recv(12)
            assert first == (b"HTTP/1.1 503" if len(following) > DASHBOARD_CLIENTS else b"HTTP/1.1 200")
        dashboard.note_ending("complete")
        dashboard.finish()
        for client in following[:-1]:
            received = b""
            while data := client.recv(65_536):
                received += data
            assert b'"state":"complete"' in received
