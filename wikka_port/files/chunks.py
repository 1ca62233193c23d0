"""(pure) Chunks of a stored file: their rows, the rows of a range of bytes, and a stream cut into chunks.

    table ``chunks``   row   place (16 hexadecimal digits), number from 0 (6 digits)     c:data

Every chunk but the last has CHUNK_BYTES.  A place is a random id that one upload takes, so no two uploads write the
same row, and whoever deletes the chunks of a place deletes nothing of another upload.

    place "0123456789abcdef", third chunk  ->  b"0123456789abcdef000002"
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

CHUNK_BYTES: Final = 1_048_576  # HBase advises cells below 10 MB; a reader needs one chunk in memory
PLACE_CHARS: Final = 16
_NUMBER_CHARS: Final = 6
CHUNKS_MAX: Final = 10**_NUMBER_CHARS
_PLACE: Final = re.compile(rb"[0-9a-f]{%d}" % PLACE_CHARS)
_ROW: Final = re.compile(rb"([0-9a-f]{%d})([0-9]{%d})" % (PLACE_CHARS, _NUMBER_CHARS))


def is_place(value: bytes) -> bool:
    return _PLACE.fullmatch(value) is not None


def chunk_row(place: bytes, number: int) -> bytes:
    assert is_place(place), "made by the upload"
    assert 0 <= number < CHUNKS_MAX, "bounded where the upload begins"
    return place + b"%0*d" % (_NUMBER_CHARS, number)


def parse_chunk_row(row: bytes) -> tuple[bytes, int]:
    """Return place and number of a row.  Raises ValueError if ``row`` is no row of a chunk."""
    found = _ROW.fullmatch(row)
    if found is None:
        raise ValueError(f"{row[:60]!r} is no row of a chunk")
    return found[1], int(found[2])


def chunks_end(place: bytes) -> bytes:
    """Return the row at which a scan of the chunks of ``place`` stops."""
    return place + b":"  # after every digit


def chunk_count(size_bytes: int) -> int:
    return -(-size_bytes // CHUNK_BYTES)


@dataclass(frozen=True, slots=True)
class ChunkSlice:
    """The bytes ``start`` to ``stop`` of the chunk ``number``."""

    number: int
    start: int
    stop: int

    @property
    def is_whole(self) -> bool:
        return self.start == 0 and self.stop == CHUNK_BYTES


def slices(start: int, stop: int) -> Iterator[ChunkSlice]:
    """Yield the slices that make up the bytes ``start`` to ``stop`` of a file, in order."""
    assert start >= 0, "ranges are checked by ``conditional``"
    while start < stop:
        number, begin = divmod(start, CHUNK_BYTES)
        end = min(CHUNK_BYTES, begin + stop - start)
        yield ChunkSlice(number, begin, end)
        start += end - begin


class Chunker:
    """Cuts a stream into chunks.  Keeps less than CHUNK_BYTES beside the piece that it is given."""

    def __init__(self, next_number: int = 0, rest: bytes = b"") -> None:
        """Begin with chunk ``next_number`` and the bytes of it that a resumed upload has."""
        assert len(rest) < CHUNK_BYTES, "a short chunk"
        self.next_number = next_number
        self._rest = bytearray(rest)

    def feed(self, piece: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield the chunks that ``piece`` completes, with their numbers."""
        view, begin = memoryview(piece), 0
        while len(self._rest) + len(view) - begin >= CHUNK_BYTES:
            end = begin + CHUNK_BYTES - len(self._rest)
            self._rest += view[begin:end]
            begin = end
            yield self._cut()
        self._rest += view[begin:]

    def finish(self) -> Iterator[tuple[int, bytes]]:
        """Yield the last chunk, which is short, unless the stream ended or broke off with a whole one."""
        if self._rest:
            yield self._cut()

    def _cut(self) -> tuple[int, bytes]:
        chunk, number = bytes(self._rest), self.next_number
        self._rest.clear()
        self.next_number += 1
        return number, chunk
