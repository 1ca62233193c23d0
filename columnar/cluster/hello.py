"""(pure) The greeting of a link: who speaks, for which cluster, and over TCP the proof of the cluster's secret.

    hello      the first frame of each side: ``Hello``; over TCP with ``random``, 16 random bytes
    proof      over TCP the second frame of each side, once the peer's hello is good:

    proof := HMAC-SHA256(secret, LABEL role:u8 random:byte[16] random:byte[16] hello hello)
    hello := length:u32 body:byte[length]       of the hello's frame, as it was sent; big-endian

``role`` is 1 in the proof of the side that connected, and 2 in that of the side that accepted.  Randoms and hellos are
first of the side that connected, then of the side that accepted.

Invariants:
    G1. Over TCP a greeting is over only after the peer's proof was verified, in constant time.  Before that only the
        peer's hello is decoded, of at most ``limits.GREETING_FRAME_BYTES``.
    G2. A proof is good for one link and one side: it covers randoms of both sides and the role.  A side sends its proof
        only to a peer whose hello is good.
    G3. Nothing is read beyond the last frame of the greeting: ``take_rest`` returns what follows it.

The proof authenticates the beginning of a link, not its later bytes.  TLS protects those against a network that
changes bytes.

Knows nothing of sockets and time.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct
from typing import Final

from columnar.cluster import peer_frames
from columnar.cluster.peer_frames import BadFrame, Frame
from columnar.cluster.value_codec import Codec, codec_of
from columnar.limits import GREETING_FRAME_BYTES
from columnar.model.owner import Incarnation

# 1  the first; frames and messages as in docs/formats/peers.md
PROTOCOL_VERSION: Final = 1
RANDOM_BYTES: Final = 16
_RANDOM: Final = "random"  # of the hello's map
_LABEL: Final = b"columnar peers 1\n"
_CONNECTED: Final = b"\1"
_ACCEPTED: Final = b"\2"
_LENGTH: Final = Struct(">I")


@dataclass(frozen=True, slots=True)
class Hello:
    cluster: str  # the cluster's id
    server: Incarnation
    version: int = PROTOCOL_VERSION  # of the protocol; both sides use the lower of their versions
    leader_epoch: int = 0  # of the master that speaks; 0: a server speaks


HELLO: Final[Codec[Hello]] = codec_of(Hello)


class NoProof(BadFrame):
    """The peer did not prove that it knows the cluster's secret."""


def obstacle(hello: Hello, cluster: str, leader_epoch: int) -> str | None:
    """Return why a link with this peer must be closed, or None if it is good.

    ``leader_epoch``: the highest epoch known.  A master with a lower epoch has been replaced, and may not know that.
    """
    if hello.cluster != cluster:
        return f"{hello.server} is of cluster {hello.cluster}, not of {cluster}"
    if hello.version < 1:
        return f"{hello.server} speaks version {hello.version} of the protocol; there is none below 1"
    if 0 < hello.leader_epoch < leader_epoch:
        return f"master {hello.server} leads at epoch {hello.leader_epoch}, and {leader_epoch} has begun"
    return None


@dataclass(frozen=True, slots=True)
class _Side:
    random: bytes
    body: bytes  # of its hello


class Greeting:
    """The greeting as one side sees it: bytes of the peer in, bytes for the peer out."""

    def __init__(
        self, mine: Hello, obstacle: Callable[[Hello], str | None], secret: bytes | None, *, connects: bool
    ) -> None:
        """``obstacle`` returns why a link with this peer must be closed, or None; ``connects``: we made the link."""
        self.peer: Hello | None = None  # once its hello has come; over TCP it is not verified before ``is_over``
        self.is_over = False
        self.refusal = ""  # why the peer was refused, if its hello was read and is no good
        self._rest = b""  # bytes after the last whole frame of the greeting
        self._obstacle = obstacle
        self._connects = connects
        self._mine = mine
        self._secret = secret  # None from ``begin`` on if no proof is needed
        self._sides: list[_Side] = []  # ours, then the peer's

    def begin(self, random: bytes) -> bytes:
        """Return our hello's frame.

        Pass RANDOM_BYTES random bytes if both sides must prove that they know the secret, or none.  Raises NoProof if
        this side has no secret to prove.
        """
        fields = HELLO.encode(self._mine)
        if not random:
            self._secret = None
        elif not self._secret:
            raise NoProof("this process has no secret of the cluster, which a link over TCP needs")
        else:
            assert len(random) == RANDOM_BYTES, "of the format"
            fields[_RANDOM] = random
        frame = peer_frames.hello(fields)
        self._sides.append(_Side(random, frame[peer_frames.HEAD_BYTES :]))
        return frame

    def take_bytes(self, data: bytes) -> bytes:
        """Take bytes of the stream, and return bytes for the peer.

        Sets ``refusal`` if the peer's hello is no good; then nothing more is to be read.  Raises BadFrame and BadValue
        if the bytes are no greeting, and NoProof.
        """
        self._rest += data
        answer = b""
        if self.peer is None:
            answer = self._take_hello()
        if self.peer is not None and not self.is_over and not self.refusal:
            self._take_proof(self._secret)
        return answer

    def take_rest(self) -> bytes:
        """Return the bytes after the greeting, once."""
        rest, self._rest = self._rest, b""
        return rest

    def _next_frame(self, kind: int) -> Frame | None:
        found = peer_frames.cut_frame(self._rest, kind, GREETING_FRAME_BYTES)
        if found is None:
            return None
        frame, self._rest = found
        return frame

    def _take_hello(self) -> bytes:
        frame = self._next_frame(peer_frames.HELLO)
        if frame is None:
            return b""
        fields = frame.unpacked()
        self.peer = peer = HELLO.decode(fields)
        self.refusal = self._obstacle(peer) or ""
        if self.refusal or self._secret is None:
            return b""
        random = fields.get(_RANDOM)
        if type(random) is not bytes or len(random) != RANDOM_BYTES:
            raise NoProof(f"{peer.server} says a hello without random bytes, as over a Unix socket")
        self._sides.append(_Side(random, bytes(frame.body)))
        return peer_frames.proof(self._proof(self._secret, self._connects))

    def _take_proof(self, secret: bytes | None) -> None:
        if secret is None:
            self.is_over = True
            return
        frame = self._next_frame(peer_frames.PROOF)
        if frame is None:
            return
        if not hmac.compare_digest(frame.body, self._proof(secret, not self._connects)):
            assert self.peer is not None, "it has said hello"
            raise NoProof(f"{self.peer.server} does not know the secret of the cluster")
        self.is_over = True

    def _proof(self, secret: bytes, of_connected: bool) -> bytes:
        """Return the proof of the side that connected, or of the side that accepted."""
        sides = self._sides if self._connects else self._sides[::-1]
        parts = [_LABEL, _CONNECTED if of_connected else _ACCEPTED, *(side.random for side in sides)]
        for side in sides:
            parts += (_LENGTH.pack(len(side.body)), side.body)
        return hmac.digest(secret, b"".join(parts), "sha256")


__all__ = ["HELLO", "Greeting", "Hello", "NoProof", "obstacle"]
