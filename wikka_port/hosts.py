"""(pure, except that the system is asked about addresses) The names in ``Host`` that a wiki on loopback answers.

If a foreign web page's own name resolves to 127.0.0.1 (DNS rebinding), the browser takes the page and the wiki for one
origin: the page could read every page and every form token, and so edit.  Its requests bear its name as ``Host``.  On
loopback the wiki therefore answers a request only if ``Host`` is one of these:

    localhost
    an address of loopback, or of this machine
    an allowed name, such as the one that a proxy on this machine passes on

``X-Forwarded-Host`` allows nothing: a foreign page can send it.  Beyond loopback every name is answered, for the wiki
does not know the names by which it is reached.  ``columnar`` guards its own ports in the same way
(``wire/browsers.py``).

Knows nothing of requests; ``app`` calls it.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from wikka_port.texts import _

_NAME: Final = re.compile(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*")
_MAX_HOST_CHARS: Final = 200


@dataclass(frozen=True, slots=True)
class Hosts:
    """The names that a wiki answers; every name unless the wiki listens on loopback only."""

    on_loopback: bool
    names: frozenset[str] = frozenset()  # as ``checked_name`` makes them

    @staticmethod
    def of(listens_on: str, allowed: Iterable[str]) -> Hosts:
        return Hosts(_leads_to_loopback(listens_on), frozenset(map(checked_name, allowed)))

    def refusal(self, host: str | None) -> str | None:
        """Return why a request with this ``Host`` is refused, and what to do; None if the request is answered."""
        if not self.on_loopback or not host or self._is_ours(_name_of(host)):
            return None
        return _(
            "This wiki listens on loopback and does not answer as '{host}'. Ask for localhost or "
            "127.0.0.1; whoever runs the wiki can allow a name with --allow-host.",
            host=host[:_MAX_HOST_CHARS],
        )

    def _is_ours(self, name: str) -> bool:
        if name == "localhost" or name in self.names:
            return True
        try:
            return ipaddress.ip_address(name).is_loopback or _is_of_this_machine(name)
        except ValueError:
            return False


def checked_name(text: str) -> str:
    """Return a host's name as browsers send it, without a port.  Raises ValueError, which says how to write it."""
    try:
        name = text.rstrip(".").lower().encode("idna").decode("ascii")
    except UnicodeError:
        name = ""
    if not _NAME.fullmatch(name):
        raise ValueError(f"'{text}' is no name of a host; write it as wiki.example, without http:// and port")
    return name


def _name_of(host: str) -> str:
    """Return ``host`` without its port, and an IPv6 address without its brackets."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].removesuffix(".")


def _leads_to_loopback(host: str) -> bool:
    """Return whether a socket bound to ``host`` (an address, or a name, which is looked up once) is on loopback."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        try:
            address = ipaddress.ip_address(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0])
        except (OSError, ValueError):
            return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def _is_of_this_machine(address: str) -> bool:
    """Return whether this machine has the address, that is, whether a socket can be bound to it."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True
