"""A connection to one server, for a client that has several: a call is sent and its answer received in two steps.

The two steps tell what a failure means:

    NotSent                     the server cannot have carried out the call, because it did not get all of it
    BROKEN, on receipt          the connection ended before the answer: the outcome is unknown
    any other error             the server's answer, or arguments that cannot be encoded

A link is opened once.  It is closed by itself when it breaks, and when a call ended before its answer was read, by an
interrupt for example; ``is_usable`` then says so, and another link is made in its place.
"""

from __future__ import annotations

import select
import socket
import ssl
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from happybase.connection import Hbase
from thriftpy2.protocol.cybin import ProtocolError
from thriftpy2.protocol.exc import TProtocolException
from thriftpy2.thrift import TApplicationException, TClient, args_to_kwargs
from thriftpy2.transport import TTransportException

from columnar.client.addresses import Address
from columnar.client.errors import DECLARED, as_ours
from columnar.client.store_socket import StoreSocket
from columnar.client.tls import TlsSocket
from columnar.wire.idl import SERVICE
from columnar.wire.sockets import ENDED

if TYPE_CHECKING:
    from columnar.client.sasl_socket import ClientSignIn

BROKEN: Final = (TTransportException, TProtocolException, ProtocolError, OSError, EOFError)
HBASE: Final = 0  # happybase's definition of the service, with happybase's structs
EXTENSION: Final = 1  # ours
SERVICES: Final = (Hbase, SERVICE)


class Call(NamedTuple):
    service: int  # HBASE or EXTENSION
    method: str
    args: Sequence[Any]  # in the order of the IDL


class NotSent(Exception):
    """The server did not get the whole call, so nothing was done; ``cause`` says why."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


class StoreClient(TClient):  # type: ignore[misc]
    """thriftpy2's client, which raises our errors."""

    def _recv(self, _api: str) -> Any:
        try:
            return super()._recv(_api)
        except DECLARED as error:
            raise as_ours(error) from None
        except TApplicationException as error:
            if not isinstance(error.message, bytes):
                raise
            # bytes if replies are not decoded; then str(error) fails
            raise TApplicationException(error.type, error.message.decode(errors="replace")) from None

    def send_call(self, method: str, args: Sequence[Any]) -> None:
        """Send a call.  Raises TApplicationException, before anything is sent, if a required argument is left out."""
        spec = getattr(self._service, method + "_args").thrift_spec
        try:
            named = args_to_kwargs(spec, *args)
        except ValueError as error:
            text = f"{error.args[0]} is required argument for {self._service.__name__}.{method}"
            raise TApplicationException(TApplicationException.UNKNOWN_METHOD, text) from None
        self._send(method, **named)

    def receive_answer(self, method: str) -> Any:
        return self._recv(method)


class LinkSettings(NamedTuple):
    transport_class: Any  # of thriftpy2
    protocol_class: Any
    timeout_ms: int | None  # for each step of a call; None: for ever
    tls: ssl.SSLContext | None
    sign_in: ClientSignIn | None = None


def _transport(sock: StoreSocket, settings: LinkSettings) -> Any:
    if settings.sign_in is None:
        return settings.transport_class(sock)
    from columnar.client.sasl_socket import signing_in  # most stores have no users

    return signing_in(sock, settings.sign_in)


class StoreLink:
    def __init__(self, address: Address, settings: LinkSettings, connect_ms: int | None) -> None:
        """Pass ``connect_ms``, the time for connecting, or None for that of a call."""
        self.address = address  # constant
        self.used_s = 0.0  # when its owner last used it
        options = {
            "socket_timeout": settings.timeout_ms,
            "connect_timeout": connect_ms,
            "socket_family": socket.AF_INET6 if ":" in address.host else socket.AF_INET,
        }
        self._socket: StoreSocket = (
            TlsSocket(settings.tls, address.host, address.port, **options)
            if settings.tls is not None
            else StoreSocket(address.host, address.port, **options)
        )
        self._transport = _transport(self._socket, settings)
        protocol = settings.protocol_class(self._transport, decode_response=False)
        self._clients = [StoreClient(service, protocol) for service in SERVICES]
        self._ended: select.poll | None = None  # made with the connection
        self.waits = False  # a call was sent, and its answer is not read

    def connect(self) -> None:
        """Connect; once.  Raises an error of BROKEN, or WrongArgument if the address may not see a token."""
        self._transport.open()
        sock = self._socket.sock
        sock.settimeout(self._socket.socket_timeout)
        self._ended = select.poll()
        self._ended.register(sock.fileno(), ENDED)

    def note_use(self, now_s: float) -> None:
        self.used_s = now_s

    @property
    def is_usable(self) -> bool:
        """Whether a call may be sent: the server has not ended the connection as far as the kernel knows; some 1 us."""
        return self._socket.sock is not None and not self.waits and self._ended is not None and not self._ended.poll(0)

    def send(self, call: Call) -> None:
        """Send a call.  Raises NotSent; closes the link if it raises anything."""
        try:
            self._clients[call.service].send_call(call.method, call.args)
        except BROKEN as error:
            self.close()
            raise NotSent(error) from error
        except BaseException:
            self.close()
            raise
        self.waits = True

    def receive(self, call: Call) -> Any:
        """Return the answer to the call that was sent, or raise its error; closes the link if no answer was read."""
        try:
            answer = self._clients[call.service].receive_answer(call.method)
        except BROKEN:
            self.close()
            raise
        except (*DECLARED, TApplicationException):
            self.waits = False
            raise
        except BaseException:
            self.close()
            raise
        self.waits = False
        return answer

    def call(self, call: Call) -> Any:
        self.send(call)
        return self.receive(call)

    def close(self) -> None:
        if self._socket.sock is not None:
            self._transport.close()
