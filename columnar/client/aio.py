"""Change streams for asyncio programs.

    async with aio.connect("localhost:9090") as connection:
        async for event in connection.changes("pages", start="beginning"):
            ...

Events, positions, groups and promises are those of ``client.changes`` and ``client.group_changes``.  Each stream has a
link of its own, and its waits for changes block no other task.  A task may be cancelled at any await: a stream goes on
behind the last event that it gave, over a new link if a request was under way, so no event is lost, and none comes
twice.  For all other calls use ``client.Connection`` in a thread.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self
from weakref import WeakSet

from columnar.client.addresses import UNIX, Address, addresses_of
from columnar.client.async_changes import AsyncChanges, open_async_changes
from columnar.client.async_link import AsyncLink, Endpoint
from columnar.client.changes import POLL_MS, Start
from columnar.client.tls import ClientTls, given

if TYPE_CHECKING:
    from columnar.client.async_consuming import AsyncConsumer, AsyncHandler
    from columnar.client.sasl_socket import ClientSignIn

ANSWER_MS: Final = 120_000  # how long a request may take beyond its wait for changes


class AsyncConnection:
    """Opens streams to one store.  It belongs to one event loop."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._idle: AsyncLink | None = None  # made by ``open_link``, or of a stream that has ended; for the next stream
        self._streams: WeakSet[AsyncChanges] = WeakSet()

    async def open_link(self) -> Self:
        """Connect and sign in, to find out now whether that is possible.  Raises NotConnected, NotSignedIn."""
        if self._idle is None or not self._idle.is_open:
            self._idle = await AsyncLink.connect(self._endpoint)
        return self

    def __await__(self) -> Generator[Any, None, Self]:
        return self.open_link().__await__()

    async def __aenter__(self) -> Self:
        return await self.open_link()

    async def __aexit__(self, *_error: object) -> None:
        self.close()
        await asyncio.sleep(0)  # the loop closes sockets with its next iteration

    def close(self) -> None:
        """Close all links, also those of streams."""
        for stream in list(self._streams):
            stream.close()
        if self._idle is not None:
            self._idle.close()

    def changes(
        self,
        name: bytes | str,
        *,
        start: Start = "now",
        columns: Sequence[bytes | str] = (),
        where: Sequence[str] = (),
        rows: tuple[bytes | str, bytes | str] | None = None,
        part: tuple[int, int] | None = None,
        before: bool = False,
        after: bool = False,
        snapshot: bool = False,
        consolidate: bool = False,
        follow: bool = True,
        heartbeats: bool = False,
        max_bytes: int = 0,
        poll_ms: int = POLL_MS,
        group: str = "",
    ) -> AsyncChanges:
        """Return an asynchronous iterator of the changes of a table; the arguments are ``Connection.changes``'.

        With ``group`` it is an ``AsyncGroupChanges``, which also has ``commit`` and ``leave_group``.
        """
        open_stream: Callable[..., AsyncChanges] = open_async_changes
        if group:
            from columnar.client.async_group_changes import open_async_member  # few programs are members

            open_stream = partial(open_async_member, group=group)
        stream = open_stream(
            self, name.encode() if isinstance(name, str) else name, start=start, columns=columns, where=where,
            rows=rows, part=part, before=before, after=after, snapshot=snapshot, consolidate=consolidate,
            follow=follow, heartbeats=heartbeats, max_bytes=max_bytes, poll_ms=poll_ms,
        )  # fmt: skip
        self._streams.add(stream)
        return stream

    def consume(
        self,
        name: bytes | str,
        *,
        group: str,
        handler: AsyncHandler,
        batch: int = 100,
        tries: int = 5,
        longest_s: float = 300.0,
        **options: Any,
    ) -> AsyncConsumer:
        """Return a loop that hands the changes of a table to ``handler``, as a member of a group.

        ``await run()`` it (``client.async_consuming``).  ``handler`` is an async function; the arguments are
        ``Connection.consume``'s.
        """
        from columnar.client.async_consuming import open_async_consumer  # few programs are members

        return open_async_consumer(
            self, name, group, handler, batch=batch, tries=tries, longest_s=longest_s, options=options
        )

    async def lend_link(self) -> AsyncLink:
        """Return an open link for the caller alone."""
        idle, self._idle = self._idle, None
        return idle if idle is not None and idle.is_open else await AsyncLink.connect(self._endpoint)

    def return_link(self, link: AsyncLink) -> None:
        """Keep the link for another stream, or close it if there is one already."""
        if self._idle is not None and self._idle.is_open:
            link.close()
        else:
            self._idle = link

    @property
    def timeout_ms(self) -> int:
        """How long a request may take beyond its wait for changes."""
        return ANSWER_MS if self._endpoint.timeout_ms is None else self._endpoint.timeout_ms


def connect(
    address: str = "localhost:9090",
    timeout: int | None = None,
    *,
    tls: ClientTls | ssl.SSLContext | bool | None = None,
    tls_ca: str = "",
    tls_cert: str = "",
    tls_key: str = "",
    user: str = "",
    password: str = "",
    token: str = "",
) -> AsyncConnection:
    """Return a connection, which ``await`` or ``async with`` opens; a stream opens what it needs, too.

    ``address`` is ``HOST:PORT``, several of them with commas, or ``unix:PATH``; ``timeout`` is in milliseconds.  The
    other arguments are those of ``client.Connection``.  Raises WrongArgument; with TLS it reads the files.
    """
    unix_socket = address.removeprefix(UNIX) if address.startswith(UNIX) else ""
    addresses = [Address("", 0)] if unix_socket else addresses_of(address)
    context = None if unix_socket else given(tls, tls_ca, tls_cert, tls_key)
    sign_in: ClientSignIn | None = None
    if user or password or token:
        from columnar.client.sasl_socket import ClientSignIn  # most stores have no users

        sign_in = ClientSignIn(user, password, token)
        for one in addresses:
            sign_in.check_host(one.host, has_tls=context is not None, has_socket=bool(unix_socket))
    return AsyncConnection(Endpoint(tuple(addresses), unix_socket, context, sign_in, timeout))
