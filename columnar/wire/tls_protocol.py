"""TLS between a TCP connection and an inner protocol: ciphertext outside, plain bytes inside.

    handshake --done--> open --close, or the peer's close_notify--> closing
    handshake --plain text, a bad certificate, too long--> closed, with a line in the log

A TlsProtocol is a protocol to the loop, and a transport to the inner protocol (a ``Connection``, or the status page's
relay).  Python's ssl works over two buffers in memory.  The loop's own TLS is not used, because it buffers encrypted
replies without counting them, so a client that does not read could make the server buffer any number of bytes.  This
class buffers no unsent bytes: all are in the TCP transport, and the inner protocol sees that transport's buffer size
and gets its calls to pause and resume.

Invariants:
    I1. Received bytes are decrypted and passed on within the loop iteration.  So pausing the TCP transport pauses
        all input.
    I2. During the handshake the transport is paused until the next step, so nothing is read ahead.

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from time import perf_counter
from typing import Any, Final, Protocol, cast

from columnar.limits import HANDSHAKE_S, HANDSHAKES
from columnar.runtime.faults import FAULTS, surviving
from columnar.wire.detect import NotThrift, detect
from columnar.wire.sockets import name_of_peer
from columnar.wire.tls_context import ServerTls

SLICE_S: Final = 0.002


class Handshake(Protocol):
    def step(self) -> None:
        """Process the received bytes.  Calls ``Handshakes.end`` when the handshake has succeeded or failed."""

    def refuse(self, why: str) -> None:
        """Close the connection, log ``why``, and call ``Handshakes.end``."""


class Handshakes:
    """The handshakes in progress: bounds on their number, their duration and their share of the loop's time.

        begun --bytes came--> wants a step --queue turn--> a step --...--> over

    A step costs up to a millisecond (a signature).  Thousands of clients that connect at the same time would block the
    loop for seconds, so the steps are done in slices of SLICE_S, between which all other requests are served.

    If there are more handshakes than the bound, the oldest is closed: honest clients need milliseconds, so the oldest
    most likely belongs to a client that never continues.
    """

    def __init__(self, bound: int = HANDSHAKES, limit_s: float = HANDSHAKE_S) -> None:
        self._bound = bound
        self._limit_s = limit_s
        self._open: OrderedDict[Handshake, asyncio.TimerHandle] = OrderedDict()  # the oldest first
        self._ready: deque[Handshake] = deque()
        self._turning = False

    def __len__(self) -> int:
        return len(self._open)

    def begin_handshake(self, handshake: Handshake) -> None:
        if len(self._open) >= self._bound:
            next(iter(self._open)).refuse(f"{self._bound} handshakes are under way, and this one began first")
        why = f"no TLS handshake within {self._limit_s:g} s"
        timer = asyncio.get_running_loop().call_later(self._limit_s, handshake.refuse, why)
        self._open[handshake] = timer

    def end(self, handshake: Handshake) -> None:
        timer = self._open.pop(handshake, None)
        if timer is not None:
            timer.cancel()

    def step_soon(self, handshake: Handshake) -> None:
        self._ready.append(handshake)
        if not self._turning:
            self._turning = True
            asyncio.get_running_loop().call_soon(self._run_slice)

    def _run_slice(self) -> None:
        ends = perf_counter() + SLICE_S
        self._turning = False
        while self._ready:
            handshake = self._ready.popleft()
            if handshake in self._open:
                try:
                    handshake.step()
                except Exception as fault:  # noqa: BLE001 - of one client; other clients have their steps
                    FAULTS.met("TLS handshakes", fault)
                    with surviving("TLS handshakes"):
                        handshake.refuse("its handshake met a fault of the server")
            if self._ready and perf_counter() >= ends:
                self._turning = True
                asyncio.get_running_loop().call_soon(self._run_slice)
                return

    def close(self) -> None:
        """Close all handshakes, and accept no further ones."""
        for handshake in list(self._open):
            handshake.refuse("the server stops")


HANDSHAKE_RECORD: Final = 0x16
RECORD_BYTES: Final = 16 * 1024  # the most that one read of a record gives
PIECE_BYTES: Final = 256 * 1024  # encrypted at a time: bounds the copy of a large reply

_log = logging.getLogger("columnar.tls")
_WHY: Final = {  # OpenSSL's reason -> the explanation for people
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the client has no certificate, and this port asks for one",
    "CERTIFICATE_VERIFY_FAILED": "the client's certificate is not accepted",
    "TLSV1_ALERT_UNKNOWN_CA": "the client does not trust our certificate: it must know the authority that signed it",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "the client does not accept our certificate",
    "SSLV3_ALERT_BAD_CERTIFICATE": "the client does not accept our certificate: perhaps it is for another name",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "the client says that our certificate has expired",
    "UNSUPPORTED_PROTOCOL": "the client offers only versions of TLS before 1.2",
    "NO_SHARED_CIPHER": "the client and this server have no cipher in common",
}


class Inner(Protocol):
    """The methods of an inner ``asyncio.Protocol`` that this module calls."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None: ...
    def data_received(self, data: bytes) -> None: ...
    def eof_received(self) -> bool | None: ...
    def pause_writing(self) -> None: ...
    def resume_writing(self) -> None: ...
    def connection_lost(self, exc: Exception | None) -> None: ...


