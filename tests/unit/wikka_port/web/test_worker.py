"""The serving process: many at once, slow ones beside quick ones, and an end that loses nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from typing import Any

import pytest

from tests.support.served_application import REQUEST, answer, ask, connect, read_all, serving
from tests.support.transfers import Transfers
from tests.support.wiki_server import running_wiki
from wikka_port.config import WikiConfig
from wikka_port.request_queues import TooManyExpensiveRequests, run_in_slow_lane
from wikka_port.secret_file import secret_from
from wikka_port.serve import PortTaken, Shared, _Parent, listen


def hello(environ: Any, start_response: Any) -> list[bytes]:
    start_response("200 OK", [("Content-Length", "5")])
    return [b"hello"]


def test_half_sent_requests_do_not_keep_others_waiting() -> None:
    with serving(hello) as (_, port, _):
        slow = [connect(port) for _ in range(20)]
        for connection in slow:
            connection.sendall(REQUEST[:20])
        with connect(port) as quick:
            quick.sendall(REQUEST)
            assert quick.recv(1000).startswith(b"HTTP/1.1 200")
        for connection in slow:
            connection.sendall(REQUEST[20:])
            assert connection.recv(1000).startswith(b"HTTP/1.1 200")
            connection.close()


@pytest.mark.parametrize(
    "head",
    [
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: CHUNKED\r\ncontent-length: 0\r\n\r\n",
        b"POST / HTTP/1.0\r\nHost: x\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
)
def test_a_length_that_is_said_in_two_ways_is_refused_and_what_follows_is_no_request(head: bytes) -> None:
    """RFC 9112, 6.1: a proxy may believe the other one."""
    asked: list[str] = []

    def noting(environ: Any, start_response: Any) -> list[bytes]:
        asked.append(environ["PATH_INFO"])
        return hello(environ, start_response)

    with serving(noting) as (_, port, _), connect(port) as connection:
        connection.sendall(head + b"0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = read_all(connection)
    assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.0 400"))
    assert b"Transfer-Encoding" in answer.partition(b"\r\n\r\n")[2]
    assert asked == []


def test_stopping_answers_what_is_under_way_and_waits_for_nothing_else() -> None:
    began, go_on = threading.Event(), threading.Event()
    size = 3_000_000

    def slow(environ: Any, start_response: Any) -> list[bytes]:
        began.set()
        assert go_on.wait(10)
        start_response("200 OK", [("Content-Length", str(size))])
        return [b"x" * size]

    with serving(slow) as (worker, port, thread), connect(port) as idle, connect(port) as busy, connect(port) as queued:
        busy.sendall(REQUEST)
        assert began.wait(10)
        queued.sendall(REQUEST)
        worker.stop()
        assert idle.recv(10) == b"", "a connection without a request is closed at once"
        with pytest.raises(ConnectionError):
            connect(port).close()
        go_on.set()
        for connection in (busy, queued):
            answer = read_all(connection)
            assert answer.startswith(b"HTTP/1.1 200")
            assert len(answer) > size
        thread.join(5)
        assert not thread.is_alive()


class Dear:
    """An application with dear paths, which are answered when ``go_on`` is set."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.began: list[str] = []

    def __call__(self, environ: Any, start_response: Any) -> list[bytes]:
        body = environ["PATH_INFO"].encode()
        if environ["PATH_INFO"].startswith("/dear"):
            run_in_slow_lane(environ)
            self.began.append(environ["PATH_INFO"])
            assert self.go_on.wait(10)
            body += environ["wsgi.input"].read()
        start_response("200 OK", [("Content-Length", str(len(body)))])
        return [body]


def test_quick_requests_are_never_behind_dear_ones() -> None:
    application = Dear()
    with serving(application, threads=2) as (_, port, _):
        dear = [connect(port) for _ in range(8)]
        for number, connection in enumerate(dear):
            ask(connection, f"/dear/{number}", body="sent")
        with connect(port) as quick:
            for _ in range(5):
                ask(quick, "/quick")
                assert answer(quick).endswith(b"/quick")
        assert len(application.began) <= 1, "the others wait in their lane"
        application.go_on.set()
        for number, connection in enumerate(dear):
            assert answer(connection).endswith(f"/dear/{number}sent".encode())
            ask(connection, "/quick")
            assert answer(connection).endswith(b"/quick"), "the connection goes on"
            connection.close()


