"""The wiki under test: its address, and the check that the user may load it.

A load goes to this machine only, unless the user says that the site is his.  The check resolves the name and requires
that all of its addresses are loopback addresses.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, Literal
from urllib.parse import unquote, urlsplit

from wikibench.errors import TargetError, UnresolvedError, UnsafeTargetError
from wikibench.secrets import basic, of_no_address

Connections = Literal["pooled", "fresh", "visitor"]  # kept for all visits, one a request, or one a visit
_PORT: Final = "its port is no number; in a password / is written as %2F, ? as %3F, # as %23 and @ as %40"


@dataclass(frozen=True, slots=True)
class Target:
    """``origin`` is scheme, host and port; ``prefix`` a path without its last slash, often empty."""

    origin: str
    prefix: str = ""
    login: str = ""  # the value of an Authorization header, if the address has a name and a password
    mirrors: tuple[Target, ...] = ()  # more addresses of the same wiki; visits take turns among all
    users: tuple[str, ...] = ()  # Cookie headers of users who are signed in; edits take turns among them
    connections: Connections = "pooled"

    def addresses(self) -> tuple[Target, ...]:
        return (replace(self, mirrors=()), *self.mirrors) if self.mirrors else (self,)

    def url(self, path: str) -> str:
        return self.origin + self.prefix + path

    def headers(self, given: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
        """Return the ``given`` headers, with the login of the address if they have no login."""
        known = tuple(given)
        if not self.login or any(name.lower() == "authorization" for name, _ in known):
            return known
        return (*known, ("Authorization", self.login))


def parse_target(text: str) -> Target:
    """Return the target of a --target: an address, or several of one wiki with blanks between them.

    Raises TargetError if one of them is no address.
    """
    first, *others = (_parsed(url) for url in text.split() or [""])
    if any(other.login != first.login for other in others):
        why = "the addresses have different names and passwords: give all the same, or none and --header"
        raise TargetError(of_no_address(text.split()[-1]), why)
    return replace(first, mirrors=tuple(others))


def _parsed(url: str) -> Target:
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        port = parts.port
    except ValueError as error:
        why = _PORT if "@" in url else str(error)  # the error's text would contain a part of the password
        raise TargetError(of_no_address(url), why) from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise TargetError(of_no_address(url), "not an address of the form http://127.0.0.1:8080")
    if parts.query or parts.fragment:
        shown = url.partition("?")[0].partition("#")[0]
        raise TargetError(shown, "what follows a ? or # is not sent: leave it out, or use --header")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    login = basic(unquote(parts.username or ""), unquote(parts.password or "")) if "@" in parts.netloc else ""
    return Target(f"{parts.scheme}://{host}" + (f":{port}" if port else ""), parts.path.rstrip("/"), login)


def require_loopback(target: Target) -> None:
    """Raise UnsafeTargetError unless every address of the target's names is on this machine.

    Raises UnresolvedError for a name without an address.
    """
    for one in target.addresses():
        _require_loopback(one)


def _require_loopback(target: Target) -> None:
    host = urlsplit(target.origin).hostname or ""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise UnresolvedError(target.origin, host, getattr(error, "strerror", None) or str(error)) from error
    addresses = tuple(sorted({str(entry[4][0]) for entry in found}))
    if not all(ipaddress.ip_address(address).is_loopback for address in addresses):
        raise UnsafeTargetError(host, () if addresses == (host,) else addresses)
