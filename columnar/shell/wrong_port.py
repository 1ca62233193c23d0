"""The check of a port before the first call, which finds a port that speaks HTTP within three seconds.

A Thrift server answers at once to ``columnarWhoAmI``, which a store with rights answers to everybody; a server that
does not know the call says so, which is an answer too.  If the answer is not Thrift's, or none comes, the port gets an
HTTP request.  A port that does not speak HTTP either is left to the first call, because a busy store may be slow.

    connect CONNECT_S, ANSWER_S for the call, ANSWER_S for the page: at most 3 s at an address of this machine
"""

from __future__ import annotations

import re
import socket
import ssl
from contextlib import closing
from typing import Final

from columnar.limits import HTTP_PROBE_BYTES
from columnar.shell.text import readable

CONNECT_S: Final = 3.0
ANSWER_S: Final = 1.4
_NAME: Final = b"columnarWhoAmI"
_CALL: Final = b"\x80\x01\x00\x01" + len(_NAME).to_bytes(4, "big") + _NAME + b"\x00\x00\x00\x00\x00"
_STORE: Final = re.compile(rb"^X-Columnar-Store: *(?:[^\r\n]*:)?(\d+) *\r$", re.MULTILINE | re.IGNORECASE)
_TAKES_CALLS: Final = re.compile(rb"^Allow: *POST *\r$", re.MULTILINE | re.IGNORECASE)  # Thrift over HTTP, as ours


def http_found(host: str, port: int, tls: ssl.SSLContext | None) -> str | None:
    """Return what is wrong with the address, or None.

    Raises OSError if nothing listens at the address or the listener requires a certificate.
    """
    try:
        answer = _probe_port(_connected(host, port), host, tls, _CALL)
    except TimeoutError:
        answer = b""
    if answer is None or (answer and not answer.startswith(b"HTTP/")):
        return None
    try:
        request = f"GET /health HTTP/1.0\r\nHost: {host}:{port}\r\n\r\n".encode()
        page = _probe_port(_connected(host, port), host, tls, request) or b""
    except OSError:
        return None
    if not page.startswith(b"HTTP/") or _TAKES_CALLS.search(page):
        return None
    if found := _STORE.search(page):
        return f"this is the web port; the store is at {readable(found[1])}"
    return "what listens there speaks HTTP and is no store"


def _connected(host: str, port: int) -> socket.socket:
    return socket.create_connection((host, port), CONNECT_S)


def _probe_port(plain: socket.socket, host: str, tls: ssl.SSLContext | None, question: bytes) -> bytes | None:
    """Return the beginning of the answer, or None if the connection ended.

    Raises TimeoutError without an answer, SSLError if TLS is refused.  The first call reports any other fault.
    """
    with closing(plain):
        plain.settimeout(ANSWER_S)
        try:
            connection = tls.wrap_socket(plain, server_hostname=host) if tls is not None else plain
        except TimeoutError:
            raise
        except (OSError, ValueError):
            return None
        with closing(connection):
            try:
                connection.sendall(question)
                return _head(connection) or None
            except (TimeoutError, ssl.SSLError):  # said now: each connection refused is a line in the store's log
                raise
            except OSError:
                return None


def _head(connection: socket.socket) -> bytes:
    answer = connection.recv(HTTP_PROBE_BYTES)
    while answer.startswith(b"HTTP/") and b"\r\n\r\n" not in answer and len(answer) < HTTP_PROBE_BYTES:
        more = connection.recv(HTTP_PROBE_BYTES)
        if not more:
            break
        answer += more
    return answer
