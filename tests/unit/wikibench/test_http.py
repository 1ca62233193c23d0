"""HTTP against servers that misbehave: each request has one result, and no connection is used where it must not be."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable
from typing import Any

import click
import pytest

from wikibench import limits
from wikibench.http import connection
from wikibench.http.answer import Answer, NoAnswer
from wikibench.http.pool import Wire
from wikibench.options import Header
from wikibench.outcome import Outcome

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nTrailer: x\r\n\r\n"
CLOSED_BODY = b"HTTP/1.1 200 OK\r\nX: y\r\n\r\nhello"
HTTP_10 = b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello"
EARLY = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\nLocation: /wrong\r\n\r\n" + OK
LAST = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello"


class Server:
    """Answers the n-th request of all connections with the n-th of ``answers``; an answer of None closes.

    ``step`` sends so many bytes at a time; ``closes`` closes after each answer.
    """

    def __init__(self, *answers: bytes | None, step: int = 0, closes: bool = False) -> None:
        self.answers = list(answers)
        self.step = step
        self.closes = closes
        self.heads: list[bytes] = []
        self.connections = 0
        self.was_asked = asyncio.Event()

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                self.heads.append(await reader.readuntil(b"\r\n\r\n"))
                self.was_asked.set()
                answer = self.answers.pop(0)
                if answer is None:
                    break
                for at in range(0, len(answer), self.step or len(answer) or 1):
                    writer.write(answer[at : at + (self.step or len(answer))])
                    await writer.drain()
                    if self.step:
                        await asyncio.sleep(0)
                if self.closes:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


def on(server: Server, do: Callable[[Wire, str], Awaitable[Any]], timeout_s: float = 10.0, **headers: str) -> Any:
    async def go() -> Any:
        listening = await asyncio.start_server(server.talk, "127.0.0.1", 0)
        origin = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        wire = Wire(origin, timeout_s=timeout_s, headers=headers)
        try:
            return await do(wire, origin)
        finally:
            await wire.close()
            listening.close()

    return asyncio.run(go())


def gets(count: int, *, keep: bool = True) -> Callable[[Wire, str], Awaitable[Any]]:
    async def do(wire: Wire, origin: str) -> Any:
        found = [await wire.exchange("GET", f"{origin}/p", keep=keep) for _ in range(count)]
        return found, wire.opened, wire.retried

    return do


@pytest.mark.parametrize("step", [0, 1, 7])
@pytest.mark.parametrize("answer", [OK, CHUNKED, EARLY])
def test_an_answer_is_whole_however_its_bytes_come_and_the_connection_is_kept(answer: bytes, step: int) -> None:
    server = Server(answer, answer, step=step)
    found, opened, retried = on(server, gets(2))
    assert [(one.status, one.body, one.size_bytes, one.location) for one in found] == [(200, "hello", 5, "")] * 2
    assert (opened, retried, server.connections) == (1, 0, 1)


@pytest.mark.parametrize("answer", [CLOSED_BODY, HTTP_10, LAST])
@pytest.mark.parametrize("step", [0, 1])
def test_a_connection_that_ends_with_its_answer_is_not_used_again(answer: bytes, step: int) -> None:
    found, opened, retried = on(Server(answer, answer, step=step, closes=answer == CLOSED_BODY), gets(2))
    assert [(one.status, one.body) for one in found] == [(200, "hello")] * 2
    assert (opened, retried) == (2, 0)


@pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified"])
def test_answers_without_a_body_need_no_length(status: bytes) -> None:
    answer = b"HTTP/1.1 " + status + b"\r\nETag: x\r\n\r\n"
    found, opened, _ = on(Server(answer, OK), gets(2))
    assert [one.status for one in found] == [int(status[:3]), 200]
    assert opened == 1


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello", "within the answer"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", "within the answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Le", "within the answer"),
        (b"", "before the answer"),
        (b"\x00\x01 no answer\r\n\r\n", "no HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", "no HTTP"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "no HTTP"),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n", "another protocol"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello", "packed"),
    ],
)
@pytest.mark.parametrize("step", [0, 1])
def test_what_is_no_whole_answer_is_broken_and_says_why(answer: bytes, why: str, step: int) -> None:
    (found,), _, retried = on(Server(answer, step=step, closes=True), gets(1))
    assert isinstance(found, NoAnswer)
    assert found.outcome is Outcome.BROKEN
    assert why in found.why
    assert retried == 0, "a fresh connection has no excuse"


HEADS = {
    "a length": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
    "chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    "no length": b"HTTP/1.1 404 Not Found\r\nX: y\r\n\r\n",
    "early hints": b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
    "no content": b"HTTP/1.1 204 No Content\r\n\r\n",
    "an empty body": b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.0 that keeps": b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\n",
}


def heads(wire: Wire, origin: str) -> Awaitable[Any]:
    async def do() -> Any:
        found = [await wire.exchange(method, f"{origin}/p") for method in ("HEAD", "HEAD", "GET")]
        return found, wire.opened, wire.retried

    return do()


@pytest.mark.parametrize("step", [0, 1])
@pytest.mark.parametrize("what", HEADS)
def test_an_answer_to_a_head_has_no_body_and_the_connection_is_kept(what: str, step: int) -> None:
    answer = HEADS[what]
    server = Server(answer, answer, OK, step=step)
    found, opened, retried = on(server, heads, timeout_s=5.0)
    status = int(answer.rpartition(b"HTTP/")[2][4:7])
    assert [(one.status, one.size_bytes) for one in found] == [(status, 0), (status, 0), (200, 5)]
    assert (opened, retried) == (1, 0)
    assert [head[:5] for head in server.heads] == [b"HEAD ", b"HEAD ", b"GET /"]


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n",
        OK,  # a body all the same: what comes next could not be told from it
        CHUNKED,
    ],
)
def test_a_connection_that_ends_with_an_answer_to_a_head_is_not_used_again(answer: bytes) -> None:
    found, opened, _ = on(Server(answer, answer, OK), heads)
    assert [(one.status, one.size_bytes) for one in found] == [(200, 0), (200, 0), (200, 5)]
    assert opened == 3


def test_a_head_on_a_kept_connection_that_was_closed_is_sent_once_more() -> None:
    answer = HEADS["a length"]
    _, opened, retried = on(Server(answer, None, answer, OK), heads)
    assert (opened, retried) == (2, 1)


def test_a_packed_body_that_nobody_reads_is_an_answer() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello"
    (found,), _, _ = on(Server(answer), gets(1, keep=False))
    assert found == Answer(200, size_bytes=5)


def test_a_get_on_a_kept_connection_that_was_closed_is_sent_once_more() -> None:
    found, opened, retried = on(Server(OK, None, OK), gets(2))
    assert [one.status for one in found] == [200, 200]
    assert (opened, retried) == (2, 1)


def test_it_is_sent_no_third_time_and_a_post_no_second() -> None:
    async def post(wire: Wire, origin: str) -> Any:
        await wire.exchange("GET", f"{origin}/p")
        return await wire.exchange("POST", f"{origin}/p", data=b"")

    found, _, retried = on(Server(OK, None, None, OK), gets(2))
    assert (found[1].outcome, retried) == (Outcome.BROKEN, 1)
    server = Server(OK, None, OK)
    assert on(server, post).outcome is Outcome.BROKEN
    assert len(server.heads) == 2


def test_more_bytes_than_the_answer_close_the_connection() -> None:
    found, opened, _ = on(Server(OK + b"HTTP/1.1 200 OK\r\n", OK), gets(2))
    assert [one.body for one in found] == ["hello", "hello"]
    assert opened == 2


def test_an_answer_that_does_not_come_ends_at_its_timeout_and_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    async def do(wire: Wire, origin: str) -> Any:
        late = await wire.exchange("GET", f"{origin}/p")
        monkeypatch.setattr(wire, "_timeout_s", 60.0)  # the machine may be busy
        return late, await wire.exchange("GET", f"{origin}/p"), wire.opened, wire.retried

    monkeypatch.setattr(connection, "TIMEOUT_STEP_S", 0.001)
    late, other, opened, retried = on(Server(b"", OK), do, timeout_s=0.3)  # a connection is made within
    assert (late.outcome, other.status) == (Outcome.TIMEOUT, 200)
    assert (opened, retried) == (2, 0)


class Steps:
    """A loop whose time goes on by steps, and connections that note when they were ended."""

    def __init__(self) -> None:
        self.now = 0.0
        self.ended: dict[str, float] = {}
        self.step: Callable[[], None] | None = None

    def time(self) -> float:
        return self.now

    def call_later(self, _delay_s: float, step: Callable[[], None]) -> None:
        self.step = step

    def go_to(self, until_s: float) -> None:
        while self.now < until_s:
            self.now += connection.TIMEOUT_STEP_S
            if self.step is not None:
                step, self.step = self.step, None
                step()

    def request(self, name: str, deadlines: connection.Deadlines) -> Any:
        steps = self

        class Ended:
            def abort(self, _why: NoAnswer) -> None:
                steps.ended.setdefault(name, steps.now)
                deadlines.forget(self)  # type: ignore[arg-type]

        return Ended()


def test_each_request_ends_at_its_own_deadline_whatever_others_do() -> None:
    loop = Steps()
    deadlines = connection.Deadlines(loop)  # type: ignore[arg-type]
    due = {"late": 5.0, "soon": 1.0, "answered": 0.5, "again": 2.0, "same": 2.0}
    for name, deadline in due.items():
        request = loop.request(name, deadlines)
        deadlines.watch(request, deadline)
        if name == "answered":
            deadlines.forget(request)
    loop.go_to(0.7)
    deadlines.watch(loop.request("between", deadlines), 0.9)
    loop.go_to(6.0)
    assert loop.step is None, "nothing is left to wait for"
    deadlines.watch(loop.request("afterwards", deadlines), 7.0)
    loop.go_to(8.0)
    wanted = {**due, "between": 0.9, "afterwards": 7.0}
    del wanted["answered"]
    assert {name: pytest.approx(at, abs=0.011) for name, at in wanted.items()} == loop.ended


def test_an_answer_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "BODY_BYTES", 4)
    assert limits.BODY_BYTES > 1 << 20
    (found,), _, _ = on(Server(OK), gets(1))
    assert found.outcome is Outcome.BROKEN
    assert "over 4 bytes" in found.why


def test_a_cancelled_request_leaves_no_connection_that_would_get_its_answer() -> None:
    async def do(wire: Wire, origin: str) -> Any:
        waiting = asyncio.ensure_future(wire.exchange("GET", f"{origin}/slow"))
        await server.was_asked.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        return await wire.exchange("GET", f"{origin}/next", keep=True)

    server = Server(b"", OK)
    assert on(server, do).body == "hello"
    assert server.connections == 2


def test_headers_and_targets_go_out_as_they_should() -> None:
    async def do(wire: Wire, origin: str) -> Any:
        await wire.exchange("GET", f"{origin}/a%20b?x=1", headers={"Cookie": "a=b"})
        await wire.exchange("GET", f"{origin}/ž d\n")
        return await wire.exchange("POST", origin, data=b"abc", keep=True)

    headers = b"Location: /\xc5\xbe\r\nSet-Cookie: s=1; Path=/\r\nset-cookie: t=2\r\nContent-Length: 0\r\n"
    redirect = b"HTTP/1.1 302 Found\r\n" + headers + b"\r\n"
    server = Server(OK, OK, redirect)
    answer = on(server, do, **{"user-agent": "mine", "X-Key": "k"})
    heads = [head.decode("ascii").split("\r\n") for head in server.heads]
    assert [head[0] for head in heads] == ["GET /a%20b?x=1 HTTP/1.1", "GET /%C5%BE%20d%0A HTTP/1.1", "POST / HTTP/1.1"]
    assert {"user-agent: mine", "X-Key: k", "Accept-Encoding: identity", "Cookie: a=b"} < set(heads[0])
    assert "Cookie: a=b" not in heads[1]
    assert not any(line.startswith("User-Agent") for line in heads[0])
    assert (answer.status, answer.location, answer.cookies) == (302, "/ž", "s=1; t=2")


def test_nobody_there_is_refused_and_a_name_without_address_too(monkeypatch: pytest.MonkeyPatch) -> None:
    async def do(origin: str) -> Answer | NoAnswer:
        wire = Wire(origin, timeout_s=60, headers={})
        try:
            return await wire.exchange("GET", f"{origin}/")
        finally:
            await wire.close()

    def unknown(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    refused = asyncio.run(do("http://127.0.0.1:1"))
    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    unresolved = asyncio.run(do("http://wiki.invalid"))
    for found, why in ((refused, "connection refused"), (unresolved, "wiki.invalid cannot be resolved")):
        assert isinstance(found, NoAnswer)
        assert found.outcome is Outcome.REFUSED
        assert why in found.why.lower()


@pytest.mark.parametrize("text", ["X-Key: a\r\nHost: other", "X-Key: ž", "no colon"])
def test_a_header_that_cannot_be_sent_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(click.BadParameter) as refused:
        Header().convert(text, None, None)
    assert "other" not in str(refused.value)


class NoTransport(asyncio.Transport):
    def write(self, data: Any) -> None:
        pass

    def is_closing(self) -> bool:
        return False


def test_an_answer_knows_when_its_last_byte_was_read_however_late_somebody_wakes() -> None:
    async def go() -> tuple[Answer | NoAnswer, list[float]]:
        made = connection.Connection(asyncio.get_running_loop(), lambda _: None, lambda _: None)
        made.connection_made(NoTransport())
        waiter, moments = made.send(b"", keep=False), []
        for data in (OK[:-1], OK[-1:]):
            moments.append(time.perf_counter())
            made.data_received(data)
        moments.append(time.perf_counter())
        return await waiter, moments

    found, (_, before_s, after_s) = asyncio.run(go())
    assert isinstance(found, Answer)
    assert before_s <= found.read_s <= after_s
