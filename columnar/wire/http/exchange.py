"""(pure) A request and its response, as handlers of an HTTP port see them.

A handler is a function of a ``Request`` that returns a ``Response`` or an awaitable of one.  The body of a request is
there as a whole.  The body of a response is bytes, or an asynchronous iterator of pieces, which are sent in chunks as
the client reads them.

Knows nothing of connections.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from columnar.wire.http.incoming_request import Message

JSON_TYPE: Final = "application/json"
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_NO_PARAMETERS: Final[Mapping[str, bytes]] = {}


def never_gone() -> bool:
    """Return False: the ``has_gone`` of a request without a connection."""
    return False


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str  # as sent, without the query: ``routes`` decodes its parts
    query: str  # as sent: ``routes.query_pairs`` decodes it
    headers: Mapping[str, str]  # names in lower case; a repeated header is joined by commas
    body: bytes = b""
    peer: str = "local"  # address and port of the client, for the log
    user: str = ""  # who has signed in; "" is nobody
    parameters: Mapping[str, bytes] = field(default_factory=lambda: _NO_PARAMETERS)  # of the path, by the route's names
    has_gone: Callable[[], bool] = never_gone  # whether the client has gone: a handler that waits looks at times

    @property
    def content_type(self) -> str:
        """Return the media type of the body in lower case, without its parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


@dataclass(frozen=True, slots=True)
class Client:
    """The sender of a connection's requests."""

    peer: str = "?"  # address and port, for the log
    user: str = ""  # of a certificate; "" is nobody
    is_private: bool = False  # nobody on the network reads what is sent

    def request(self, message: Message, has_gone: Callable[[], bool] = never_gone) -> Request:
        path, query = _path_and_query(message.target)
        return Request(
            message.method, path, query, message.headers, message.body, self.peer, self.user, has_gone=has_gone
        )


def _path_and_query(target: str) -> tuple[str, str]:
    """Return the two parts of a target, which may be a whole URL (RFC 9112, 3.2.2)."""
    scheme, is_url, rest = target.partition("://")
    if is_url and scheme.lower() in ("http", "https"):
        target = "/" + rest.partition("?")[0].partition("/")[2] + "".join(rest.partition("?")[1:])
    path, _, query = target.partition("?")
    return path, query


@dataclass(frozen=True, slots=True)
class Response:
    """``headers`` are those of the content: the layer adds Content-Length, Connection and Date.

    Raises ValueError if a header has a control character, which might begin another header.
    """

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | AsyncIterator[bytes] = b""

    def __post_init__(self) -> None:
        for name, value in self.headers:
            if not name or _CONTROL.search(name + value):
                raise ValueError(f"a header of a response has a control character: {name!r}: {value[:200]!r}")


Handler = Callable[[Request], Response | Awaitable[Response]]