class TlsProtocol:
    """A protocol and a transport of asyncio, both in all but name."""

    def __init__(self, tls: ServerTls, handshakes: Handshakes, within: Callable[[], Inner]) -> None:
        self._tls = tls
        self._handshakes = handshakes
        self._within = within
        self._inner: Inner | None = None  # once the handshake is over
        self._transport = cast(asyncio.Transport, None)  # from connection_made on
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._ssl: ssl.SSLObject | None = None  # made at the first bytes: silent connections need none
        self._peer = "?"
        self._is_over = False  # further bytes are ignored
        self._is_paused = False  # by the inner protocol
        self._has_ended = False  # the peer has announced that it sends no more bytes

    # --- what the loop calls ------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._peer = name_of_peer(transport)
        self._handshakes.begin_handshake(self)

    def data_received(self, data: bytes) -> None:
        if self._is_over:
            return
        if self._ssl is None:
            if data[0] != HANDSHAKE_RECORD:
                self.refuse(f"plain text, {_speech(data)}; this port speaks TLS alone: connect with TLS")
                return
            self._ssl = self._tls.context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._incoming.write(data)
        if self._inner is not None:
            self._read(self._inner, self._ssl)
        else:
            self._transport.pause_reading()
            self._handshakes.step_soon(self)

    def eof_received(self) -> bool | None:
        if self._inner is None:
            if self._ssl is None:
                self._is_over = True  # a probe whether the port is open: not logged
            self.refuse("closed by the client within the TLS handshake")
            return False
        if self._has_ended:
            return True  # close_notify came before: the inner protocol closes when its replies are sent
        self._has_ended = True
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        if self._inner is not None:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        if self._inner is not None:
            self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._handshakes.end(self)
        if self._inner is not None:
            self._inner.connection_lost(exc)
        elif not self._is_over:
            _log.info("%s: lost within the TLS handshake: %s", self._peer, exc)
        self._is_over = True

    # --- the handshake ------------------------------------------------------------------------------

    def step(self) -> None:
        assert self._ssl is not None, "a step follows the first bytes"
        try:
            self._ssl.do_handshake()
        except ssl.SSLWantReadError:
            self._send_outgoing()
            self._transport.resume_reading()
            return
        except ssl.SSLError as error:
            self._send_outgoing()  # the alert that gives the client the reason
            self.refuse(_why(error))
            return
        self._send_outgoing()
        self._handshakes.end(self)
        self._inner = self._within()
        self._inner.connection_made(cast(asyncio.BaseTransport, self))
        if self._transport.is_closing():
            return
        if not self._is_paused:
            self._transport.resume_reading()
        if self._incoming.pending:
            self._read(self._inner, self._ssl)

    def refuse(self, why: str) -> None:
        """Close the connection, whose handshake must not continue, and log the reason."""
        if not self._is_over:
            _log.warning("%s: closed: %s", self._peer, why)
        self._is_over = True
        self._handshakes.end(self)
        self._transport.close()

    def _read(self, inner: Inner, tls: ssl.SSLObject) -> None:
        parts: list[bytes] = []
        farewell = False
        try:
            while data := tls.read(RECORD_BYTES):
                parts.append(data)
            farewell = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            farewell = True
        except ssl.SSLError as error:
            _log.warning("%s: closed: %s", self._peer, _why(error))
            self._is_over = True
            self._send_outgoing()
            self._transport.abort()
            return
        self._send_outgoing()  # an answer of TLS itself, such as new keys
        if parts:
            inner.data_received(parts[0] if len(parts) == 1 else b"".join(parts))
        if farewell and not self._has_ended:
            self._has_ended = True
            if not inner.eof_received():
                self.close()

    def _send_outgoing(self) -> None:
        if self._outgoing.pending:
            self._transport.write(self._outgoing.read())

    # --- what the protocol within calls: a transport ----------------------------------------------------

    def write(self, data: bytes | memoryview) -> None:
        if self._ssl is None or self._is_over:
            return
        try:
            if len(data) <= PIECE_BYTES:
                self._ssl.write(data)
            else:
                view = memoryview(data)
                for at in range(0, len(data), PIECE_BYTES):
                    self._ssl.write(view[at : at + PIECE_BYTES])
                    self._transport.write(self._outgoing.read())
        except ssl.SSLError as error:
            _log.warning("%s: closed: %s", self._peer, _why(error))
            self._is_over = True
            self._transport.abort()
            return
        self._send_outgoing()

    def writelines(self, parts: Iterable[bytes | memoryview]) -> None:
        for part in parts:
            self.write(part)

    def close(self) -> None:
        if self._ssl is not None and not self._is_over:
            self._is_over = True
            with suppress(ssl.SSLError):  # ssl also expects the peer's close_notify, for which we do not wait
                self._ssl.unwrap()
            self._send_outgoing()
        self._transport.close()

    def abort(self) -> None:
        self._is_over = True
        self._transport.abort()

    def is_closing(self) -> bool:
        return self._is_over or self._transport.is_closing()

    def pause_reading(self) -> None:
        self._is_paused = True
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._is_paused = False
        self._transport.resume_reading()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._inner = cast(Inner, protocol)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._transport.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        return self._transport.get_write_buffer_size()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._ssl if name == "ssl_object" else self._transport.get_extra_info(name, default)


class Tls:
    """The certificate and the handshakes of a process; makes the TLS protocols of all its ports."""

    def __init__(self, certificate: ServerTls, handshakes: Handshakes | None = None) -> None:
        self.certificate = certificate
        self.handshakes = handshakes or Handshakes()

    def make_protocol(self, within: Callable[[], Any]) -> TlsProtocol:
        return TlsProtocol(self.certificate, self.handshakes, within)


def _speech(data: bytes) -> str:
    found = detect(data[:8])
    return "no Thrift either" if found is None or isinstance(found, NotThrift) else str(found)


def _why(error: ssl.SSLError) -> str:
    reason = error.reason or str(error)
    detail = getattr(error, "verify_message", "")
    text = _WHY.get(reason, f"TLS: {reason.replace('_', ' ').lower()}")
    return f"{text}: {detail}" if detail else text
