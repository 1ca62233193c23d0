"""(pure) SCRAM-SHA-256 (RFC 5802, RFC 7677), both ends, without channel binding.

    client   n,,n=USER,r=NONCE
    server   r=NONCE+MORE,s=SALT,i=ITERATIONS
    client   c=biws,r=NONCE+MORE,p=PROOF
    server   v=SIGNATURE

A verifier is kept as ``SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey``, the last three in base64, as PostgreSQL
keeps it.  Neither it nor what goes over the wire is the password, nor enough to sign in.

Knows nothing of accounts and of the transport: random text and the lookup of verifiers are arguments.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from columnar.errors import SignInRefused
from columnar.security.saslprep import prepared

MECHANISM: Final = "SCRAM-SHA-256"
ITERATIONS: Final = 16_384  # a client computes them in some 10 ms
LEAST_ITERATIONS: Final = 4_096  # RFC 7677
MOST_ITERATIONS: Final = 1_000_000  # a client computes no more, whatever a server says
SALT_BYTES: Final = 16
_KEY_BYTES: Final = 32
_NONCE: Final = re.compile(r"[!-+\--~]{8,256}")  # printable, no comma
_FIRST: Final = re.compile(r"([ny]|p=[A-Za-z0-9.-]+),(?:a=([^,]+))?,(n=([^,]+),r=([^,]+)(?:,.*)?)", re.DOTALL)
_FINAL: Final = re.compile(r"(c=([^,]+),r=([^,]+)(?:,.*)?),p=([^,]+)", re.DOTALL)
_CHALLENGE: Final = re.compile(r"r=([^,]+),s=([^,]+),i=([0-9]{1,9})(?:,.*)?", re.DOTALL)
WRONG: Final = "the user or the password is not right"


@dataclass(frozen=True, slots=True)
class Verifier:
    iterations: int
    salt: bytes
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)

    @classmethod
    def of_password(cls, password: str, salt: bytes, iterations: int = ITERATIONS) -> Verifier:
        """Make the verifier of a password; pass random bytes as ``salt``.  Raises IllegalArgument."""
        client_key, server_key = _keys(password, salt, iterations)
        return cls(iterations, salt, hashlib.sha256(client_key).digest(), server_key)

    @classmethod
    def of_text(cls, text: str) -> Verifier:
        """Read the kept form.  Raises ValueError."""
        mechanism, cost, keys = text.split("$")
        iterations, salt = cost.split(":")
        stored, server = (base64.b64decode(one, validate=True) for one in keys.split(":"))
        made = cls(int(iterations), base64.b64decode(salt, validate=True), stored, server)
        sizes = {len(stored), len(server)}
        if mechanism != MECHANISM or sizes != {_KEY_BYTES} or made.iterations < LEAST_ITERATIONS or not made.salt:
            raise ValueError("no verifier of SCRAM-SHA-256")
        return made

    @classmethod
    def of_nobody(cls, key: bytes, user: str) -> Verifier:
        """Make a verifier that no password fits, the same for each attempt: it does not tell that none is kept."""
        salt, stored, server = (_hmac(key, part + user.encode()) for part in (b"salt", b"stored", b"server"))
        return cls(ITERATIONS, salt[:SALT_BYTES], stored, server)

    @property
    def encoded(self) -> str:
        salt, stored, server = map(_base64, (self.salt, self.stored_key, self.server_key))
        return f"{MECHANISM}${self.iterations}:{salt}${stored}:{server}"


class ScramServer:
    """The server's end of one exchange: ``challenge``, then ``verify_proof``."""

    def __init__(self, verifier_of: Callable[[str], Verifier], nonce: str) -> None:
        self._verifier_of = verifier_of
        self._more = nonce
        self.user = ""  # whom the client names, not yet verified
        self._verifier: Verifier | None = None
        self._begin = ""  # gs2 header
        self._said = ""  # by both, as far as the proof covers it
        self._nonce = ""

    def challenge(self, first: bytes) -> bytes:
        """Answer the client's first message.  Raises SignInRefused."""
        text = _text(first)
        found = _FIRST.fullmatch(text)
        if found is None or not _NONCE.fullmatch(found[5]):
            raise SignInRefused("the first SCRAM message is malformed")
        binding, acting, bare, name, nonce = found.groups()
        if binding.startswith("p="):
            raise SignInRefused("SCRAM with channel binding is not offered; use SCRAM-SHA-256 over TLS")
        self.user = _unescaped(name)
        if acting is not None and _unescaped(acting) != self.user:
            raise SignInRefused("nobody can act as another user: leave the authorization identity empty")
        self._begin = text[: -len(bare)]
        self._nonce = nonce + self._more
        verifier = self._verifier = self._verifier_of(self.user)
        answer = f"r={self._nonce},s={_base64(verifier.salt)},i={verifier.iterations}"
        self._said = f"{bare},{answer}"
        return answer.encode()

    def verify_proof(self, final: bytes) -> bytes:
        """Return the last answer; the client is ``user``.  Raises SignInRefused if it did not prove that."""
        verifier = self._verifier
        assert verifier is not None, "the challenge comes first"
        found = _FINAL.fullmatch(_text(final))
        if found is None or found[2] != _base64(self._begin.encode()) or found[3] != self._nonce:
            raise SignInRefused("the last SCRAM message is malformed, or does not follow the first")
        said = f"{self._said},{found[1]}".encode()
        proof = _bytes(found[4])
        if len(proof) != _KEY_BYTES:
            raise SignInRefused("the last SCRAM message is malformed")
        client_key = _xor(proof, _hmac(verifier.stored_key, said))
        if not hmac.compare_digest(hashlib.sha256(client_key).digest(), verifier.stored_key):
            raise SignInRefused(WRONG)
        return b"v=" + _base64(_hmac(verifier.server_key, said)).encode()


