"""The server's certificate: read at the start, and again when it was renewed.

A context is replaced only by a complete new one.  So a connection never meets a certificate without its key, and if a
new file is broken, the old context stays in use.  TLS 1.2 and 1.3, with the ciphers of Python's ssl.

Knows nothing of connections: ``tls_protocol`` takes ``context`` for each new one, and links between servers take
those of ``PeerTls``.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from columnar.errors import HostError
from columnar.runtime.pem_files import load_authorities, load_certificate, read_pem

EXPIRY_WARNING: Final = timedelta(days=14)
HANDSHAKE_ROUNDS: Final = 4  # of both sides

_log = logging.getLogger("columnar.tls")


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """The paths of PEM files.  If ``client_ca`` is empty, clients need no certificate."""

    cert: str
    key: str
    client_ca: str = ""


def _now() -> datetime:
    return datetime.now(UTC)


class ServerTls:
    """The TLS context of a server, made of its files.  Owned by the loop."""

    def __init__(self, files: TlsFiles, context: ssl.SSLContext, now: Callable[[], datetime]) -> None:
        """Pass the ``context`` that was made of ``files``."""
        self._files = files
        self._now = now
        self.context = context  # of each new connection

    @classmethod
    def read(cls, files: TlsFiles, now: Callable[[], datetime] = _now) -> ServerTls:
        """Read the files.  Raises HostError if the files cannot be used."""
        return cls(files, _read(files, now), now)

    @property
    def wants_client_certificate(self) -> bool:
        return self.context.verify_mode is ssl.CERT_REQUIRED

    def renew(self, cert: str, key: str) -> bool:
        """Read the files again, or others.  If they are broken, logs it, keeps the old context and returns False."""
        self._files = replace(self._files, cert=cert, key=key)
        try:
            self.context = _read(self._files, self._now)
        except HostError as error:
            _log.error("the certificate in use stays, for the new one cannot be read: %s", error.text)
            return False
        _log.info("the certificate of %s was read again; new connections get it", self._files.cert)
        return True


class PeerTls:
    """The TLS contexts of links between servers, made of the files of the ports.  Owned by the loop.

    With ``client_ca`` both sides present their certificate, and that authority must have signed it.  The own one must
    be such a certificate too, because every server uses one at both ends.  Without ``client_ca`` links are encrypted,
    and nothing is known of the certificate at the other end.  Names are not checked: the secret of the cluster says who
    may link.
    """

    def __init__(self, files: TlsFiles, accepting: ssl.SSLContext, connecting: ssl.SSLContext) -> None:
        """Pass the contexts that were made of ``files``."""
        self._files = files
        self._accepting = accepting
        self._connecting = connecting

    @classmethod
    def of_files(cls, files: TlsFiles) -> PeerTls:
        """Read the files.  Raises HostError if they cannot be used, or no peer with the same files would link."""
        accepting, connecting = _peer_context(files, is_server=True), _peer_context(files, is_server=False)
        if files.client_ca:
            _check_link(files, accepting, connecting)
        return cls(files, accepting, connecting)

    def accepting(self) -> ssl.SSLContext:
        return self._accepting

    def connecting(self) -> ssl.SSLContext:
        return self._connecting

    def renew(self, cert: str, key: str) -> bool:
        """Read certificate and key again, or others; later links get them.  If they are broken, keep the old ones.

        Returns whether they were read.  A new authority needs a restart.
        """
        files = self._files = replace(self._files, cert=cert, key=key)
        try:
            PeerTls.of_files(files)  # first, because a context that fails in between is of no use
            for context in (self._accepting, self._connecting):
                load_certificate(context, files.cert, files.key, "--tls-cert", "--tls-key")
        except HostError as error:
            _log.error("links keep the certificate in use, for the new one cannot be read: %s", error.text)
            return False
        return True


class _PeerContext(ssl.SSLContext):
    """The context of links that a server accepts or makes: TLS 1.3, without a check of names."""

    def load(self, files: TlsFiles) -> None:
        self.minimum_version = ssl.TLSVersion.TLSv1_3
        self.check_hostname = False
        self.verify_mode = ssl.CERT_NONE
        load_certificate(self, files.cert, files.key, "--tls-cert", "--tls-key")
        if files.client_ca:
            load_authorities(self, files.client_ca, "--tls-client-ca")
            self.verify_mode = ssl.CERT_REQUIRED


def _peer_context(files: TlsFiles, *, is_server: bool) -> ssl.SSLContext:
    context = _PeerContext(ssl.PROTOCOL_TLS_SERVER if is_server else ssl.PROTOCOL_TLS_CLIENT)
    context.load(files)
    return context


def _check_link(files: TlsFiles, accepting: ssl.SSLContext, connecting: ssl.SSLContext) -> None:
    """Raise HostError if a link of this certificate with itself is refused.  Costs a handshake in memory, some ms."""
    one, other = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [connecting.wrap_bio(one, other), accepting.wrap_bio(other, one, server_side=True)]
    try:
        for _ in range(HANDSHAKE_ROUNDS):
            ends = [end for end in ends if not _is_over(end)]
    except ssl.SSLError as error:
        why = error.verify_message if isinstance(error, ssl.SSLCertVerificationError) else error.reason or error
        raise HostError(
            f"no other node would link with this one by the certificate in {files.cert} (--tls-cert): {why}. With "
            f"--tls-client-ca an authority in {files.client_ca} must have signed the certificate of each node, and if "
            "that has an extendedKeyUsage, both serverAuth and clientAuth must be in it"
        ) from error
    assert not ends, "TLS 1.3 needs two rounds"


def _is_over(end: ssl.SSLObject) -> bool:
    try:
        end.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True


def _read(files: TlsFiles, now: Callable[[], datetime]) -> ssl.SSLContext:
    certificate = read_pem(files.cert, "--tls-cert")
    read_pem(files.key, "--tls-key")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION  # with renegotiation a client could keep the server busy for ever
    load_certificate(context, files.cert, files.key, "--tls-cert", "--tls-key")
    if files.client_ca:
        load_authorities(context, files.client_ca, "--tls-client-ca")
        context.verify_mode = ssl.CERT_REQUIRED
    _warn_of_dates(files.cert, certificate, now())
    return context


def validity_of(pem: str) -> tuple[datetime, datetime]:
    """Return from when and until when the first certificate is valid.  Raises ValueError if there is none."""
    from asn1crypto.x509 import Certificate  # a store without TLS never loads it

    certificate = Certificate.load(ssl.PEM_cert_to_DER_cert(_first_certificate(pem)))
    return certificate.not_valid_before, certificate.not_valid_after


def _warn_of_dates(name: str, pem: str, now: datetime) -> None:
    begins, ends = validity_of(pem)
    if now >= ends:
        _log.error("THE CERTIFICATE %s EXPIRED on %s: clients will refuse it; renew it", name, ends)
    elif now < begins:
        _log.error("THE CERTIFICATE %s IS NOT VALID before %s: clients will refuse it", name, begins)
    elif now + EXPIRY_WARNING >= ends:
        _log.warning("the certificate %s expires on %s: renew it and send SIGHUP", name, ends)


def _first_certificate(pem: str) -> str:
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    start = pem.find(begin)
    stop = pem.find(end, start)
    return pem[start : stop + len(end)] + "\n"
