"""(pure) Addresses of a store's servers as text: ``HOST:PORT``, ``HOST`` or ``[IPV6]:PORT``; several with commas."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from columnar.client.errors import WrongArgument

DEFAULT_PORT: Final = 9090
UNIX: Final = "unix:"  # before the path of a socket, in the place of an address
MOST_ADDRESSES: Final = 100  # of one client; an address more is a mistake in a list
_ADDRESS: Final = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<host>[^:\[\]]+))(?::(?P<port>\d{1,5}))?", re.ASCII)


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def address_of(text: str, port: int = DEFAULT_PORT) -> Address:
    """Parse one address; without a port ``port`` is used.  Raises WrongArgument."""
    found = _ADDRESS.fullmatch(text)
    if found is None or int(found["port"] or port) > 65_535 or not _is_host(found["six"] or found["host"]):
        raise WrongArgument(f"'{text}' is no address: write HOST:PORT, for example 127.0.0.1:9090")
    return Address(found["six"] or found["host"], int(found["port"] or port))


def addresses_of(given: str | Sequence[str], port: int = DEFAULT_PORT) -> list[Address]:
    """Parse addresses, each once, in their order: a text with commas, or a sequence of texts.

    Raises WrongArgument if one is no address, or if there is none.
    """
    texts = given.split(",") if isinstance(given, str) else list(given)
    found = list(dict.fromkeys(address_of(text.strip(), port) for text in texts))
    if not found:
        raise WrongArgument("no address is given: write HOST:PORT, or several with commas")
    if len(found) > MOST_ADDRESSES:
        raise WrongArgument(f"{len(found)} addresses are given; a client takes {MOST_ADDRESSES} at most")
    return found


def _is_host(name: str) -> bool:
    """Return whether a resolver can take the name; Python raises UnicodeError for ``a..b`` and overlong labels."""
    try:
        return bool(name.encode("idna"))
    except UnicodeError:
        return False