def test_dear_requests_of_clients_that_have_gone_are_not_begun() -> None:
    application = Dear()
    with serving(application, threads=2) as (worker, port, _):
        first = connect(port)
        ask(first, "/dear/first")
        while not application.began:
            threading.Event().wait(0.01)
        gone = [connect(port) for _ in range(5)]
        for connection in gone:
            ask(connection, "/dear/gone")
        last = connect(port)
        ask(last, "/dear/last")
        while worker.server.task_dispatcher.queues["slow"].waiting < 6:
            threading.Event().wait(0.01)
        for connection in gone:
            connection.close()
        while len(worker.server.active_channels) > 2:
            threading.Event().wait(0.01)
        application.go_on.set()
        assert answer(last).endswith(b"/dear/last")
        assert application.began == ["/dear/first", "/dear/last"]
        first.close()
        last.close()


def test_what_waits_in_the_dear_lane_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wikka_port.request_queues.SLOW_WAITING_MAX", 2)
    application = Dear()

    def answering(environ: Any, start_response: Any) -> Any:
        try:
            return application(environ, start_response)
        except TooManyExpensiveRequests as full:
            return full.get_response()(environ, start_response)

    with serving(answering, threads=2) as (worker, port, _):
        waiting = []
        for number in range(3):
            waiting.append(connect(port))
            ask(waiting[-1], f"/dear/{number}")
            while len(application.began) + worker.server.task_dispatcher.queues["slow"].waiting <= number:
                threading.Event().wait(0.01)
        with connect(port) as refused:
            ask(refused, "/dear/too-many")
            assert answer(refused).startswith(b"HTTP/1.1 503")
        application.go_on.set()
        for connection in waiting:
            assert answer(connection).startswith(b"HTTP/1.1 200")
            connection.close()


def test_a_body_over_the_bound_is_refused_before_it_is_sent() -> None:
    with serving(hello) as (_, port, _), connect(port) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n")
        assert connection.recv(1000).startswith(b"HTTP/1.1 413")


def test_whoever_sends_too_much_is_told_so_on_a_page() -> None:
    """A browser shows none where the connection is closed while it sends; Cyrillic is 6 bytes a letter on its way."""
    body = b"body=" + b"%D0%B0" * 1_200_000
    with running_wiki() as server, connect(int(server.url.rpartition(":")[2])) as connection:
        head = f"POST /P/edit HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
        connection.sendall(f"{head}Content-Type: application/x-www-form-urlencoded\r\n\r\n".encode() + body)
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        told, _, rest = read_all(connection).decode().partition("</html>")
    assert told.startswith("HTTP/1.1 413 ")
    assert "back button leads to your text" in told
    assert "HTTP/1.1 200 OK" in rest, "the next request of the connection"


def test_a_port_in_use_is_said() -> None:
    first = listen("127.0.0.1", 0, 2)
    first[0].listen()
    port = first[0].getsockname()[1]
    with pytest.raises(PortTaken, match=f"cannot use port {port}"):
        listen("127.0.0.1", port, 2)
    for opened in first:
        opened.close()
    with pytest.raises(PortTaken):
        listen("no such host.invalid", 1, 1)


def test_the_secret_is_made_once_and_read_again(tmp_path: Any) -> None:
    path = tmp_path / "secret"
    secret = secret_from(path)
    assert len(secret) == 32
    assert secret_from(path) == secret
    assert path.stat().st_mode & 0o077 == 0
    path.write_bytes(b"short")
    with pytest.raises(OSError, match="no file of a secret"):
        secret_from(path)


def test_a_stop_passes_over_a_worker_that_has_just_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """A manager of services signals all processes at once: a worker may be reaped when the parent signals it."""
    monkeypatch.setattr(signal, "alarm", lambda seconds: 0)
    monkeypatch.setattr(signal, "signal", lambda number, handler: None)
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as running:
        parent = _Parent(WikiConfig(), [], lambda address: None, Shared.opened(WikiConfig()))
        parent._workers.update({ended.pid: 0, running.pid: 1})
        parent._stop(signal.SIGTERM)
        assert running.wait(10) == -signal.SIGTERM


def test_a_worker_that_has_ended_pulls_no_trigger_whose_descriptor_may_be_anothers() -> None:
    with serving(Transfers(), max_text_bytes=1) as (worker, _, _):
        worker.stop()
    pulled: list[int] = []
    worker.server.pull_trigger = lambda: pulled.append(1)
    worker.is_stopping = False  # as if it had ended by itself
    worker.stop()
    assert pulled == []
