"""The facts of certificates, and of a store that is asked over its port."""

from __future__ import annotations

import os
import ssl
import stat
from contextlib import closing, suppress
from time import monotonic
from typing import Any, Final

from thriftpy2.protocol.cybin import ProtocolError
from thriftpy2.thrift import TException

from columnar.client import ClientTls, Connection
from columnar.client.errors import NotColumnar
from columnar.client.store_socket import NoAnswer
from columnar.client.user_options import ClientUser
from columnar.diagnosis.facts import CertificateFacts, StoreFacts
from columnar.errors import ColumnarError, HostError
from columnar.runtime.pem_files import load_authorities, load_certificate, read_pem
from columnar.version import UNKNOWN
from columnar.wire.tls_context import PeerTls, TlsFiles, validity_of

ANSWER_S: Final = 10.0


def certificate_facts(cert: str, key: str, client_ca: str, *, links: bool) -> CertificateFacts:
    """Return whether a start would take the files, and the dates of the certificate.

    ``links``: the servers of nodes show the certificate to each other too.
    """
    mode: int | None = None
    with suppress(OSError):
        mode = stat.S_IMODE(os.stat(key).st_mode)
    begins: float | None = None
    ends: float | None = None
    try:
        pem = read_pem(cert, "--tls-cert")
        read_pem(key, "--tls-key")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        load_certificate(context, cert, key, "--tls-cert", "--tls-key")
        if client_ca:
            load_authorities(context, client_ca, "--tls-client-ca")
        if links:
            PeerTls.of_files(TlsFiles(cert, key, client_ca))
        first, last = validity_of(pem)
        begins, ends = first.timestamp(), last.timestamp()
    except HostError as error:
        return CertificateFacts(cert, key, error=error.text, key_mode=mode)
    except ValueError as error:
        return CertificateFacts(cert, key, error=f"{cert} is no certificate: {error}", key_mode=mode)
    return CertificateFacts(cert, key, begins_s=begins, ends_s=ends, key_mode=mode)


def store_facts(address: str, tls: ClientTls | None, user: ClientUser | None, *, is_wanted: bool) -> StoreFacts:
    """Ask the store for its status; waits ANSWER_S at most for each of its addresses.

    ``address`` may be ``unix:PATH``, as for other commands.
    """
    begun_s = monotonic()
    try:
        context = tls.context() if tls is not None else None
        secrets = user.secrets() if user is not None else {}
        with closing(Connection.at(address, timeout=round(ANSWER_S * 1_000), tls=context, **secrets)) as connection:
            report = connection.status()
    except NotColumnar:
        return StoreFacts(address, is_wanted, error=f"{address} is a plain HBase gateway, and no store of ours")
    except NoAnswer:
        return StoreFacts(
            address, is_wanted, error=f"{address} took the connection and did not answer in {ANSWER_S:g} s"
        )
    except (ColumnarError, TException, ProtocolError, OSError, EOFError) as error:
        return StoreFacts(address, is_wanted, error=f"cannot talk to {address}: {_why(error)}")
    return StoreFacts(
        address,
        is_wanted,
        seconds=monotonic() - begun_s,
        version=_text(report.version),
        build=_text(report.build or UNKNOWN),
        data=_text(report.dataFolder),
        remarks=tuple(_text(one) for one in report.remarks or ()),
        silent=tuple(_text(one) for one in report.silentServers or ()),
    )


def _why(error: Exception) -> str:
    if isinstance(error, ColumnarError):
        return error.text
    return str(
        getattr(error, "message", None) or getattr(error, "strerror", None) or str(error) or type(error).__name__
    )


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
