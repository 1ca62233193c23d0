"""A target of served queues: an HTTP server in a thread that notes what is posted, and answers as the test says."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType


@dataclass(frozen=True, slots=True)
class Posted:
    path: str
    body: bytes
    headers: dict[str, str]

    @property
    def attempt(self) -> int:
        return int(self.headers["Columnar-Attempt"])


@dataclass(frozen=True, slots=True)
class Reply:
    status: int = 204
    headers: dict[str, str] = field(default_factory=dict)


class HookServer:
    def __init__(self, answer: Callable[[Posted], Reply] = lambda _posted: Reply()) -> None:
        self.posted: list[Posted] = []
        self._came = threading.Condition()
        hooks = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                one = Posted(self.path, body, dict(self.headers))
                with hooks._came:
                    hooks.posted.append(one)
                    hooks._came.notify_all()
                reply = answer(one)
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                if reply.status != 204:
                    self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            def handle_error(self, *_: object) -> None:
                """Leave a client that was killed without a word."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook"

    def until(self, count: int, timeout_s: float = 30.0) -> list[Posted]:
        """Wait until so many messages were posted."""
        with self._came:
            assert self._came.wait_for(lambda: len(self.posted) >= count, timeout_s), self.posted
            return list(self.posted)

    def __enter__(self) -> HookServer:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, _kind: type[BaseException] | None, _error: object, _trace: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
