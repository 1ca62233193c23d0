"""(pure) Sealing: how the bytes and the names of a backup's objects are kept, as they are or encrypted.

    plain       files/SHA256            the file's bytes                    backups/NAME.json       the manifest
    encrypted   files/HMAC(SHA256)      a sealed file                       backups/NAME.sealed     a sealed manifest

    sealed      := "CLMN-SEALED 1\n" salt:16 chunk* last
    chunk       := AES-256-GCM of 262,144 bytes and its tag of 16
    last        := AES-256-GCM of 0 to 262,144 bytes and its tag of 16
    nonce       := 0:24 number:u64 is-last:u8                   big-endian; number: of the chunk, from 0
    data        := the object's name, ``files/...``             authenticated with each chunk
    object key  := HMAC-SHA256(key, "columnar-backup object " salt)
    HMAC(x)     := HMAC-SHA256(HMAC-SHA256(key, "columnar-backup names"), x of 32 bytes), in hex
    check       := HMAC-SHA256(key, "columnar-backup check"), in hex, in ``FORMAT``

``key`` is what the key file has: 32 random bytes, written as 64 hexadecimal digits.  A salt is drawn for each object,
so no two objects share a key, and nonces never repeat.  Number and ``is-last`` reveal chunks that were moved or cut
off, the name reveals objects that were exchanged.  A reader of the store without the key learns the number of files,
their sizes and the times of the backups, and nothing of contents, tables and paths.

Format versions, append only: 1 as above.  Golden bytes: tests/golden/sealed.txt; the page: docs/formats/backups.md.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Callable, Iterator
from struct import Struct
from typing import Any, Final, Protocol

from columnar.errors import CallerError, DamagedData, HostError

MAGIC: Final = b"CLMN-SEALED 1\n"
CHUNK_BYTES: Final = 256 * 1024
TAG_BYTES: Final = 16
SALT_BYTES: Final = 16
KEY_BYTES: Final = 32
_HEAD_BYTES: Final = len(MAGIC) + SALT_BYTES
_NONCE: Final = Struct(">3xQB")
assert _NONCE.size == 12, "of AES-GCM: a new layout needs a new format version"
_KEY_TEXT: Final = re.compile(rb"\s*([0-9a-fA-F]{64})\s*")


class Sealing(Protocol):
    format_line: str  # the content of ``FORMAT``
    manifest_ending: str

    def file_name(self, sha256: str) -> str:
        """Return the name in ``files`` of the file with this checksum."""

    def sealed_size(self, size_bytes: int) -> int:
        """Return the size of the object that holds ``size_bytes``."""

    def sealed(self, name: str, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """Yield the bytes of the object ``name`` that holds ``pieces``."""

    def unsealed(self, name: str, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """Yield what the object holds.  Raises DamagedData if a byte of it was changed."""


class PlainSealing:
    """Objects as they are."""

    format_line = "columnar-backup 1"
    manifest_ending = ".json"

    def file_name(self, sha256: str) -> str:
        return sha256

    def sealed_size(self, size_bytes: int) -> int:
        return size_bytes

    def sealed(self, name: str, pieces: Iterator[bytes]) -> Iterator[bytes]:
        return pieces

    def unsealed(self, name: str, pieces: Iterator[bytes]) -> Iterator[bytes]:
        return pieces


class KeySealing:
    """Objects encrypted by a key."""

    manifest_ending = ".sealed"

    def __init__(self, key: bytes, draw: Callable[[int], bytes] = secrets.token_bytes) -> None:
        """``draw`` returns random bytes.  Raises HostError if the package cryptography is not installed."""
        self._cipher, self._refusal = _cipher()
        self._key = key
        self._names = _derived(key, b"names")
        self._draw = draw
        self.format_line = f"columnar-backup 2\ncheck {_derived(key, b'check').hex()}"

    def file_name(self, sha256: str) -> str:
        return hmac.digest(self._names, bytes.fromhex(sha256), "sha256").hex()

    def sealed_size(self, size_bytes: int) -> int:
        return _HEAD_BYTES + size_bytes + TAG_BYTES * max(1, -(-size_bytes // CHUNK_BYTES))

    def sealed(self, name: str, pieces: Iterator[bytes]) -> Iterator[bytes]:
        salt = self._draw(SALT_BYTES)
        yield MAGIC + salt
        cipher, bound = self._cipher(self._object_key(salt)), name.encode()
        for number, (chunk, is_last) in enumerate(_chunks(pieces, CHUNK_BYTES)):
            yield cipher.encrypt(_NONCE.pack(number, is_last), chunk, bound)

    def unsealed(self, name: str, pieces: Iterator[bytes]) -> Iterator[bytes]:
        head, rest = _head_of(pieces)
        if head[: len(MAGIC)] != MAGIC or len(head) < _HEAD_BYTES:
            raise DamagedData(f"{name} is damaged: it is no sealed object")
        cipher, bound = self._cipher(self._object_key(head[len(MAGIC) :])), name.encode()
        for number, (chunk, is_last) in enumerate(_chunks(rest, CHUNK_BYTES + TAG_BYTES)):
            try:
                yield cipher.decrypt(_NONCE.pack(number, is_last), chunk, bound)
            except (self._refusal, ValueError):
                raise DamagedData(f"{name} is damaged: it is not what the owner of the key has written") from None

    def _object_key(self, salt: bytes) -> bytes:
        return _derived(self._key, b"object " + salt)


def parse_key(text: bytes, path: str) -> bytes:
    """Return the key in the text of a key file.  Raises CallerError; the message does not have the text."""
    found = _KEY_TEXT.fullmatch(text)
    if found is None:
        raise CallerError(
            f"{path} is no key: a key has {KEY_BYTES * 2} hexadecimal digits; 'columnar backup new-key FILE' makes one"
        )
    return bytes.fromhex(found[1].decode())


def new_key_text() -> bytes:
    """Return the text of a new key file."""
    return secrets.token_hex(KEY_BYTES).encode() + b"\n"


def _derived(key: bytes, purpose: bytes) -> bytes:
    return hmac.digest(key, b"columnar-backup " + purpose, "sha256")


def _cipher() -> tuple[Any, type[Exception]]:
    """Return the class of ciphers, and what they raise if a tag is wrong."""
    try:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError as error:
        raise HostError("encrypted backups need the package cryptography: pip install columnar[encryption]") from error
    return AESGCM, InvalidTag


def _head_of(pieces: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """Return the first _HEAD_BYTES, or all if there are fewer, and the pieces after them."""
    head = b""
    for piece in pieces:
        head += piece
        if len(head) >= _HEAD_BYTES:
            break
    first = head[_HEAD_BYTES:]

    def rest() -> Iterator[bytes]:
        yield first
        yield from pieces

    return head[:_HEAD_BYTES], rest()


def _chunks(pieces: Iterator[bytes], size: int) -> Iterator[tuple[bytes, bool]]:
    """Yield chunks of ``size`` bytes, then the last one of ``size`` at most; each with whether it is the last."""
    buffered = bytearray()
    for piece in pieces:
        buffered += piece
        while len(buffered) > size:
            yield bytes(buffered[:size]), False
            del buffered[:size]
    yield bytes(buffered), True
