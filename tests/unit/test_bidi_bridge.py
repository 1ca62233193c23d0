"""The bridge to a Firefox: it answers one command for the colours that the browser has, and changes nothing else."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys

import pytest

from tests.support import bidi_bridge
from tests.support.bidi_bridge import COMMAND, COMMAND_BYTES, FRAME_MAX, LISTENS, answer_to, next_frame, text_frame

# It tells what it was asked by, answers nothing, and never ends by itself.
DEAF_FIREFOX = """
import signal, socket, sys
listening = socket.create_server(("127.0.0.1", 0))
port = listening.getsockname()[1]
print(f"WebDriver BiDi listening on ws://127.0.0.1:{port}", file=sys.stderr, flush=True)
connected, _ = listening.accept()
asked = connected.recv(1_000).decode()
is_own = f"Host: 127.0.0.1:{port}\\r\\n" in asked
connected.sendall(f"HTTP/1.1 101 Switching\\r\\nX-Own: {is_own}\\r\\n\\r\\n".encode())
while connected.recv(1_000):
    pass
signal.alarm(600)  # if the test is killed
signal.pause()
"""
MASK = b"\x01\x80\x7f\xff"


def command(scheme: str | None, method: str = COMMAND, **more: object) -> bytes:
    features = {} if scheme is None else {"prefers-color-scheme": scheme}
    return json.dumps({"id": 7, "method": method, "params": {"features": features, **more}}).encode()


def test_it_answers_for_its_own_colours_alone() -> None:
    for scheme in ("light", None):
        assert json.loads(answer_to(command(scheme), "light") or b"") == {"type": "success", "id": 7, "result": {}}
    assert answer_to(command("dark"), "light") is None
    assert answer_to(command("light", method="script.evaluate", text=COMMAND), "light") is None
    assert answer_to(command("light", text="x" * COMMAND_BYTES), "light") is None
    assert answer_to(b"", "light") is None


def framed(payload: bytes, first: int = 0x81, *, is_masked: bool = True) -> bytes:
    """A frame as RFC 6455 has it."""
    size, bit = len(payload), 0x80 * is_masked
    if size < 126:
        head = bytes((first, bit | size))
    elif size < 65_536:
        head = bytes((first, bit | 126)) + size.to_bytes(2)
    else:
        head = bytes((first, bit | 127)) + size.to_bytes(8)
    if not is_masked:
        return head + payload
    return head + MASK + bytes(byte ^ MASK[at % 4] for at, byte in enumerate(payload))


def read(sent: bytes) -> tuple[bytes, bytes]:
    async def reading() -> tuple[bytes, bytes]:
        reader = asyncio.StreamReader()
        reader.feed_data(sent + b"the next")
        reader.feed_eof()
        return await next_frame(reader)

    return asyncio.run(reading())


@pytest.mark.parametrize("size", [0, 1, 125, 126, 4_000, 4_001, 65_535, 65_536])
@pytest.mark.parametrize("is_masked", [True, False])
def test_frames_are_passed_on_as_they_came(size: int, is_masked: bool) -> None:
    payload = bytes(number % 251 for number in range(size))
    frame = framed(payload, is_masked=is_masked)
    assert read(frame) == (frame, payload if size <= COMMAND_BYTES else b"")
    for first in (0x01, 0x80, 0x82, 0x88):  # a part of a message, bytes, the end
        other = framed(payload, first, is_masked=is_masked)
        assert read(other) == (other, b"")


def test_firefox_is_asked_by_its_own_address_and_ends_with_the_connection() -> None:
    bridge = [sys.executable, bidi_bridge.__file__, "light", sys.executable, "-c", DEAF_FIREFOX]
    with subprocess.Popen(bridge, stderr=subprocess.PIPE, text=True, process_group=0) as process:
        try:
            assert process.stderr is not None
            found = LISTENS.search(process.stderr.readline())
            assert found is not None
            with socket.create_connection(("127.0.0.1", int(found[1])), timeout=20) as playwright:
                playwright.sendall(b"GET /session HTTP/1.1\r\nHost: 127.0.0.1:1\r\nUpgrade: websocket\r\n\r\n")
                assert b"X-Own: True" in playwright.recv(1_000)
                playwright.sendall(framed(command("light")))
                answer = answer_to(command("light"), "light")
                assert answer is not None
                assert playwright.recv(1_000) == text_frame(answer)
            process.wait(20)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def test_a_frame_without_bound_is_refused_and_an_answer_is_one() -> None:
    with pytest.raises(ConnectionError, match="at most"):
        read(b"\x81\x7f" + (FRAME_MAX + 1).to_bytes(8))
    answer = answer_to(command("light"), "light")
    assert answer is not None
    assert read(text_frame(answer)) == (framed(answer, is_masked=False), answer)
    found = LISTENS.search("WebDriver BiDi listening on ws://127.0.0.1:9222\n")
    assert found is not None
    assert found[1] == "9222"
