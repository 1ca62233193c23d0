"""(pure) The protocol of Redis, as far as the experiment's queue needs it.

    command := "*" count CRLF ("$" length CRLF bytes CRLF)*
    reply   := "+" text CRLF | "-" text CRLF | ":" number CRLF | "$" length CRLF bytes CRLF | "*" count CRLF reply*
               a length or count of -1 is nil

Knows nothing of sockets.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

_CRLF: Final = b"\r\n"


class RedisError(Exception):
    """An error that Redis answers; the first word of its text names the kind."""


class _Unfinished(Exception):
    """Raised if the reply continues in bytes that have not arrived yet."""


def command(*words: bytes | str | int) -> bytes:
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        data = word if isinstance(word, bytes) else str(word).encode()
        parts.append(b"$%d\r\n%b\r\n" % (len(data), data))
    return b"".join(parts)


class Replies:
    """A parser that takes pieces of the stream and yields whole replies.

    A reply is bytes, an int, None, a list of these, or a RedisError as a value.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Any]:
        """Yield the replies that ``data`` completes.  Raises ValueError if the stream is not Redis's protocol."""
        self._buffer += data
        at = 0
        try:
            while at < len(self._buffer):
                reply, at = self._reply(at)
                yield reply
        except _Unfinished:
            pass
        finally:
            del self._buffer[:at]

    def _reply(self, at: int) -> tuple[Any, int]:
        end = self._buffer.find(_CRLF, at)
        if end < 0:
            raise _Unfinished
        kind, text, at = bytes(self._buffer[at : at + 1]), bytes(self._buffer[at + 1 : end]), end + len(_CRLF)
        if kind == b"+":
            return text, at
        if kind == b"-":
            return RedisError(text.decode(errors="replace")), at
        if kind == b":":
            return int(text), at
        if kind not in (b"$", b"*"):
            raise ValueError(f"no reply of Redis begins with {kind!r}")
        count = int(text)
        if count < 0:
            return None, at
        return self._bulk(at, count) if kind == b"$" else self._array(at, count)

    def _bulk(self, at: int, length: int) -> tuple[bytes, int]:
        end = at + length
        if len(self._buffer) < end + len(_CRLF):
            raise _Unfinished
        return bytes(self._buffer[at:end]), end + len(_CRLF)

    def _array(self, at: int, count: int) -> tuple[list[Any], int]:
        found = []
        for _ in range(count):
            one, at = self._reply(at)
            found.append(one)
        return found, at
