"""A page of everything that may not be in one, with a policy and without: what watches a browser has to notice it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Final

UNSAFE: Final = b"""<!doctype html><title>x</title><script>__ran(1)</script><p style="color:red" onclick="x">x</p>
<a href="javascript:__ran(2)">x</a><img src=x onerror="__ran(3)"><iframe src="about:blank"></iframe>"""


class _Unsafe(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        if self.path == "/strict":
            self.send_header("Content-Security-Policy", "default-src 'self'")
        self.end_headers()
        self.wfile.write(UNSAFE)

    def log_message(self, *_: Any) -> None:
        return


@contextmanager
def unsafe_server() -> Iterator[str]:
    """Yield the address of a server; below ``/strict`` the page has a Content-Security-Policy."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Unsafe)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
