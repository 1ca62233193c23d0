"""Messages as POST requests: headers, what answers mean, and a client that survives what targets do."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from email.utils import formatdate
from typing import Any
from urllib.parse import urlsplit

import pytest

from columnar.flows.figures import FollowerFigures
from columnar.model.message_delivery import DONE, End, How, ServedMessage
from columnar.model.queue_service import service_of
from columnar.queues.delivery_pace import LONGEST_PAUSE_S
from columnar.queues.http_target import HttpTarget, end_of, headers_of
from columnar.runtime.name_lookup import LOOKUPS_AT_ONCE, NameLookup
from columnar.wire.http.client import ANSWER_BYTES, BODY_BYTES, HEAD_BYTES, Answer, Broken, HttpClient, Unreachable

MESSAGE = ServedMessage(b"thumbs", 1795868882562873, b"cat.png", b"", b"", 0, 1, 1795868882562, (), b"")
OK = b"HTTP/1.1 204 No Content\r\n\r\n"


class Target:
    """A server on loopback that answers each request with what the test says, and keeps what it got."""

    def __init__(self, *answers: bytes | None) -> None:
        self.answers = list(answers)  # None: none, until the client leaves
        self.requests: list[bytes] = []
        self.connections = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                size = next(int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"Content-Length:"))
                self.requests.append(head + await reader.readexactly(size))
                answer = self.answers.pop(0)
                if answer is None:
                    await reader.read()
                    return
                writer.write(answer)
                if b"Connection: close" in answer or not answer:
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()


def against(*answers: bytes | None, timeout_ms: int = 5_000) -> Callable[..., Callable[[], None]]:
    def decorated(test: Callable[[Target, str], Awaitable[None]]) -> Callable[[], None]:
        def run() -> None:
            async def inside() -> None:
                target = Target(*answers)
                server = await asyncio.start_server(target.serve, "127.0.0.1", 0)
                port = server.sockets[0].getsockname()[1]
                async with asyncio.timeout(20):
                    await test(target, f"http://127.0.0.1:{port}/hook?a=b")
                server.close()

            asyncio.run(inside())

        run.__name__ = test.__name__
        return run

    return decorated


async def delivered(
    url: str, *, timeout_ms: int = 5_000, figures: FollowerFigures | None = None, is_failed: bool = False
) -> End:
    target = HttpTarget(service_of("thumbs", url, timeout_ms=timeout_ms), figures or FollowerFigures(0.0))
    ended: asyncio.Future[End] = asyncio.get_running_loop().create_future()

    def end(found: End) -> bool:
        ended.set_result(found)
        return found.how is How.FAILED or is_failed

    target.deliver(MESSAGE, end)
    try:
        return await ended
    finally:
        target.close()


# --- requests ----------------------------------------------------------------------------------------


def test_headers_name_the_message() -> None:
    assert dict(headers_of(replace(MESSAGE, name=b"n", group=b"tenant 7", priority=9, attempt=3))) == {
        "Content-Type": "application/octet-stream",
        "Columnar-Queue": "thumbs",
        "Columnar-Message-Id": "1795868882562873",
        "Columnar-Message-Name": "n",
        "Columnar-Group": "tenant 7",
        "Columnar-Priority": "9",
        "Columnar-Attempt": "3",
        "Columnar-Pushed-Ms": "1795868882562",
    }


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        (b"size", b"200", ("size", "200")),
        (b"a b\r\nHost", b"x\r\nEvil: 1", ("a%20b%0D%0AHost", "x%0D%0AEvil: 1")),
        (b"\xff:", b" \xc3\xa4 %41 ", ("%FF%3A", "%20%C3%A4 %2541%20")),
        (b"e", b"", ("e", "")),
    ],
)
def test_no_header_of_a_message_becomes_another_one(name: bytes, value: bytes, expected: tuple[str, str]) -> None:
    *_, last = headers_of(replace(MESSAGE, headers=((name, value),)))
    assert last == ("Columnar-Header-" + expected[0], expected[1])


def test_a_message_says_its_content_type_and_keeps_what_only_sqs_knows() -> None:
    found = dict(headers_of(replace(MESSAGE, headers=((b"Content-Type", b"image/png; q=1"), (b"sqs:x", b"1")))))
    assert found["Content-Type"] == "image/png; q=1"
    assert not any("sqs" in name for name in found)


# --- answers -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "headers", "expected"),
    [
        (200, {}, DONE),
        (299, {}, DONE),
        (302, {"location": "http://169.254.169.254/"}, End(How.FAILED, why="302 Status: no")),
        (404, {}, End(How.FAILED, why="404 Not Found: no")),
        (503, {}, End(How.FAILED, why="503 Service Unavailable: no")),
        (500, {"retry-after": "5"}, End(How.FAILED, why="500 Internal Server Error: no")),
        (429, {"retry-after": "soon"}, End(How.FAILED, why="429 Too Many Requests: no")),
    ],
)
def test_what_an_answer_means(status: int, headers: dict[str, str], expected: End) -> None:
    assert end_of(Answer(status, headers, b" no\n"), 1e9) == expected


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("7", 7.0), (" 0 ", 0.01), ("999999999999", LONGEST_PAUSE_S), (formatdate(1e9 + 30, usegmt=True), 30.0),
     (formatdate(1e9 - 30, usegmt=True), 0.01)],
)  # fmt: skip
@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_target_names_its_pause(status: int, text: str, seconds: float) -> None:
    found = end_of(Answer(status, {"retry-after": text}), 1e9)
    assert (found.how, found.seconds, found.is_requested) == (How.BLOCKED, seconds, True)


# --- the client --------------------------------------------------------------------------------------


@against(
    OK,
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
)
async def test_connections_are_kept(target: Target, url: str) -> None:
    client = HttpClient(urlsplit(url), 2)
    for body in (b"a", b"b", b"c"):
        assert (await client.post([("X", "y")], body)).is_success
    assert target.connections == 1
    assert target.requests[0].startswith(b"POST /hook?a=b HTTP/1.1\r\nHost: 127.0.0.1:")
    assert target.requests[0].endswith(b"X: y\r\nContent-Length: 1\r\n\r\na")
    client.close()


@against(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b"", OK, b"")
async def test_a_connection_that_ended_meanwhile_is_replaced_and_a_new_one_that_ends_is_an_error(
    target: Target, url: str
) -> None:
    client = HttpClient(urlsplit(url), 2)
    await client.post([], b"a")
    assert (await client.post([], b"b")).status == 204
    assert target.connections == 2
    client.close()
    with pytest.raises(Broken, match="without an answer"):
        await client.post([], b"c")


@against(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nRetry-After: 9\r\n\r\n" + OK)
async def test_answers_before_the_answer_are_passed(target: Target, url: str) -> None:
    assert await HttpClient(urlsplit(url), 0).post([], b"a") == Answer(204)


@against(b"HTTP/1.1 500 No\r\n\r\n" + b"x" * (4 * BODY_BYTES) + b"Connection: close")
async def test_a_long_answer_is_cut(target: Target, url: str) -> None:
    answer = await HttpClient(urlsplit(url), 1).post([], b"a")
    assert (answer.status, answer.body) == (500, b"x" * BODY_BYTES)


@against(
    b"HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n" + b"A: b\r\n" * (ANSWER_BYTES // 3), OK
)
async def test_trailers_without_end_are_cut(target: Target, url: str) -> None:
    client = HttpClient(urlsplit(url), 1)
    answer = await client.post([], b"a")
    assert (answer.status, answer.body, len(answer.headers)) == (500, b"no", 1)
    assert (await client.post([], b"b")).status == 204
    assert target.connections == 2
    client.close()


@against(OK, OK)
async def test_a_name_that_is_looked_up_for_long_holds_up_nothing_but_its_target(target: Target, url: str) -> None:
    loop, may_end = asyncio.get_running_loop(), threading.Event()
    loop.set_default_executor(ThreadPoolExecutor(1))  # it opens regions
    look_up = socket.getaddrinfo

    def slow(host: str, *given: Any, **options: Any) -> Any:
        if host == "slow.example":
            may_end.wait(20)
            raise socket.gaierror(socket.EAI_AGAIN, "no answer")
        return look_up(host, *given, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "getaddrinfo", slow)
        slow_url = urlsplit("http://slow.example/hook")
        clients = [HttpClient(slow_url, 1, 0.05 if number else 20.0) for number in range(3)]
        waiting = [asyncio.ensure_future(one.post([], b"a")) for one in clients for _ in range(LOOKUPS_AT_ONCE + 1)]
        async with asyncio.timeout(10):
            assert await asyncio.to_thread(lambda: "a region is open") == "a region is open"
            for one in waiting[LOOKUPS_AT_ONCE + 1 :]:
                with pytest.raises(Unreachable, match=r"no connection within 0\.05 s"):
                    await one
            local = HttpClient(urlsplit(url.replace("127.0.0.1", "localhost")), 1)
            assert (await local.post([], b"a")).status == 204
        clients[0].close()
        may_end.set()
        for one in waiting[:LOOKUPS_AT_ONCE]:
            with pytest.raises(Unreachable, match="no answer"):
                await one
        waiting[LOOKUPS_AT_ONCE].cancel()
        with pytest.raises(Unreachable, match="not looked up any more"):
            await clients[0].post([], b"a")
    local.close()
    for client in clients:
        client.close()
    assert len(target.requests) == 1


@against()
async def test_a_target_that_swallows_what_it_gets_is_an_obstacle(target: Target, url: str) -> None:
    async def connect(*_args: Any, **_options: Any) -> Any:
        await asyncio.get_running_loop().create_future()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NameLookup, "connect", connect)
        found = await delivered(url, timeout_ms=200)
    assert (found.how, found.why[:29]) == (How.BLOCKED, "its target cannot be reached:")


@pytest.mark.parametrize(
    "answer",
    [b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * HEAD_BYTES, b"no HTTP\r\n\r\n", b"HTTP/1.1 200 OKConnection: close"],
)
def test_an_answer_that_is_none(answer: bytes) -> None:
    @against(answer)
    async def inside(_target: Target, url: str) -> None:
        with pytest.raises(Broken):
            await HttpClient(urlsplit(url), 1).post([], b"a")

    inside()


@against()
async def test_a_target_that_nobody_serves_is_an_obstacle(target: Target, url: str) -> None:
    free = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = free.sockets[0].getsockname()[1]
    free.close()
    await free.wait_closed()
    with pytest.raises(Unreachable):
        await HttpClient(urlsplit(f"http://127.0.0.1:{port}"), 1).post([], b"")
    found = await delivered(f"http://127.0.0.1:{port}/")
    assert (found.how, found.why[:29]) == (How.BLOCKED, "its target cannot be reached:")
    assert not found.is_requested, "no message is at fault"
    assert target.requests == []


@against(None)
async def test_a_target_that_does_not_answer_in_time_has_failed(target: Target, url: str) -> None:
    figures = FollowerFigures(0.0)
    found = await delivered(url, timeout_ms=1_000, figures=figures)  # it is sent within
    assert found == End(How.FAILED, why="no answer within 1 s")
    assert (figures.failed, figures.delivered, len(target.requests)) == (1, 0, 1)


@against(OK)
async def test_a_message_is_posted(target: Target, url: str) -> None:
    figures = FollowerFigures(0.0)
    assert await delivered(url, figures=figures) == DONE
    assert target.requests[0].endswith(b"\r\n\r\ncat.png")
    assert (figures.failed, figures.delivered) == (0, 1)


@against(b"HTTP/1.1 503 Busy\r\nRetry-After: 1\r\n\r\nConnection: close")
async def test_a_pause_that_becomes_a_failure_is_counted_as_one(target: Target, url: str) -> None:
    figures = FollowerFigures(0.0)
    assert (await delivered(url, figures=figures, is_failed=True)).how is How.BLOCKED
    assert (figures.failed, len(target.requests)) == (1, 1)
