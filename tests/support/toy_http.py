"""An HTTP port with handlers of a test, on a loop in a thread of its own."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

import uvloop

from columnar.errors import OutcomeUnknown, TableNotFound
from columnar.wire.connection_table import WireLimits
from columnar.wire.http.exchange import Request, Response
from columnar.wire.http.routes import Routes
from columnar.wire.http.server import HttpServer

PIECE = bytes(range(256)) * 256
WAIT_S = 20.0


class ToyHandlers:
    def __init__(self) -> None:
        self.gate: asyncio.Event = asyncio.Event()
        self.began = threading.Event()  # a handler that waits at the gate
        self.sent = 0  # pieces of a body in chunks
        self.ended = threading.Event()  # such a body, however
        self.routes = Routes(
            [
                ("GET", "/", lambda _request: Response(200, (("Content-Type", "text/plain"),), b"hello")),
                ("POST", "/echo", self.echo),
                ("PUT", "/echo", self.echo),
                ("POST", "/later", self.later),
                ("POST", "/gate", self.wait),
                ("GET", "/t/{table}/{rest*}", self.parts),
                ("GET", "/pieces/{count}", self.pieces),
                ("GET", "/broken", self.broken),
                ("GET", "/slow", self.slow),
                ("GET", "/header", lambda _request: Response(200, (("X", "a\r\nSet-Cookie: b"),))),
                ("GET", "/missing", self.missing),
                ("GET", "/unknown", self.unknown),
                ("GET", "/fault", lambda _request: Response(200, (), bytes(int("no number")))),
                ("DELETE", "/nothing", lambda _request: Response(204)),
            ]
        )

    def echo(self, request: Request) -> Response:
        facts = {"method": request.method, "query": request.query, "user": request.user, "size": len(request.body)}
        return Response(200, (("X-Facts", json.dumps(facts)),), request.body)

    async def later(self, request: Request) -> Response:
        await asyncio.sleep(0)
        return self.echo(request)

    async def wait(self, request: Request) -> Response:
        self.began.set()
        await self.gate.wait()
        return Response(200, (), b"gone" if request.has_gone() else b"waited")

    def parts(self, request: Request) -> Response:
        return Response(200, (), request.parameters["table"] + b"|" + request.parameters["rest"])

    def pieces(self, request: Request) -> Response:
        return Response(200, (), self._made(int(request.parameters["count"]), fails=False))

    def broken(self, _request: Request) -> Response:
        return Response(200, (), self._made(2, fails=True))

    async def _made(self, count: int, *, fails: bool) -> AsyncIterator[bytes]:
        try:
            for _ in range(count):
                self.sent += 1
                yield PIECE
            if fails:
                raise ValueError("no more")
        finally:
            self.ended.set()

    def slow(self, _request: Request) -> Response:
        """Take more than a time slice of the loop."""
        ends = time.perf_counter() + 0.005
        while time.perf_counter() < ends:
            pass
        return Response()

    def missing(self, _request: Request) -> Response:
        raise TableNotFound("t")

    async def unknown(self, _request: Request) -> Response:
        raise OutcomeUnknown("perhaps")


class RunningHttp:
    def __init__(self, limits: WireLimits | None = None, **options: Any) -> None:
        self.loop = uvloop.new_event_loop()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()
        self.server, self.handlers = self.call(self._start(limits, options))
        self.port = self.server.port

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    async def _start(self, limits: WireLimits | None, options: dict[str, Any]) -> tuple[HttpServer, ToyHandlers]:
        handlers = ToyHandlers()
        server = HttpServer(handlers.routes, limits, **options)
        await server.start("127.0.0.1", 0)
        return server, handlers

    def call(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(WAIT_S)

    def on_loop(self, read: Any) -> Any:
        async def reading() -> Any:
            return read()

        return self.call(reading())

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=WAIT_S)

    def stop(self) -> None:
        self.call(self.server.close(2))
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(5)
        self.loop.close()