class ScramClient:
    """The client's end of one exchange: ``first``, ``proof``, ``check``."""

    def __init__(self, user: str, password: str, nonce: str) -> None:
        self._password = password
        self._nonce = nonce
        self._bare = f"n={user.replace('=', '=3D').replace(',', '=2C')},r={nonce}"
        self._signature = b""

    def first(self) -> bytes:
        return f"n,,{self._bare}".encode()

    def proof(self, challenge: bytes) -> bytes:
        """Answer the server's challenge.  Blocks for some 10 ms.  Raises SignInRefused, IllegalArgument."""
        found = _CHALLENGE.fullmatch(_text(challenge))
        if found is None or not found[1].startswith(self._nonce) or found[1] == self._nonce:
            raise SignInRefused("the server's SCRAM challenge is malformed")
        iterations = int(found[3])
        if not LEAST_ITERATIONS <= iterations <= MOST_ITERATIONS:
            raise SignInRefused(f"the server wants {iterations} SCRAM iterations")
        client_key, server_key = _keys(self._password, _bytes(found[2]), iterations)
        final = f"c={_base64(b'n,,')},r={found[1]}"
        said = f"{self._bare},{challenge.decode()},{final}".encode()
        self._signature = _hmac(server_key, said)
        proof = _xor(client_key, _hmac(hashlib.sha256(client_key).digest(), said))
        return f"{final},p={_base64(proof)}".encode()

    def check(self, last: bytes) -> None:
        """Raise SignInRefused if the server does not know the password's verifier."""
        text = _text(last)
        signature = _bytes(text[2:].partition(",")[0]) if text.startswith("v=") else b""
        if not self._signature or not hmac.compare_digest(signature, self._signature):
            raise SignInRefused("the server did not prove that it knows this user's password")


def _keys(password: str, salt: bytes, iterations: int) -> tuple[bytes, bytes]:
    salted = hashlib.pbkdf2_hmac("sha256", prepared(password).encode(), salt, iterations)
    return _hmac(salted, b"Client Key"), _hmac(salted, b"Server Key")


def _hmac(key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, "sha256")


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise SignInRefused("a SCRAM message is malformed: no base64") from None


def _text(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise SignInRefused("a SCRAM message is not in UTF-8") from None


def _unescaped(name: str) -> str:
    plain = name.replace("=2C", ",").replace("=3D", "\0")
    if "=" in plain:
        raise SignInRefused("the first SCRAM message is malformed: '=' in a name is written =3D")
    return plain.replace("\0", "=")
