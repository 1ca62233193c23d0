"""The health port answers two paths, in bounded time and memory, and tells nothing else."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from columnar.errors import HostError
from columnar.webui import health_port
from columnar.webui.health_port import HEAD_BYTES, HealthPort, answer_to
from columnar.webui.server import HEALTH, bind

HEAD = b" HTTP/1.1\r\nHost: probe\r\n\r\n"


def status(answer: bytes) -> int:
    return int(answer.split(b" ")[1])


@pytest.mark.parametrize(
    ("request_line", "expected"),
    [
        (b"GET /livez", 200),
        (b"HEAD /livez", 200),
        (b"GET /readyz?verbose=1", 200),
        (b"POST /livez", 405),
        (b"DELETE /readyz", 405),
        (b"GET /", 404),
        (b"GET /metrics", 404),
        (b"GET /health", 404),
        (b"GET /live", 404),
        (b"GET /livez/", 404),
        (b"GET /%6civez", 404),
        (b"POST /metrics", 404),
    ],
)
def test_only_two_paths_are_answered(request_line: bytes, expected: int) -> None:
    answer = answer_to(request_line + HEAD, ())
    assert status(answer) == expected
    assert (answer.partition(b"\r\n\r\n")[2] == b"") == request_line.startswith(b"HEAD")
    assert b"Connection: close" in answer


NO_REQUESTS = [b"\r\n\r\n", b"GET /livez\r\n\r\n", b"GET  /livez HTTP/1.1\r\n\r\n", b"\x16\x03 a b\r\n\r\n"]


@pytest.mark.parametrize("head", NO_REQUESTS)
def test_what_is_no_request_is_refused(head: bytes) -> None:
    assert status(answer_to(head, ())) == 400


def test_obstacles_make_it_unready_and_leave_it_alive() -> None:
    answer = answer_to(b"GET /readyz" + HEAD, ("the lease is over", "no leader"))
    assert status(answer) == 503
    assert answer.endswith(b"\r\n\r\nnot ready: the lease is over\n")
    assert status(answer_to(b"GET /livez" + HEAD, ("the lease is over",))) == 200


def served(work: Callable[[HealthPort], Awaitable[None]], obstacles: list[str]) -> None:
    async def run() -> None:
        port = HealthPort(bind("127.0.0.1", 0, HEALTH), lambda: obstacles)
        await port.start()
        try:
            await work(port)
        finally:
            await port.close()

    asyncio.run(run())


async def ask(port: HealthPort, path: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port.port)
    writer.write(b"GET " + path + HEAD)
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


def test_over_the_port() -> None:
    obstacles: list[str] = []

    async def work(port: HealthPort) -> None:
        assert (await ask(port, b"/livez")).endswith(b"ok\n")
        assert (await ask(port, b"/readyz")).endswith(b"ready\n")
        obstacles.append("it is drained")
        assert status(await ask(port, b"/readyz")) == 503
        obstacles.clear()
        port.begin_stop()
        assert (await ask(port, b"/readyz")).endswith(b"not ready: the store stops\n")
        assert status(await ask(port, b"/livez")) == 200

    served(work, obstacles)


async def opened(port: HealthPort, sent: bytes = b"") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port.port)
    writer.write(sent)
    return reader, writer


async def end_of(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    """What comes until the port closes the connection."""
    try:
        return await reader.read()
    except ConnectionError:  # it had not read everything
        return b""
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


def test_a_head_that_is_too_long_or_too_slow_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health_port, "REQUEST_S", 0.05)

    async def work(port: HealthPort) -> None:
        long = b"GET /livez HTTP/1.1\r\n" + b"x: y\r\n" * HEAD_BYTES
        assert await end_of(*await opened(port, long)) == b""
        assert await end_of(*await opened(port, b"GET /livez HTTP/1.1\r\n")) == b""
        assert await end_of(*await opened(port)) == b""

    served(work, [])


def test_there_is_room_for_so_many_connections_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health_port, "CONNECTIONS", 2)

    async def work(port: HealthPort) -> None:
        silent = [await opened(port) for _ in range(2)]
        assert await end_of(*await opened(port)) == b"", "it is closed at once"
        reader, writer = silent[0]
        writer.write(b"GET /livez" + HEAD)
        assert status(await end_of(reader, writer)) == 200
        assert status(await ask(port, b"/livez")) == 200, "one has left"
        silent[1][1].close()
        await silent[1][1].wait_closed()

    served(work, [])


def test_a_port_in_use_is_named_with_its_option() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(HostError, match=r"for probes: .*; choose another with --health-port"):
            bind("127.0.0.1", taken.getsockname()[1], HEALTH)
