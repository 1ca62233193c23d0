"""Bytes of a dump file, decompressed piece by piece in bounded memory.

The first bytes of the file decide its kind (plain, bzip2, gzip), never its name.
A file of several compressed streams one after the other, such as Wikimedia's
"multistream" dumps, is read as one stream.

Knows nothing of XML; :mod:`wikka_port.dump` does.
"""

from __future__ import annotations

import bz2
import zlib
from collections.abc import Iterator
from typing import BinaryIO, Final

CHUNK_BYTES: Final = 64 * 1024  # of the file per read
PIECE_BYTES: Final = 256 * 1024  # decompressed at most per piece: a compression bomb stays a stream
_BZ2_MAGIC: Final = b"BZh"
_GZIP_MAGIC: Final = b"\x1f\x8b"
_GZIP_WBITS: Final = 16 + zlib.MAX_WBITS
# Archives that are refused by name, with the command that unpacks them to a pipe.
_ARCHIVES: Final = (
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "7z x -so FILE"),
    (b"PK\x03\x04", "a zip archive", "unzip -p FILE"),
    (b"Rar!\x1a\x07", "a rar archive", "unrar p -inul FILE"),
    (b"\xfd7zXZ\x00", "an xz file", "xz -dc FILE"),
    (b"LZIP", "an lzip file", "lzip -dc FILE"),
    (b"\x28\xb5\x2f\xfd", "a zstd file", "zstd -dc FILE"),
    (b"\x04\x22\x4d\x18", "an lz4 file", "lz4 -dc FILE"),
)
_TAR: Final = (257, b"ustar")  # where its name stands in the first block
_HEAD_BYTES: Final = max(len(magic) for magic, _, _ in _ARCHIVES)


class DumpError(Exception):
    """The file cannot be imported; the operator must take a different one."""


class NotADump(DumpError):
    """The file is no MediaWiki export; it need not be damaged."""

    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(f"not a MediaWiki export: {why}")


class DamagedDump(DumpError):
    """A MediaWiki export that ends early or is broken inside.

    ``file_byte`` is the number of bytes read from the file (before decompression).
    ``xml_byte`` and ``line`` are the position in the XML, or None if the XML was not reached.
    """

    def __init__(self, why: str, *, file_byte: int, xml_byte: int | None = None, line: int | None = None) -> None:
        self.why, self.file_byte, self.xml_byte, self.line = why, file_byte, xml_byte, line
        where = f"after {file_byte} bytes of the file"
        if xml_byte is not None:
            where += f", byte {xml_byte} (line {line}) of the XML"
        super().__init__(f"damaged dump: {why}, {where}")


class DumpBytes:
    """Iterates over decompressed pieces; ``consumed`` counts the bytes of the file read so far."""

    def __init__(self, stream: BinaryIO) -> None:
        self.consumed = 0  # monotone; read by a progress bar while the iteration continues
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        head = self._read()
        while 0 < len(head) < _HEAD_BYTES and (more := self._read()):
            head += more  # a pipe may hand out single bytes
        for magic, kind, command in _ARCHIVES:
            if head.startswith(magic):
                raise NotADump(f"it is {kind}; unpack it first: {command} | wikka import -")
        if head.startswith(_BZ2_MAGIC):
            pieces = self._bzip2(head)
        elif head.startswith(_GZIP_MAGIC):
            pieces = self._gzip(head)
        else:
            pieces = self._plain(head)
        for number, piece in enumerate(pieces):
            if number == 0 and piece.startswith(_TAR[1], _TAR[0]):
                raise NotADump("it is a tar archive; unpack it first: tar -xOf FILE | wikka import -")
            yield piece

    def _plain(self, head: bytes) -> Iterator[bytes]:
        while head:
            yield head
            head = self._read()

    def _read(self) -> bytes:
        data = self._stream.read(CHUNK_BYTES)
        self.consumed += len(data)
        return data

    def _damaged(self, why: str) -> DamagedDump:
        return DamagedDump(why, file_byte=self.consumed)

    def _bzip2(self, data: bytes) -> Iterator[bytes]:
        while True:
            unpacker = bz2.BZ2Decompressor()
            while not unpacker.eof:
                if unpacker.needs_input and not data:
                    data = self._read()
                    if not data:
                        raise self._damaged("the bzip2 file ends early (truncated?)")
                try:
                    piece = unpacker.decompress(data, PIECE_BYTES)
                except (OSError, EOFError, ValueError) as error:
                    raise self._damaged(f"bzip2: {error}") from error
                data = b""
                if piece:
                    yield piece
            data = self._fill(unpacker.unused_data, len(_BZ2_MAGIC))
            if not data:
                return
            if not data.startswith(_BZ2_MAGIC):
                raise self._damaged("bytes that are no bzip2 follow the compressed data")

    def _gzip(self, data: bytes) -> Iterator[bytes]:
        while True:
            unpacker = zlib.decompressobj(_GZIP_WBITS)
            while not unpacker.eof:
                if not data:
                    data = self._read()
                    if not data:
                        raise self._damaged("the gzip file ends early (truncated?)")
                try:
                    piece = unpacker.decompress(data, PIECE_BYTES)
                except zlib.error as error:
                    raise self._damaged(f"gzip: {error}") from error
                data = unpacker.unconsumed_tail
                if piece:
                    yield piece
            data = self._after_gzip_member(unpacker.unused_data)
            if not data:
                return

    def _after_gzip_member(self, data: bytes) -> bytes:
        """Return the start of the next member, or b"" at the end.  Skips zeros: tapes and disks pad files with them."""
        while not data.strip(b"\0"):
            data = self._read()
            if not data:
                return b""
        data = self._fill(data.lstrip(b"\0"), len(_GZIP_MAGIC))
        if not data.startswith(_GZIP_MAGIC):
            raise self._damaged("bytes that are no gzip follow the compressed data")
        return data

    def _fill(self, data: bytes, size: int) -> bytes:
        """Read on until ``data`` has at least ``size`` bytes or the file ends; return the extended ``data``."""
        while len(data) < size and (more := self._read()):
            data += more
        return data
