"""The beginning of a connection whose user must be known: certificate, Unix socket, SASL.

The connection that serves calls is made at once and counted, but hears nothing until the first byte.  If that begins
SASL (``sasl``), the negotiation is done here; then, or at once, the transport gets the connection as its protocol, and
this class is out of the way.  Over HTTP each request may bring its own credentials (``http_sign_in``).

A negotiation may take SIGN_IN_S, and its unread bytes are at most two messages (``sasl.PAYLOAD_BYTES``).  Owned by the
loop.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
from contextlib import suppress
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, cast

from columnar.errors import ColumnarError, SignInRefused
from columnar.model.accounts import ROOT, checked_user_name
from columnar.runtime.faults import surviving
from columnar.security.scram import ScramServer
from columnar.security.sign_in import SignIn, origin_of
from columnar.wire.http_sign_in import HttpSignIn
from columnar.wire.sasl import BAD, COMPLETED, ERROR, ActAs, Reply, SaslServer, Verify, begins_sasl, sasl_message
from columnar.wire.sockets import is_private, name_of_peer

if TYPE_CHECKING:
    from columnar.wire.connection import Connection

SIGN_IN_S: Final = 20.0  # for a negotiation, the wait for a hash included
_PEER_CREDENTIALS: Final = Struct("3i")
_log = logging.getLogger("columnar.audit")


class SignInProtocol:
    """An ``asyncio.Protocol`` in all but name."""

    def __init__(self, sign_in: SignIn, connection: Connection, *, is_background: bool = False) -> None:
        """Pass ``is_background`` for a socket of the store's own processes, acting as the store until they sign in."""
        self._sign_in = sign_in
        self._connection = connection
        self._is_background = is_background
        self._sasl: SaslServer | None = None
        self._transport = cast(asyncio.Transport, None)  # from connection_made on
        self._peer = "?"
        self._origin = ""
        self._user = ""  # of the certificate, the Unix socket, or SASL
        self._task: asyncio.Task[None] | None = None  # that waits for a name or a hash
        self._timer: asyncio.TimerHandle | None = None
        self._pending = b""  # received while a task waits
        self._is_over = False  # the connection has the transport

    # --- what the loop calls -----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._peer = name_of_peer(transport)
        self._origin = origin_of(self._peer.rpartition(":")[0].strip("[]"))
        connection = self._connection
        connection.connection_made(transport)
        if self._is_background:
            return
        uid = uid_of(transport)
        if uid is None:
            self._set_user(self._by_certificate(transport))
            return
        known = self._sign_in.known_uid(uid)
        if known is not None:
            self._set_user(known)
        else:
            self._wait_for(self._find_name(uid))

    def data_received(self, data: bytes) -> None:
        if self._task is not None:
            self._pending += data
            self._transport.pause_reading()
        elif self._sasl is not None:
            self._negotiate(data)
        elif begins_sasl(data):
            self._begin_sasl(data)
        else:
            self._hand_over(data)

    def eof_received(self) -> bool:
        return self._connection.eof_received()

    def pause_writing(self) -> None:
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._connection.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_wait()
        self._connection.connection_lost(exc)

    # --- certificate, Unix socket ------------------------------------------------------------------------

    @property
    def is_private(self) -> bool:
        """Whether nobody on the network reads what the client sends."""
        return is_private(self._transport)

    def _by_certificate(self, transport: asyncio.BaseTransport) -> str:
        tls = transport.get_extra_info("ssl_object")
        der = tls.getpeercert(binary_form=True) if tls is not None else None
        return self._sign_in.by_certificate(der, self._peer) if der else ""

    async def _find_name(self, uid: int) -> None:
        self._set_user(await self._sign_in.by_uid(uid, self._peer))

    # --- SASL --------------------------------------------------------------------------------------------

    def _begin_sasl(self, data: bytes) -> None:
        scram = ScramServer(self._sign_in.scram_verifier, secrets.token_urlsafe(18))
        self._sasl = SaslServer(scram, takes_plain=self.is_private)
        why = f"no sign-in within {SIGN_IN_S:g} s"
        self._timer = asyncio.get_running_loop().call_later(SIGN_IN_S, self._refuse, ERROR, why)
        self._negotiate(data)

    def _negotiate(self, data: bytes) -> None:
        sasl = self._sasl
        assert sasl is not None
        sasl.feed(data)
        try:
            while (step := sasl.next_step()) is not None:
                if isinstance(step, Reply):
                    self._sign_in.begin_attempt(sasl.user, self._origin, self._peer)
                    self._transport.write(step.data)
                elif isinstance(step, Verify):
                    self._wait_for(self._verify(step))
                    return
                elif isinstance(step, ActAs):
                    self._signed_in(self._act_as(step.user), COMPLETED)
                    return
                else:
                    self._sign_in.succeeded(step.user, step.user, self._origin, self._peer, "SCRAM")
                    self._signed_in(step.user, step.data)
                    return
        except SignInRefused as refusal:
            self._refuse(BAD, refusal.text)
        except ColumnarError as error:
            self._refuse(ERROR, error.text)

    async def _verify(self, step: Verify) -> None:
        try:
            user = await self._sign_in.verify(step.credentials, self._origin, self._peer)
        except SignInRefused as refusal:
            self._refuse(BAD, refusal.text)
        except ColumnarError as error:
            self._refuse(ERROR, error.text)
        else:
            self._signed_in(user, COMPLETED)

    def _act_as(self, user: str) -> str:
        """Return the user as whom the client of a Unix socket may act.  Raises SignInRefused, IllegalArgument."""
        uid = uid_of(self._transport)
        own = "" if uid is None else self._user or self._sign_in.known_uid(uid)  # a background socket has no user yet
        if not own:
            raise SignInRefused("EXTERNAL is for users of a Unix socket whom the operating system names")
        if user in ("", own):
            return own
        if own != ROOT:
            raise SignInRefused(f"{own} may not act as another user, as root may: sign in with a password or token")
        _log.info("%s: root acts as %s", self._peer, checked_user_name(user))
        return user

    def _signed_in(self, user: str, answer: bytes) -> None:
        sasl = self._sasl
        assert sasl is not None
        self._set_user(user)
        self._transport.write(answer)
        rest, self._pending = sasl.take_rest() + self._pending, b""
        if not self._transport.is_closing():
            self._transport.resume_reading()  # before the connection reads, which pauses and resumes from here on
        self._hand_over(rest)

    def _refuse(self, status: int, why: str) -> None:
        _log.warning("%s: closed: %s", self._peer, why)
        self._end_timer()
        self._transport.write(sasl_message(status, why.encode()))
        self._transport.close()

    def _set_user(self, user: str) -> None:
        self._user = user
        self._connection.set_user(user)

    def _take_http(self) -> None:
        """Have each request of the connection name its user."""
        connection = self._connection
        requests = HttpSignIn(
            self._sign_in,
            self._origin,
            self._peer,
            self._user,
            is_private=self.is_private,
            pause_calls=connection.pause_calls,
            resume_calls=connection.resume_calls,
            resume=connection.rest,
        )
        connection.take_users(requests)

    # --- parts -------------------------------------------------------------------------------------------

    def _hand_over(self, data: bytes) -> None:
        """Give the transport to the connection, with the bytes that came."""
        self._end_timer()
        self._is_over = True
        is_http = bool(data) and chr(data[0]).isupper()  # a method's name in capitals; Thrift never begins so
        if is_http and not self._is_background:
            self._take_http()
        self._transport.set_protocol(cast(asyncio.BaseProtocol, self._connection))
        if data:
            self._connection.data_received(data)

    def _wait_for(self, work: Any) -> None:
        self._task = asyncio.ensure_future(work)
        self._task.add_done_callback(self._waited)

    def _waited(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if task.cancelled():
            return
        if task.exception() is not None:
            with surviving("sign-in"):
                task.result()
            self._refuse(ERROR, "the sign-in met a fault of the server")
            return
        data, self._pending = self._pending, b""
        if not (self._is_over or self._transport.is_closing()):
            self._transport.resume_reading()
            if data:
                self.data_received(data)

    def _end_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end_wait(self) -> None:
        self._end_timer()
        if self._task is not None:
            self._task.cancel()


def uid_of(transport: asyncio.BaseTransport) -> int | None:
    """Return the uid of the process at the other end of a Unix socket; None for other sockets."""
    sock = transport.get_extra_info("socket")
    if sock is None or sock.family != socket.AF_UNIX:
        return None
    with suppress(OSError):
        found = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER_CREDENTIALS.size)
        return int(_PEER_CREDENTIALS.unpack(found)[1])
    return -1  # nobody's
