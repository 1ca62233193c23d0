"""A connection of an asyncio program to a store: framed Thrift calls, one at a time, over TCP, TLS or a Unix socket.

Invariant A1: a link whose call was cancelled, or ended otherwise before its answer was read, is closed: the next call
would read that answer as its own.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from thriftpy2.protocol import TCyBinaryProtocol
from thriftpy2.thrift import TApplicationException
from thriftpy2.transport.memory import TCyMemoryBuffer

from columnar.client.addresses import Address
from columnar.client.errors import DECLARED, NotColumnar
from columnar.client.store_link import StoreClient
from columnar.client.store_socket import NoAnswer, NotConnected
from columnar.errors import ColumnarError
from columnar.limits import MESSAGE_BYTES
from columnar.wire.idl import SERVICE

if TYPE_CHECKING:
    from columnar.client.sasl_socket import ClientSignIn

REPLY_BYTES: Final = 4 * MESSAGE_BYTES  # a larger one is no answer to a call of ours
BUFFER_BYTES: Final = 1024 * 1024  # received and not yet read, after which the socket waits
_HEAD: Final = Struct(">I")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A store's addresses, and what a client needs to come in."""

    addresses: Sequence[Address]  # tried in this order
    unix_socket: str  # in the place of addresses, if it is not empty
    tls: ssl.SSLContext | None
    sign_in: ClientSignIn | None
    timeout_ms: int | None  # for connecting, and for an answer; None: for ever


class AsyncLink:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, place: str) -> None:
        self._reader = reader
        self._writer = writer
        self._place = place
        self.is_open = True

    @classmethod
    async def connect(cls, endpoint: Endpoint) -> AsyncLink:
        """Connect to the first address that answers, and sign in.  Raises NotConnected, NotSignedIn."""
        failure = NotConnected(NotConnected.NOT_OPEN, "there is no address")
        for address in endpoint.addresses:
            try:
                return await cls._connect_to(endpoint, address)
            except NotConnected as error:
                failure = error
        raise failure

    @classmethod
    async def _connect_to(cls, endpoint: Endpoint, address: Address) -> AsyncLink:
        place = endpoint.unix_socket or str(address)
        seconds = None if endpoint.timeout_ms is None else endpoint.timeout_ms / 1_000
        try:
            async with asyncio.timeout(seconds):
                link = cls(*await _streams(endpoint, address), place)
                try:
                    if endpoint.sign_in is not None:
                        await link._negotiate(endpoint.sign_in)
                except BaseException:
                    link.close()
                    raise
                return link
        except NotConnected:
            raise
        except TimeoutError:
            why = "it did not answer in time"
        except (OSError, EOFError, ValueError) as error:  # a ValueError of a host that no certificate can name
            why = getattr(error, "verify_message", "") or getattr(error, "strerror", None) or str(error)
        raise NotConnected(NotConnected.NOT_OPEN, f"cannot connect to {place}: {why}")

    async def _negotiate(self, sign_in: ClientSignIn) -> None:
        from columnar.client import sasl_socket  # most stores have no users
        from columnar.wire.sasl import HEAD_BYTES

        steps = sasl_socket.negotiation(sign_in)
        try:
            with suppress(StopIteration):
                sent, wanted = next(steps)
                while True:
                    self._writer.write(sent)
                    head = await self._reader.readexactly(HEAD_BYTES)
                    payload = await self._reader.readexactly(sasl_socket.payload_bytes(sign_in, head))
                    sent, wanted = steps.send(sasl_socket.checked_payload(sign_in, head, payload, wanted))
        except ColumnarError as error:
            raise sasl_socket.refused(sign_in, error.text) from error

    async def call_method(self, method: str, args: Sequence[Any], timeout_s: float | None) -> Any:
        """Return the answer of a method of the extension, or raise its error.

        Raises NoAnswer, NotConnected and NotColumnar.
        """
        sent = TCyMemoryBuffer()
        StoreClient(SERVICE, TCyBinaryProtocol(sent)).send_call(method, args)
        message = sent.getvalue()
        try:
            reply = await self._exchange(message, timeout_s)
        except BaseException:
            self.close()  # A1
            raise
        client = StoreClient(SERVICE, TCyBinaryProtocol(TCyMemoryBuffer(reply), decode_response=False))
        try:
            return client.receive_answer(method)
        except TApplicationException as error:
            if error.type == TApplicationException.UNKNOWN_METHOD:
                raise NotColumnar(method, self._place) from None
            raise
        except DECLARED:
            raise
        except BaseException:
            self.close()  # it was no answer to this call
            raise

    async def _exchange(self, message: bytes, timeout_s: float | None) -> bytes:
        try:
            async with asyncio.timeout(timeout_s):
                self._writer.write(_HEAD.pack(len(message)) + message)
                await self._writer.drain()
                (size,) = _HEAD.unpack(await self._reader.readexactly(_HEAD.size))
                if size <= REPLY_BYTES:
                    return await self._reader.readexactly(size)
        except TimeoutError as error:
            # The system itself raises ETIMEDOUT if the server can no longer be reached.
            raise (NoAnswer(timeout_s or 0.0) if error.errno is None else _ended(self._place, error)) from None
        except (OSError, EOFError) as error:
            raise _ended(self._place, error) from error
        raise NotConnected(NotConnected.UNKNOWN, f"{self._place} does not speak Thrift: an answer of {size} bytes")

    def close(self) -> None:
        """Close at once."""
        if self.is_open:
            self.is_open = False
            self._writer.transport.abort()


async def _streams(endpoint: Endpoint, address: Address) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if endpoint.unix_socket:
        return await asyncio.open_unix_connection(endpoint.unix_socket, limit=BUFFER_BYTES)
    host, port = address
    if endpoint.tls is None:
        return await asyncio.open_connection(host, port, limit=BUFFER_BYTES)
    return await asyncio.open_connection(
        host, port, limit=BUFFER_BYTES, ssl=endpoint.tls, server_hostname=host
    )  # fmt: skip


def _ended(place: str, error: Exception) -> NotConnected:
    why = getattr(error, "strerror", None) or getattr(error, "reason", None) or "it has ended the connection"
    return NotConnected(NotConnected.END_OF_FILE, f"{place}: {why}")
