r"""(pure) Row keys of several parts, sorted as their parts are: joins parts to a key and splits a key into parts.

    key       := part                            a single part is not escaped
               | escaped (00 01 escaped)*        several parts
    escaped   := the part with 00 FF for each 00

    (b"a",) -> 61    (b"a", b"bc") -> 61 00 01 62 63    (b"a\0", b"") -> 61 00 FF 00 01

A part that is a prefix of a longer part sorts before it, whatever follows: 00 01 is below 00 FF and below every byte
from 01 on.

Golden bytes: tests/golden/test_view_bytes.py; the page: docs/formats/views.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from columnar.errors import DamagedData

SEPARATOR: Final = b"\0\1"
_ESCAPED: Final = b"\0\xff"


def escaped(part: bytes) -> bytes:
    return part.replace(b"\0", _ESCAPED)


def unescaped(part: bytes) -> bytes:
    return part.replace(_ESCAPED, b"\0")


def joined(parts: Sequence[bytes]) -> bytes:
    """Return the key of the parts; a single part is the key itself."""
    assert parts, "a key has a part"
    return parts[0] if len(parts) == 1 else SEPARATOR.join(map(escaped, parts))


def parted(key: bytes, count: int) -> tuple[bytes, ...]:
    """Return the ``count`` parts of a key that ``joined`` made.  Raises DamagedData if the key has no such form."""
    if count == 1:
        return (key,)
    found = key.split(SEPARATOR)
    if len(found) != count or any(part.count(b"\0") != part.count(_ESCAPED) for part in found):
        raise DamagedData(f"a key of {count} parts: {key[:80]!r}")
    return tuple(map(unescaped, found))


def after_prefix(prefix: bytes) -> bytes | None:
    """Return the first key after all keys that begin with ``prefix``, or None if there is no such key."""
    bare = prefix.rstrip(b"\xff")
    return bare[:-1] + bytes((bare[-1] + 1,)) if bare else None
