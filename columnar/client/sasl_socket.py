"""A client's socket that signs in once it is connected: by SASL, SCRAM with a password and PLAIN with a token.

Over a Unix socket a user may sign in without either (EXTERNAL): the operating system vouches for the process.  A
password never leaves the client, and the server proves that it knows the user.  A token is sent as it is, so only
over TLS, a Unix socket or loopback.  Afterwards the connection has framed messages (``wire.sasl``).
"""

from __future__ import annotations

import secrets
from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from thriftpy2.transport import TFramedTransport

from columnar.client.errors import WrongArgument
from columnar.client.store_socket import NotSignedIn, StoreSocket
from columnar.client.tls import TlsSocket
from columnar.errors import ColumnarError
from columnar.security.credentials import plain_message
from columnar.security.scram import ScramClient
from columnar.wire.browsers import is_loopback
from columnar.wire.sasl import COMPLETE, EXTERNAL, HEAD_BYTES, OK, PAYLOAD_BYTES, PLAIN, SCRAM, START, sasl_message


@dataclass(frozen=True, slots=True)
class ClientSignIn:
    """The user and either a password or a token; over a Unix socket neither is needed."""

    user: str
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)

    def check_host(self, host: str, *, has_tls: bool, has_socket: bool) -> None:
        """Raise WrongArgument unless it can be sent to ``host``, or over a Unix socket."""
        is_one = bool(self.password) != bool(self.token)
        if not self.user or not (is_one or (has_socket and not self.password)):
            raise WrongArgument("to sign in give user and password, or user and token")
        if self.token and not (has_tls or has_socket or is_loopback(host)):
            raise WrongArgument("the network could read the token: connect with TLS, or sign in with a password")


def negotiation(sign_in: ClientSignIn) -> Generator[tuple[bytes, int], bytes, None]:
    """Yield what is to be sent, and the status of the answer to it; takes the answers' payloads.

    Ends once the user is signed in.  Raises ColumnarError if the server does not know the user.
    """
    user, token = sign_in.user, sign_in.token
    if not token and not sign_in.password:
        yield sasl_message(START, EXTERNAL) + sasl_message(OK, user.encode()), COMPLETE
        return
    if token:
        yield sasl_message(START, PLAIN) + sasl_message(OK, plain_message(user, token)), COMPLETE
        return
    scram = ScramClient(user, sign_in.password, secrets.token_urlsafe(18))
    challenge = yield sasl_message(START, SCRAM) + sasl_message(OK, scram.first()), OK
    scram.check((yield sasl_message(OK, scram.proof(challenge)), COMPLETE))


def payload_bytes(sign_in: ClientSignIn, head: bytes) -> int:
    """Return the length of the payload behind the head of an answer.  Raises NotSignedIn."""
    length = int.from_bytes(head[1:], "big")
    if length > PAYLOAD_BYTES:
        raise refused(sign_in, "the other side does not speak SASL")
    return length


def checked_payload(sign_in: ClientSignIn, head: bytes, payload: bytes, wanted: int) -> bytes:
    """Return the payload.  Raises NotSignedIn, with the server's reason, unless the answer has the wanted status."""
    if head[0] != wanted:
        raise refused(sign_in, payload.decode(errors="replace") or f"an answer of status {head[0]}")
    return payload


def refused(sign_in: ClientSignIn, why: str) -> NotSignedIn:
    return NotSignedIn(NotSignedIn.NOT_OPEN, f"not signed in as {sign_in.user}: {why}")


def signing_in(inner: StoreSocket, sign_in: ClientSignIn) -> Any:
    """Return a transport over a socket that is not yet open: it signs in when it opens, and is framed."""
    return TFramedTransport(SaslSocket(inner, sign_in))


class SaslSocket:
    """A ``StoreSocket`` in all that a transport calls."""

    def __init__(self, inner: StoreSocket, sign_in: ClientSignIn) -> None:
        self._inner = inner
        self._sign_in = sign_in

    def open(self) -> None:
        """Connect and sign in.  Raises NotSignedIn, with the server's reason, if it refuses the user.

        Raises NotConnected, and WrongArgument if the address may not see the token.
        """
        inner = self._inner
        has_tls, has_socket = isinstance(inner, TlsSocket), bool(inner.unix_socket)
        self._sign_in.check_host(inner.host, has_tls=has_tls, has_socket=has_socket)
        inner.open()
        try:
            self._negotiate()
        except ColumnarError as error:
            self._inner.close()
            raise refused(self._sign_in, error.text) from error
        except BaseException:
            self._inner.close()
            raise

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)  # reads and writes of the transport

    def _negotiate(self) -> None:
        steps = negotiation(self._sign_in)
        with suppress(StopIteration):
            sent, wanted = next(steps)
            while True:
                self._inner.write(sent)
                sent, wanted = steps.send(self._receive(wanted))

    def _receive(self, wanted: int) -> bytes:
        head = self._read_whole(HEAD_BYTES)
        payload = self._read_whole(payload_bytes(self._sign_in, head))
        return checked_payload(self._sign_in, head, payload, wanted)

    def _read_whole(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            data += self._inner.read(size - len(data))
        return data
