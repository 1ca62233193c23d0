"""The address and transport of an endpoint, and the error for an endpoint that cannot be measured.

    address := [tls://]HOST:PORT

Knows nothing of sockets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from columnar.bench.protocols import BINARY
from columnar.client.tls import ClientTls

_TLS = "tls://"


class EndpointFailed(Exception):
    """The endpoint closed a connection, fell silent or answered wrongly."""


class Misaddressed(EndpointFailed):
    """The endpoint does not speak the chosen transport, or a certificate is refused: a retry cannot succeed."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    host: str
    port: int
    protocol: str = BINARY.name  # a name in WIRES; framed
    tls: ClientTls | None = None  # names of files, which generator processes read themselves; None: plain TCP

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    def __str__(self) -> str:
        return self.address if self.tls is None else _TLS + self.address


def parse_endpoint(text: str) -> Endpoint:
    """Return the endpoint that ``text`` names.  Raises ValueError.

    After ``tls://`` without further options the certificate is verified by the authorities that the system trusts.
    """
    address = text.removeprefix(_TLS)
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdigit() or "/" in host:
        raise ValueError(f"'{text}' is no address; write it as HOST:PORT, or as {_TLS}HOST:PORT")
    return Endpoint(host, int(port), tls=None if address == text else ClientTls())


def spoken_to(endpoints: Sequence[Endpoint], tls: ClientTls | None) -> list[Endpoint]:
    """Return the endpoints with the options of TLS: applied to those written ``tls://``, or to all if none is."""
    is_written = any(endpoint.tls is not None for endpoint in endpoints)
    return [
        replace(endpoint, tls=tls) if tls is not None and (endpoint.tls is not None or not is_written) else endpoint
        for endpoint in endpoints
    ]
