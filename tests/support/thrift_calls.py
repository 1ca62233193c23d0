"""Calls of both services as bytes, in every transport and protocol, and their replies, over sockets of the loop."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from thriftpy2.protocol.compact import TCompactProtocol
from thriftpy2.protocol.cybin import TCyBinaryProtocol
from thriftpy2.transport import TMemoryBuffer
from thriftpy2.transport.memory import TCyMemoryBuffer

from columnar.wire.codec import read_message_begin
from columnar.wire.detect import Protocol, Speech
from columnar.wire.framing import HEAD_BYTES
from columnar.wire.idl import SERVICE
from columnar.wire.walker import BinaryWalker, CompactWalker, Walker

SPEECHES = [Speech(framed, protocol) for framed in (False, True) for protocol in Protocol]
SPEECHES += [Speech(False, protocol, http=True) for protocol in Protocol]
FRAMED = Speech(True, Protocol.BINARY)


def packed(speech: Speech, service: Any, name: str, args: tuple[Any, ...], seqid: int = 7) -> bytes:
    """Return a packed call; arguments are in the order of the IDL."""
    binary = speech.protocol is Protocol.BINARY
    buffer = TCyMemoryBuffer() if binary else TMemoryBuffer()
    protocol = TCyBinaryProtocol(buffer) if binary else TCompactProtocol(buffer)
    kind = getattr(service, name + "_args")
    names = [kind.thrift_spec[number][1] for number in sorted(kind.thrift_spec)]
    protocol.write_message_begin(name, 1, seqid)
    protocol.write_struct(kind(**dict(zip(names, args, strict=False))))
    return wrapped(speech, buffer.getvalue())


def wrapped(speech: Speech, message: bytes) -> bytes:
    if speech.http:
        head = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-thrift\r\nContent-Length: %d\r\n\r\n"
        return head % len(message) + message
    return struct.pack(">I", len(message)) + message if speech.framed else message


@dataclass(frozen=True, slots=True)
class Reply:
    kind: int  # 2 a reply, 3 an application's exception
    seqid: int
    result: Any  # the struct: ``success``, or a declared exception in its field

    @property
    def value(self) -> Any:
        """Return the value of a successful call."""
        assert self.kind == 2, self.result
        errors = [value for name, value in vars(self.result).items() if name != "success" and value is not None]
        assert not errors, errors
        return getattr(self.result, "success", None)

    @property
    def error(self) -> Any:
        assert self.kind == 2, self.result
        return next(value for name, value in vars(self.result).items() if name != "success" and value is not None)

    @property
    def said(self) -> str:
        """Return the message of the declared exception with which the call failed."""
        message = self.error.message
        return message.decode() if isinstance(message, bytes) else message


def read(speech: Speech, service: Any, message: bytes) -> Reply:
    from thriftpy2.thrift import TApplicationException

    binary = speech.protocol is Protocol.BINARY
    buffer = TCyMemoryBuffer(message) if binary else TMemoryBuffer(message)
    protocol = TCyBinaryProtocol(buffer) if binary else TCompactProtocol(buffer)
    name, kind, seqid = protocol.read_message_begin()
    result = TApplicationException() if kind == 3 else getattr(service, name + "_result")()
    protocol.read_struct(result)
    return Reply(kind, seqid, result)


class Client:
    """A connection with one transport and protocol."""

    def __init__(
        self, speech: Speech, service: Any, streams: tuple[asyncio.StreamReader, asyncio.StreamWriter]
    ) -> None:
        self.speech, self.service = speech, service
        self._reader, self.writer = streams
        self._seqid = 0

    @classmethod
    async def connected(
        cls, port: int, speech: Speech = FRAMED, service: Any = SERVICE, tls: ssl.SSLContext | None = None
    ) -> Client:
        streams = await asyncio.open_connection("127.0.0.1", port, limit=1 << 26, ssl=tls)
        return cls(speech, service, streams)

    def send(self, name: str, *args: Any) -> None:
        self._seqid += 1
        self.writer.write(packed(self.speech, self.service, name, args, self._seqid))

    async def message(self) -> bytes:
        """Return the next reply, without frame and HTTP."""
        reader = self._reader
        if self.speech.http:
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 "), head
            lines = [line.partition(b":") for line in head.split(b"\r\n")]
            return await reader.readexactly(next(int(v) for k, _, v in lines if k.lower() == b"content-length"))
        if self.speech.framed:
            return await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
        return await self._unframed()

    async def _unframed(self) -> bytes:
        """Return an unframed reply; no other may be under way, because only its last byte shows its end."""
        message, protocol = bytearray(), self.speech.protocol
        walker: Walker | None = None
        while walker is None or not walker.done:
            message += await self._reader.read(1 << 20)
            if walker is None and len(message) > HEAD_BYTES:
                begin = read_message_begin(protocol, bytes(message[:HEAD_BYTES]), 0, HEAD_BYTES)[3]
                walker = BinaryWalker(begin) if protocol is Protocol.BINARY else CompactWalker(begin)
            elif walker is None:
                with suppress(Exception):  # it is not whole yet: thriftpy2 says so in several ways
                    read(self.speech, self.service, bytes(message))
                    break
            if walker is not None:
                walker.walk(message)
        return bytes(message)

    async def reply(self) -> Reply:
        found = read(self.speech, self.service, await self.message())
        assert found.seqid == self._seqid
        return found

    async def call(self, name: str, *args: Any) -> Reply:
        self.send(name, *args)
        return await self.reply()

    async def __call__(self, name: str, *args: Any) -> Any:
        """Return the value that the method answers."""
        return (await self.call(name, *args)).value

    def cut_off(self) -> None:
        """End the connection by a reset: nothing can be sent to the client any more."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    async def close(self) -> None:
        self.writer.close()
        with suppress(ConnectionError):
            await self.writer.wait_closed()
