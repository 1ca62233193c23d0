"""A wiki-like HTTP server for tests of the replay, in a thread of its own, that misbehaves on request.

/Page…            200, HTML            /Missing…      404
/Redirect…        302 to /Page         /Loop…         302 to itself
/Error…           500                  /Forbidden…    403
/Once…            500, and from the second time on 200
/Short…           fewer bytes than Content-Length says, then the connection closes
/Garbage…         bytes that are no HTTP
/Hang…            never answers
<page>/edit       GET: a form with token, cookie and a honeypot; POST: checks all three, then 302
/Conflict…/edit   POST: 409            /NoForm…/edit  a page without a form
/Again…/edit      POST: 200 with the form once more
/api/titles       the names
"""

from __future__ import annotations

import asyncio
import html
import threading
from urllib.parse import parse_qs

PAGE = "<!doctype html><title>A page</title>" + "<p>words and more words</p>" * 40
FORM = (
    '<form action="/search"><input name="q"><textarea name="other"></textarea></form>'
    '<form method="post" action="{action}"><input type="hidden" name="csrf" value="t&amp;{token}">'
    '<input type=hidden name=base value="17"><input name="website" value=""><input name="note" value="">'
    '<textarea name="body">{text}</textarea>'
    '<button name="do" value="preview">Preview</button><button name="do" value="save">Save</button></form>'
)


class FakeWiki:
    """Use as a context manager; ``url`` is where it answers."""

    def __init__(
        self, stall: tuple[float, float] | None = None, front: bytes | None = None, text: str = "old <text>"
    ) -> None:
        """Take ``stall``: seconds from the first page view to a stall, and seconds of the stall.

        ``front`` is the answer of ``/`` and ``/api/titles``, and ``text`` the text of every page.
        """
        self.url = ""
        self.gets: list[str] = []
        self.heads: list[str] = []
        self.saves: list[dict[str, list[str]]] = []
        self.wrong_saves: list[str] = []
        self.connections = 0
        self.twenty_gets = threading.Event()
        self._stall = stall
        self._front = front
        self._text = html.escape(text)
        self._first: float | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    def __enter__(self) -> FakeWiki:
        self._thread.start()
        if not self._ready.wait(10):
            raise RuntimeError("the fake wiki did not start")
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._handlers: set[asyncio.Task[None]] = set()
        self._transports: set[asyncio.WriteTransport] = set()
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self._ready.set()
        await self._stop.wait()
        for listening in server.sockets:
            self._loop.remove_reader(listening.fileno())
        await _some_turns()  # what was accepted becomes a connection; behind a closed server it would be garbage
        server.close()
        for task in self._handlers:
            task.cancel()
        for transport in self._transports:
            transport.abort()
        await asyncio.gather(*self._handlers, return_exceptions=True)
        await _some_turns()  # aborted ones close

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve the connection without a task: a task that is cancelled before its first step would leave it open."""
        self.connections += 1
        self._transports.add(writer.transport)
        task = self._loop.create_task(self._talk(reader, writer))
        self._handlers.add(task)
        task.add_done_callback(self._handlers.discard)
        task.add_done_callback(lambda _: self._transports.discard(writer.transport) or writer.close())

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            used = False
            while await self._one(reader, writer, used):
                used = True
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, used: bool) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        method, path, _ = head.split(" ", 2)
        headers = {
            name.lower(): value for name, _, value in (line.partition(": ") for line in head.split("\r\n")[1:] if line)
        }
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        if self._first is None and path != "/":
            self._first = self._loop.time()
        if self._stall is not None and self._first is not None:
            begin = self._first + self._stall[0]
            if begin <= self._loop.time() < begin + self._stall[1]:
                await asyncio.sleep(begin + self._stall[1] - self._loop.time())
        if path.startswith("/Hang"):
            await asyncio.Event().wait()
        if path.startswith("/Drop") and used:
            return False
        if path.startswith("/Garbage"):
            writer.write(b"\x00\x01 this is no answer\r\n\r\n")
            return False
        if path.startswith("/Short"):
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\nonly this")
            return False
        if self._front is not None and path in ("/", "/api/titles"):
            writer.write(self._front)
            return False
        answer = self._post(path, headers, body.decode()) if method == "POST" else self._get(path)
        if method == "HEAD":
            self.heads.append(self.gets.pop())
            answer = answer[: answer.index(b"\r\n\r\n") + 4]
        writer.write(answer)
        await writer.drain()
        return True

    def _get(self, path: str) -> bytes:
        self.gets.append(path)
        if len(self.gets) == 20:
            self.twenty_gets.set()
        if path == "/api/titles":
            return reply(200, "".join(f"Page {n}\n" for n in range(50)) + "Žemē/ā?\n", "Content-Type: text/plain")
        if path.startswith("/Redirect"):
            return reply(302, "", "Location: /Page#top")
        if path.startswith("/Loop"):
            return reply(302, "", f"Location: {path}")
        if path.startswith("/Once") and self.gets.count(path) == 1:
            return reply(500, "no")
        for prefix, status in (("/Error", 500), ("/Forbidden", 403), ("/Missing", 404)):
            if path.startswith(prefix):
                return reply(status, "no")
        if path.endswith("/edit") and not path.startswith("/NoForm"):
            token = f"{len(self.gets)}"
            form = FORM.format(action=path, token=token, text=self._text)
            return reply(200, form, f"Set-Cookie: visit={token}; Path=/")
        return reply(200, PAGE)

    def _post(self, path: str, headers: dict[str, str], body: str) -> bytes:
        fields = parse_qs(body, keep_blank_values=True)
        token = headers.get("cookie", "").partition("visit=")[2]
        expected = {"csrf": [f"t&{token}"], "base": ["17"], "website": [""], "note": [""], "do": ["save"]}
        if {name: value for name, value in fields.items() if name != "body"} != expected:
            self.wrong_saves.append(body)
            return reply(403, "token")
        if path.startswith("/Conflict"):
            return reply(409, "somebody was faster")
        if path.startswith("/Again"):
            return reply(200, FORM.format(action=path, token=token, text=self._text))
        self.saves.append(fields)
        return reply(302, "", f"Location: {path.removesuffix('/edit')}")


async def _some_turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def reply(status: int, text: str, *headers: str) -> bytes:
    body = text.encode()
    kind = () if any(header.startswith("Content-Type") for header in headers) else ("Content-Type: text/html",)
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}", *kind, *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body
