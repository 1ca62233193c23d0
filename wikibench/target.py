"""The wiki under test: its address, and the promise that it is ours to load.

A load is aimed at this machine only, unless the user says that the site is his.
The check resolves the name and wants every address it gives to be loopback.
"""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass
from urllib.parse import urlsplit

from .errors import TargetError, UnsafeTargetError


@dataclass(frozen=True, slots=True)
class Target:
    """``origin`` is scheme, host and port; ``prefix`` a path without its last slash, often empty."""

    origin: str
    prefix: str = ""

    def url(self, path: str) -> str:
        return self.origin + self.prefix + path


def parse_target(url: str) -> Target:
    """The target of a --target; raises TargetError where it is no address."""
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        port = parts.port
    except ValueError as error:
        raise TargetError(url, str(error)) from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise TargetError(url, "not an address of the form http://127.0.0.1:8080")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return Target(f"{parts.scheme}://{host}" + (f":{port}" if port else ""), parts.path.rstrip("/"))


def require_loopback(target: Target) -> None:
    """Raise UnsafeTargetError unless every address of the target's name is on this machine."""
    host = urlsplit(target.origin).hostname or ""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        found = []
    addresses = tuple(sorted({str(entry[4][0]) for entry in found}))
    if not addresses or not all(ipaddress.ip_address(address).is_loopback for address in addresses):
        raise UnsafeTargetError(host, () if addresses == (host,) else addresses)
