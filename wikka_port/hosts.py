"""(pure, but for what the system says of addresses) Under which names a wiki on loopback answers.

A web page whose own name was made to lead to 127.0.0.1 (DNS rebinding) is of the wiki's origin in the eyes of the
browser: it could read every page and every form token, and so edit.  Its requests bear its name as ``Host``.  On
loopback a request is therefore answered for these alone:

    localhost
    an address of loopback, or of this machine
    a name that was allowed, such as the one a proxy on this machine passes on

``X-Forwarded-Host`` allows nothing: such a page can send it.  Beyond loopback every name is answered, for the wiki
does not know by which ones it is reached.  ``columnar`` guards its own ports in the same way (``wire/browsers.py``).

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
    """For a wiki that listens on loopback alone, or not."""

    on_loopback: bool
    names: frozenset[str] = frozenset()  # as ``checked_name`` makes them

    @staticmethod
    def of(listens_on: str, allowed: Iterable[str]) -> Hosts:
        return Hosts(_leads_to_loopback(listens_on), frozenset(map(checked_name, allowed)))

    def refusal(self, host: str | None) -> str | None:
        """Why a request with this ``Host`` is not answered, and what to do; None: it is."""
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
    """Return a host's name as browsers send it, without a port; ValueError says how to write it."""
    try:
        name = text.rstrip(".").lower().encode("idna").decode("ascii")
    except UnicodeError:
        name = ""
    if not _NAME.fullmatch(name):
        raise ValueError(f"'{text}' is no name of a host; write it as wiki.example, without http:// and port")
    return name


def _name_of(host: str) -> str:
    """Without the port; of an IPv6 address without its brackets."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].removesuffix(".")


def _leads_to_loopback(host: str) -> bool:
    """``host`` is what a socket is bound to: an address, or a name that is looked up once."""
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
    """A socket can be bound to it."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True
