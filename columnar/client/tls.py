"""TLS of a client: the authorities that it trusts, and its own certificate.

The server's certificate is always verified, including that it was issued for the requested host.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import Any

from columnar.client.errors import WrongArgument
from columnar.client.store_socket import NotConnected, StoreSocket
from columnar.runtime.pem_files import load_authorities, load_certificate


@dataclass(frozen=True, slots=True)
class ClientTls:
    """The paths of PEM files.

    If ``ca`` is empty, the authorities that this system trusts are used.  If ``cert`` is empty, the client has no
    certificate.
    """

    ca: str = ""
    cert: str = ""
    key: str = ""

    def context(self) -> ssl.SSLContext:
        """Make the context.  Raises HostError if a file cannot be used."""
        if bool(self.cert) != bool(self.key):
            raise WrongArgument("a client's certificate and its key go together: give both files, or none")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # it verifies certificate and name
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if self.ca:
            load_authorities(context, self.ca, "--tls-ca")
        else:
            context.load_default_certs()  # takes 20 ms and more
        if self.cert:
            load_certificate(context, self.cert, self.key, "--tls-client-cert", "--tls-client-key")
        return context


def given(tls: ClientTls | ssl.SSLContext | bool | None, ca: str, cert: str, key: str) -> ssl.SSLContext | None:
    """Return the context that ``Connection``'s arguments describe, or None for plain TCP."""
    if isinstance(tls, ssl.SSLContext):
        return tls
    if isinstance(tls, ClientTls):
        return tls.context()
    if tls or (tls is None and (ca or cert or key)):
        return ClientTls(ca, cert, key).context()
    if ca or cert or key:
        raise WrongArgument("files for TLS are given, but tls=False: leave one of them out")
    return None


class TlsSocket(StoreSocket):
    """A client's socket that is wrapped in TLS once connected.

    thriftpy2's own TLS socket is not used, because it hides the reason of a failed handshake.
    """

    sock: Any  # None while closed

    def __init__(self, context: ssl.SSLContext, host: str, port: int, **options: Any) -> None:
        super().__init__(host=host, port=port, **options)
        self._context = context

    def open(self) -> None:
        super().open()
        try:
            self.sock = self._context.wrap_socket(self.sock, server_hostname=self.host)
        except (OSError, ValueError) as error:
            self.close()
            why = getattr(error, "verify_message", "") or getattr(error, "reason", "") or str(error)
            raise NotConnected(
                NotConnected.NOT_OPEN, f"no TLS with {self.host}:{self.port}: {why.replace('_', ' ')}"
            ) from error
