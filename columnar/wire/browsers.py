"""(pure, except ``is_of_this_machine``) Recognises HTTP requests that web pages send, and the pages allowed to do so.

A browser sends any page's requests to any address, including this machine's own, so every page opened on this machine
can reach a store on loopback.  Four headers identify a browser's request; Thrift clients send none of them like this:

    Origin            the page that made the request
    Sec-Fetch-*       a browser made the request; the relation of the page to the address
    Content-Type      of a form or text/plain: a page may send these without a preflight request
    Host              a name: the page's own name was made to resolve to this machine (DNS rebinding)

A host name in ``Host`` is refused only on loopback.  On other addresses a server may have host names, which it does not
know.

Knows nothing of sockets and of Thrift; ``http_transport`` and ``webui.pages`` call it.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

SIMPLE_TYPES: Final = frozenset({"text/plain", "application/x-www-form-urlencoded", "multipart/form-data"})
_FETCH_HEADERS: Final = ("sec-fetch-site", "sec-fetch-mode", "sec-fetch-dest", "sec-fetch-user")
_LOCAL_NAMES: Final = frozenset({"localhost", "localhost."})


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_of_this_machine(address: str) -> bool:
    """Return whether the IP address belongs to this machine: a socket can be bound to it."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True


def checked_origin(text: str) -> str:
    """Return ``text`` as browsers write an origin (``https://app.example:8443``); raises ValueError with the fault."""
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or text.rstrip("/").count("/") != 2:
        raise ValueError(f"'{text}' is no origin; write it as https://app.example or http://localhost:8080")
    return text.rstrip("/").lower()


Guard = Callable[[str, str, bool], tuple[int, str] | None]  # authorization, client's host, whether it is private


@dataclass(slots=True)
class Visitors:
    """The hosts and web pages whose HTTP requests are answered.

    Shared by all ports of a process.  The loop replaces the origins as a whole; the web server's threads read them.
    """

    on_loopback: bool = False  # the port listens on loopback alone
    origins: frozenset[str] = field(default_factory=frozenset)  # pages that may send requests, and read the answers
    guard: Guard | None = None  # of pages and metrics; None: everybody sees them

    def guard_pages(self, guard: Guard) -> None:
        """Ask ``guard`` whether a request for a page is refused; call before the first request."""
        self.guard = guard

    @staticmethod
    def of(host: str, origins: Iterable[str]) -> Visitors:
        made = Visitors(is_loopback(host))
        made.take_origins(origins)
        return made

    def take_origins(self, origins: Iterable[str]) -> None:
        """Allow these pages alone from now on, also on open connections.  Raises ValueError."""
        self.origins = frozenset(map(checked_origin, origins))

    def allowed_origin(self, headers: dict[str, str]) -> str | None:
        """Return the origin of the page that sent the request if that page is allowed; else None."""
        origin = headers.get("origin", "").lower()
        return origin if origin in self.origins else None

    def refuses_host(self, host: str | None) -> str | None:
        """Return the reason for refusing a request with this ``Host``; None if the request is answered."""
        if not self.on_loopback or host is None or self._is_ours(host):
            return None
        return (
            f"this port listens on loopback and does not answer as '{host[:200]}'; ask for localhost or 127.0.0.1, or "
            "allow the name with --allow-origin"
        )

    def _is_ours(self, host: str) -> bool:
        name = _name_of(host)
        if name in _LOCAL_NAMES or any(urlsplit(origin).hostname == name for origin in self.origins):
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        return address.is_loopback or is_of_this_machine(name)

    def refuses_origin(self, headers: dict[str, str]) -> tuple[int, str] | None:
        """Return status and reason if a browser sent this for a page that is not allowed.

        ``headers`` has lower-case names.
        """
        origin = headers.get("origin")
        if self.allowed_origin(headers) is None and (
            origin is not None or any(name in headers for name in _FETCH_HEADERS)
        ):
            page = f"a page of {origin[:200]}" if origin else "a browser"
            return 403, f"{page} may not use this store; allow it with --allow-origin"
        return None

    def refuses_page(self, headers: dict[str, str]) -> tuple[int, str] | None:
        """Return status and reason as ``refuses_origin``; also if it has a type that pages send without Origin."""
        found = self.refuses_origin(headers)
        if found is not None or self.allowed_origin(headers) is not None:
            return found
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind in SIMPLE_TYPES:
            return 415, f"send the message as application/x-thrift, not as {kind}"
        return None


def _name_of(host: str) -> str:
    """Return ``host`` without its port, and an IPv6 address without its brackets."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]
