"""Bytes that no good HTTP client sends, by a seed: smuggling, mutations, lengths that lie, pipelines, cut ends."""

from __future__ import annotations

import random
from typing import Final

LENGTHS: Final = (
    b"Content-Length: %d",
    b"Content-Length: %d\r\nContent-Length: 5",
    b"Content-Length: 0%d",
    b"Content-Length: +%d",
    b"Content-Length : %d",
    b"Content-Length: %d, 5",
    b"Content-Length: %d\r\nTransfer-Encoding: chunked",
    b"Transfer-Encoding: chunked\r\nContent-Length: %d",
    b"Content_Length: %d",
    b"X: y\r\n Content-Length: %d",
    b"X: y\nContent-Length: %d",
    b"Content-Length: %d\x00",
    b"Content-Length:\t%d\t",
    b"Expect: 100-continue\r\nContent-Length: %d",
    b"Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: %d",
    b"Connection: close\r\nContent-Length: %d",
    b"Content-Length: 9999999999%d",
)
CODINGS: Final = (
    b"chunked",
    b"Chunked",
    b"chunked, chunked",
    b"gzip, chunked",
    b"chunked, identity",
    b"xchunked",
    b" chunked",
    b"\x0bchunked",
    b"chunked\r\nTransfer-Encoding: x",
    b"chunked\r\nConnection: Upgrade\r\nUpgrade: websocket",
)
LINES: Final = (
    b"POST /p HTTP/1.1",
    b"GET /p HTTP/1.1",
    b"HEAD /p HTTP/1.1",
    b"PUT /p?q=%00 HTTP/1.1",
    b"OPTIONS * HTTP/1.1",
    b"DELETE http://other/p HTTP/1.1",
    b"POST /p HTTP/1.0",
    b"POST /p HTTP/2.0",
    b"POST /p",
    b"CONNECT a:1 HTTP/1.1",
    b"POST  /p  HTTP/1.1",
    b"POST /p#f HTTP/1.1",
    b"BREW /p HTTP/1.1",
)
CHUNKS: Final = (
    b"%x\r\n",
    b"%X\r\n",
    b"0%x\r\n",
    b"%x;a=b\r\n",
    b"%x \r\n",
    b"%x\n",
    b"-%x\r\n",
    b"%xg\r\n",
    b"ffffff%x\r\n",
)


def chunks(rng: random.Random, body: bytes) -> bytes:
    """Return the body in chunks, most of which are right."""
    step, found = rng.randrange(1, 9), b""
    for at in range(0, len(body), step):
        piece = body[at : at + step]
        size = CHUNKS[0] if rng.random() < 0.9 else rng.choice(CHUNKS)
        found += size % len(piece) + piece + (b"\r\n" if rng.random() < 0.97 else b"")
    return found + rng.choice((b"0\r\n\r\n", b"0\r\n\r\n", b"0\r\nTrailer: x\r\n\r\n", b"0\n\n", b""))


def request(rng: random.Random, body: bytes) -> bytes:
    """Return a request with ``body``, which is right half of the time."""
    is_right = rng.random() < 0.5
    line = LINES[0] if is_right else rng.choice(LINES)
    head = [line, b"Host: localhost"] if is_right or rng.random() < 0.9 else [line]
    head += [b"X-%d: %s" % (number, b"v" * rng.randrange(40)) for number in range(rng.randrange(4))]
    if rng.random() < 0.02:
        head += [b"X: y"] * rng.randrange(400)
    if rng.random() < 0.02:
        head.append(b"Long: " + b"x" * rng.choice((100, 50_000, 150_000)))  # none within a piece of the bound
    if rng.random() < 0.4:
        coding = CODINGS[0] if is_right else rng.choice(CODINGS)
        return b"\r\n".join([*head, b"Transfer-Encoding: " + coding, b"", b""]) + chunks(rng, body)
    length = LENGTHS[0] if is_right else rng.choice(LENGTHS)
    size = len(body) if is_right or rng.random() < 0.7 else rng.randrange(3 * len(body) + 2)
    return b"\r\n".join([*head, length % size, b"", b""]) + body


def hostile_bytes(rng: random.Random, body: bytes = b"a body of some bytes") -> bytes:
    """Return what a client sends on one connection: a few requests, perhaps mutated, perhaps cut."""
    wire = bytearray(b"".join(request(rng, body) for _ in range(rng.choice((1, 1, 2, 5, 30)))))
    if rng.random() < 0.3:
        for _ in range(rng.randrange(1, 6)):
            wire[rng.randrange(4, len(wire))] = rng.randrange(256)
    if rng.random() < 0.3:
        del wire[rng.randrange(4, len(wire)) :]
    return bytes(wire)
