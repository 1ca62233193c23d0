"""The fault of an endpoint in one line, which says what to do if TLS, or its absence, is the reason.

A plain port that gets TLS, or a TLS port that gets plain text, mostly just closes the connection.  If a connection was
closed, the other transport is tried once, and its answer decides.
"""

from __future__ import annotations

import socket
import ssl
from typing import Final

from thriftpy2.transport import TTransportException

from columnar.bench import calls
from columnar.bench.address import Endpoint, EndpointFailed, Misaddressed
from columnar.bench.protocols import WIRES

PROBE_TIMEOUT_S: Final = 3.0  # of the other transport
_STEP: Final = {  # by OpenSSL's error number, for errors that a different authority does not cure
    9: "it is not valid yet: look at its dates, and at the clocks",
    10: "have it renewed",
    62: "ask for the host by a name that the certificate has",
    64: "ask for the host by an address that the certificate has",
}
_OF_CERTIFICATES: Final = ("CERTIFICATE", "UNKNOWN_CA", "HANDSHAKE_FAILURE", "ACCESS_DENIED")  # in names of alerts
_TRUST: Final = "name the authority that signed it with --tls-ca FILE"


def failed(endpoint: Endpoint, error: Exception) -> EndpointFailed:
    """Return an error that explains ``error``; may call the endpoint once more, for up to ``PROBE_TIMEOUT_S``."""
    cause = error.__cause__
    root = cause if isinstance(error, TTransportException) and isinstance(cause, OSError | ValueError) else error
    if isinstance(root, Misaddressed):
        return root
    if isinstance(root, ssl.SSLCertVerificationError):
        step = _STEP.get(root.verify_code, _TRUST)
        return Misaddressed(f"{endpoint}: its certificate is not accepted: {root.verify_message}; {step}")
    if isinstance(root, ssl.SSLError) and is_alert(root) and any(word in root.reason for word in _OF_CERTIFICATES):
        return Misaddressed(
            f"{endpoint} does not let us in: {root.reason.replace('_', ' ')}; show a certificate that it accepts with "
            "--tls-client-cert and --tls-client-key"
        )
    if _was_closed(root):
        if endpoint.tls is None and speaks_tls(endpoint):
            return Misaddressed(
                f"{endpoint} speaks TLS: write it as tls://{endpoint.address}, with --tls-ca FILE of the authority "
                "that signed its certificate"
            )
        if endpoint.tls is not None and speaks_plainly(endpoint):
            return Misaddressed(
                f"{endpoint}: the port speaks no TLS: write it as {endpoint.address}, and leave out the --tls options "
                "(COLUMNAR_TLS... in the environment too)"
            )
    return EndpointFailed(f"{endpoint}: {_words(root)}")


def is_alert(error: ssl.SSLError) -> bool:
    """Return whether ``error`` is an alert that the other side sent in TLS."""
    return "_ALERT_" in (error.reason or "")


def _words(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return f"TLS failed: {(error.reason or error.strerror or str(error)).replace('_', ' ')}"
    return str(getattr(error, "message", None) or error)


def _was_closed(error: Exception) -> bool:
    if isinstance(error, TTransportException):
        return bool(error.type == TTransportException.END_OF_FILE)
    return isinstance(error, OSError | EndpointFailed)


def speaks_tls(endpoint: Endpoint) -> bool:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # any host will do, as nothing is sent to it
    context.verify_mode = ssl.CERT_NONE
    try:
        with (
            socket.create_connection((endpoint.host, endpoint.port), PROBE_TIMEOUT_S) as sock,
            context.wrap_socket(sock, server_hostname=endpoint.host),
        ):
            return True
    except ssl.SSLError as error:
        return is_alert(error)
    except OSError:
        return False


def speaks_plainly(endpoint: Endpoint) -> bool:
    """Return whether the endpoint answers a plain call with a frame of less than 16 MiB."""
    request = calls.call("getTableNames", wire=WIRES[endpoint.protocol])
    try:
        with socket.create_connection((endpoint.host, endpoint.port), PROBE_TIMEOUT_S) as sock:
            sock.sendall(request)
            return sock.recv(1) == b"\x00"
    except OSError:
        return False
