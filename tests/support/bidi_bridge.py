"""A Firefox as playwright expects it: the bridge between them answers the one command that Firefox lacks.

    python bidi_bridge.py light|dark FIREFOX ARGUMENTS...

Playwright 1.65 speaks WebDriver BiDi to Firefox, and sends ``emulation.setMediaFeaturesOverride`` for each window;
Firefox 153 (ESR) refuses it as unknown.  The bridge starts Firefox, says in its place where to connect, and passes all
frames of the WebSocket on.  It answers that command alone, and only if it asks for the colours that Firefox has by
a preference from its start (``preferences``); others go to Firefox, which refuses them.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any, Final

COMMAND: Final = "emulation.setMediaFeaturesOverride"
SCHEMES: Final = ("dark", "light")  # by their numbers in Firefox's preference
COMMAND_BYTES: Final = 4_000  # a longer message is another command
FRAME_MAX: Final = 64 * 1024 * 1024
LINE_MAX: Final = 1024 * 1024  # of what Firefox says
LISTENS: Final = re.compile(r"WebDriver BiDi listening on ws://127\.0\.0\.1:([0-9]+)")
_CLOSED: Final = (asyncio.IncompleteReadError, ConnectionResetError)  # a side is gone, and the other one learns it
_WHOLE_TEXT: Final = 0x81  # the first byte of a message of text in one frame
_HOST: Final = re.compile(rb"^host:[^\r\n]*", re.IGNORECASE | re.MULTILINE)


def preferences(scheme: str) -> dict[str, Any]:
    """Return the preferences of a Firefox with these colours."""
    return {"layout.css.prefers-color-scheme.content-override": SCHEMES.index(scheme)}


def program(folder: Path, firefox: str, scheme: str) -> Path:
    """Write a program that is started as a Firefox with these colours, and return its path."""
    path = folder / f"firefox-{scheme}"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{__file__}" {scheme} "{firefox}" "$@"\n')
    path.chmod(0o755)
    return path


def answer_to(message: bytes, scheme: str) -> bytes | None:
    """Return the answer to a message of playwright, or None if Firefox is to answer."""
    if len(message) > COMMAND_BYTES or COMMAND.encode() not in message:
        return None
    asked = json.loads(message)
    wanted = asked.get("params", {}).get("features", {}).get("prefers-color-scheme")
    if asked.get("method") != COMMAND or wanted not in (None, scheme):
        return None
    return json.dumps({"type": "success", "id": asked["id"], "result": {}}).encode()


async def next_frame(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """Return a frame as it came, and its payload if it is a whole short message of text, else nothing."""
    head = await reader.readexactly(2)
    size = head[1] & 0x7F
    if size >= 126:
        more = await reader.readexactly(2 if size == 126 else 8)
        head, size = head + more, int.from_bytes(more)
    if size > FRAME_MAX:
        raise ConnectionError(f"a frame has {size} bytes, {FRAME_MAX} at most")
    mask = await reader.readexactly(4 if head[1] & 0x80 else 0)
    payload = await reader.readexactly(size)
    is_short = head[0] == _WHOLE_TEXT and size <= COMMAND_BYTES
    return head + mask + payload, unmasked(payload, mask) if is_short else b""


def unmasked(payload: bytes, mask: bytes) -> bytes:
    return bytes(byte ^ mask[at % 4] for at, byte in enumerate(payload)) if mask else payload


def text_frame(message: bytes) -> bytes:
    assert len(message) < 126, "an answer is as short as that"
    return bytes((_WHOLE_TEXT, len(message))) + message


async def _asked(reader: asyncio.StreamReader, firefox: Any, playwright: Any, scheme: str) -> None:
    while True:
        frame, message = await next_frame(reader)
        answer = answer_to(message, scheme)
        to, what = (firefox, frame) if answer is None else (playwright, text_frame(answer))
        to.write(what)
        await to.drain()


async def _answered(reader: asyncio.StreamReader, playwright: Any) -> None:
    while True:
        frame, _ = await next_frame(reader)
        playwright.write(frame)
        await playwright.drain()


async def _bridge(port: int, scheme: str, reader: asyncio.StreamReader, playwright: asyncio.StreamWriter) -> None:
    from_firefox, firefox = await asyncio.open_connection("127.0.0.1", port)
    try:
        handshake = await reader.readuntil(b"\r\n\r\n")
        firefox.write(_HOST.sub(b"Host: 127.0.0.1:%d" % port, handshake))  # it refuses another port than its own
        playwright.write(await from_firefox.readuntil(b"\r\n\r\n"))
        ways = [_asked(reader, firefox, playwright, scheme), _answered(from_firefox, playwright)]
        tasks = [asyncio.ensure_future(way) for way in ways]
        done, left = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in left:
            task.cancel()
        for task in done:
            if not isinstance(task.exception(), _CLOSED):
                task.result()
    finally:
        firefox.close()
        playwright.close()


async def run(scheme: str, command: Iterable[str]) -> int:
    """Return the exit status of Firefox, which does not outlive its connection to playwright."""
    firefox = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE, limit=LINE_MAX)
    assert firefox.stderr is not None

    async def serve(port: int, reader: asyncio.StreamReader, playwright: asyncio.StreamWriter) -> None:
        try:
            await _bridge(port, scheme, reader, playwright)
        finally:
            with contextlib.suppress(ProcessLookupError):  # it has ended by itself
                firefox.terminate()

    while line := await firefox.stderr.readline():
        said = line.decode(errors="replace")
        if found := LISTENS.search(said):
            server = await asyncio.start_server(partial(serve, int(found[1])), "127.0.0.1", 0)
            said = f"WebDriver BiDi listening on ws://127.0.0.1:{server.sockets[0].getsockname()[1]}\n"
        sys.stderr.write(said)
        sys.stderr.flush()
    return await firefox.wait()


if __name__ == "__main__":
    sys.exit(asyncio.run(run(sys.argv[1], sys.argv[2:])))
