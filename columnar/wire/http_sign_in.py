"""Sign-in of HTTP requests: ``Authorization``, Basic or Bearer, names the user of each; else it is the connection's.

The message of a request whose password must be hashed first waits here; the connection serves nothing meanwhile.
Owned by the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from columnar.errors import ColumnarError, SignInRefused
from columnar.security.credentials import Credentials, of_authorization
from columnar.security.sign_in import SignIn, origin_of
from columnar.wire.codec import Request
from columnar.wire.framing import Hangup, Refusal, RequestStream, Whole, YieldLoop
from columnar.wire.http.answers import closing_answer, unauthorized
from columnar.wire.http.exchange import Client
from columnar.wire.http.exchange import Request as HttpRequest
from columnar.wire.sockets import name_of_peer

Next = Request | Refusal | Whole | YieldLoop | None


def sent_credentials(authorization: str, *, is_private: bool) -> Credentials:
    """Return the credentials of the header.  Raises SignInRefused; ``is_private``: nobody on the network reads them."""
    if not is_private:
        raise SignInRefused("the network can read what you send: sign in over TLS, or from this machine")
    return of_authorization(authorization)


class HttpUsers:
    """The users of an HTTP port (``http.server.Users``): of certificates, and of credentials of each request."""

    def __init__(self, sign_in: SignIn) -> None:
        self._sign_in = sign_in

    def user_of_connection(self, transport: asyncio.BaseTransport) -> str:
        tls = transport.get_extra_info("ssl_object")
        der = tls.getpeercert(binary_form=True) if tls is not None else None
        return self._sign_in.by_certificate(der, name_of_peer(transport)) if der else ""

    def user_of_request(self, request: HttpRequest, client: Client) -> str | Awaitable[str]:
        authorization = request.headers.get("authorization", "")
        if not authorization:
            return client.user
        credentials = sent_credentials(authorization, is_private=client.is_private)
        origin = origin_of(client.peer.rpartition(":")[0].strip("[]"))
        return self._sign_in.remembered(credentials) or self._sign_in.verify(credentials, origin, client.peer)


class HttpSignIn:
    def __init__(
        self,
        sign_in: SignIn,
        origin: str,
        peer: str,
        user: str,
        *,
        is_private: bool,
        pause_calls: Callable[[int], None],
        resume_calls: Callable[[], None],
        resume: Callable[[], None],
    ) -> None:
        """``user``: of requests without credentials.  ``is_private``: nobody on the network reads what is sent.

        ``pause_calls`` has the connection serve nothing and count the bytes of the message that waits here;
        ``resume_calls`` ends that, and ``resume`` has it call ``next_message`` soon.
        """
        self._sign_in = sign_in
        self._origin = origin
        self._peer = peer
        self._is_private = is_private
        self._pause_calls = pause_calls
        self._resume_calls = resume_calls
        self._resume = resume
        self._user = user
        self._task: asyncio.Task[str] | None = None
        self._waiting: Next = None  # the message whose user is being verified

    def next_message(self, stream: RequestStream, set_user: Callable[[str], None]) -> Next:
        """Return the next message once its user is set; None if bytes or a hash are needed.  Raises Hangup."""
        if self._waiting is not None:
            return self._take_verified(set_user)
        message = stream.next()
        http = stream.http
        if http is None or message is None or isinstance(message, YieldLoop):
            return message
        if not http.authorization:
            set_user(self._user)
            return message
        return self._begin(message, http.authorization, set_user)

    def _begin(self, message: Request | Refusal | Whole, authorization: str, set_user: Callable[[str], None]) -> Next:
        try:
            credentials = sent_credentials(authorization, is_private=self._is_private)
        except SignInRefused as refusal:
            raise _unauthorized(refusal.text) from None
        user = self._sign_in.remembered(credentials)
        if user:
            set_user(user)
            return message
        self._waiting = message
        self._pause_calls(_size_bytes(message))
        self._task = asyncio.ensure_future(self._verify(credentials))
        self._task.add_done_callback(self._verified)
        return None

    async def _verify(self, credentials: Credentials) -> str:
        return await self._sign_in.verify(credentials, self._origin, self._peer)

    def _verified(self, task: asyncio.Task[str]) -> None:
        if not task.cancelled():
            task.exception()  # seen; ``_take_verified`` raises it
        self._resume_calls()
        self._resume()

    def _take_verified(self, set_user: Callable[[str], None]) -> Next:
        task, message = self._task, self._waiting
        if task is None or not task.done():
            return None
        self._task = self._waiting = None
        try:
            set_user(task.result())
        except SignInRefused as refusal:
            raise _unauthorized(refusal.text) from None
        except ColumnarError as error:
            raise Hangup(error.text, closing_answer(503, error.text.encode() + b"\n")) from None
        return message


def _size_bytes(message: Request | Refusal | Whole) -> int:
    return len(message.body) if isinstance(message, Whole) else message.size_bytes


def _unauthorized(why: str) -> Hangup:
    return Hangup(f"HTTP 401: {why}", unauthorized(why))
