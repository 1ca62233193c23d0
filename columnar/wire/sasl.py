"""(pure) SASL on a Thrift connection, as thrift_sasl and Java's TSaslClientTransport speak it.

    message := status:u8 length:u32 payload      big-endian; START 1, OK 2, BAD 3, ERROR 4, COMPLETE 5

    client  START mechanism         PLAIN, SCRAM-SHA-256 or, over a Unix socket, EXTERNAL
    client  OK response             PLAIN: the only one; SCRAM: the first; EXTERNAL: the user to act as, or nothing
    server  OK challenge            SCRAM alone; then the client's last response
    server  COMPLETE payload        the user has signed in; from here on messages are framed
    server  BAD or ERROR text       the connection is closed; BAD if the sign-in was refused

Invariants:
    I1. A payload over PAYLOAD_BYTES is refused before it has arrived.
    I2. After COMPLETE the bytes that follow belong to the connection, and none of them is read here.

Knows nothing of accounts, of time, and of how a password is verified.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import Final, Protocol

from columnar.errors import SignInRefused
from columnar.security.credentials import Credentials, of_plain

START, OK, BAD, ERROR, COMPLETE = 1, 2, 3, 4, 5
PLAIN: Final = b"PLAIN"
SCRAM: Final = b"SCRAM-SHA-256"
EXTERNAL: Final = b"EXTERNAL"
PAYLOAD_BYTES: Final = 4_096
_HEAD: Final = Struct(">BI")
HEAD_BYTES: Final = _HEAD.size
assert HEAD_BYTES == 5, "as other implementations have it"


def sasl_message(status: int, payload: bytes = b"") -> bytes:
    return _HEAD.pack(status, len(payload)) + payload


class Exchange(Protocol):
    """An exchange of SCRAM (``security.scram.ScramServer``)."""

    user: str

    def challenge(self, first: bytes) -> bytes: ...
    def verify_proof(self, final: bytes) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Reply:
    """Send these bytes, and go on reading."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Verify:
    """Verify the credentials; then send ``COMPLETED``, or refuse."""

    credentials: Credentials


@dataclass(frozen=True, slots=True)
class ActAs:
    """Let the client act as this user, or as itself for "", if the operating system says who it is."""

    user: str


@dataclass(frozen=True, slots=True)
class SignedIn:
    """The user has proven who he is; send these bytes."""

    user: str
    data: bytes


def begins_sasl(data: bytes) -> bool:
    """Return whether the first bytes of a connection are a START, and no frame of 16 MiB or more (01 .. .. ..)."""
    return data[0] == START and not any(data[1:4]) and data[4:5] < b"\x80"


COMPLETED: Final = sasl_message(COMPLETE)
Step = Reply | Verify | ActAs | SignedIn


class SaslServer:
    """The server's side of one negotiation."""

    def __init__(self, scram: Exchange, *, takes_plain: bool) -> None:
        """``takes_plain``: the channel hides a password from strangers."""
        self._scram = scram
        self._takes_plain = takes_plain
        self._mechanism = b""
        self._is_challenged = False
        self._buffer = bytearray()

    def feed(self, data: bytes) -> None:
        self._buffer += data

    def take_rest(self) -> bytes:
        """Return the bytes after the negotiation, once."""
        rest, self._buffer = bytes(self._buffer), bytearray()
        return rest

    @property
    def user(self) -> str:
        """The user whom SCRAM names."""
        return self._scram.user

    def next_step(self) -> Step | None:
        """Handle the next message, or return None if it has not arrived whole.  Raises SignInRefused."""
        if len(self._buffer) < HEAD_BYTES:
            return None
        status, length = _HEAD.unpack_from(self._buffer)
        if length > PAYLOAD_BYTES:
            raise SignInRefused(f"a SASL message of {length} bytes; {PAYLOAD_BYTES} are allowed")
        if len(self._buffer) < HEAD_BYTES + length:
            return None
        payload = bytes(self._buffer[HEAD_BYTES : HEAD_BYTES + length])
        del self._buffer[: HEAD_BYTES + length]
        return self._handle(status, payload)

    def _handle(self, status: int, payload: bytes) -> Step | None:
        if not self._mechanism:
            self._begin(status, payload)
            return self.next_step()
        if status not in (OK, COMPLETE):
            raise SignInRefused(f"a SASL message of status {status} where a response belongs")
        if self._mechanism == PLAIN:
            return Verify(of_plain(payload))
        if self._mechanism == EXTERNAL:
            return ActAs(payload.decode(errors="replace"))
        if not self._is_challenged:
            self._is_challenged = True
            return Reply(sasl_message(OK, self._scram.challenge(payload)))
        last = self._scram.verify_proof(payload)
        return SignedIn(self._scram.user, sasl_message(COMPLETE, last))

    def _begin(self, status: int, payload: bytes) -> None:
        if status != START:
            raise SignInRefused(f"a SASL negotiation begins with START, not with status {status}")
        if payload == PLAIN and not self._takes_plain:
            raise SignInRefused("PLAIN shows the password to the network: connect with TLS, or use SCRAM-SHA-256")
        if payload not in (PLAIN, SCRAM, EXTERNAL):
            raise SignInRefused("this store offers the SASL mechanisms PLAIN and SCRAM-SHA-256")
        self._mechanism = payload
