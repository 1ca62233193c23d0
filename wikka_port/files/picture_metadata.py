"""(pure) Removal of metadata from pictures as they stream by: places, cameras, owners, thumbnails, hidden trailers.

The compressed picture itself is copied byte for byte, so nothing is decoded and nothing is lost.  The rule is a list
of what is kept; all else goes, known or not:

    JPEG   kept: tables, frames, scans, JFIF without its thumbnail, colour profile (ICC), Adobe's colour transform
           removed: EXIF, XMP, IPTC, comments, maker notes, everything behind the end (videos of motion photographs,
           gain maps, second pictures)
    PNG    kept: the picture, its palette, colours, resolution and animation
           removed: texts, time, EXIF, private chunks, everything behind the end (what a crop left)
    WebP   kept: the picture, its alpha, animation and colour profile.  Its header states the file's length first, so a
           removed chunk becomes one of zeros with the name JUNK, which readers skip; the file keeps its length.
           The frames of an animation are copied with all that is in them
    AVIF   kept: the pictures among its items, and the boxes that describe them.  Places in the file are counted from
           its beginning, so it keeps its length: EXIF, XMP and unknown items become an empty EXIF and zeros
    GIF    copied; it has no place for EXIF

The orientation is the one entry of EXIF that is kept, without which a photograph lies on its side.  A picture whose
structure cannot be followed is refused, for what cannot be read cannot be removed; a JPEG that ends within its picture
is taken.

Memory: the longest segment that is read whole, EXIF_BYTES_MAX, beside the piece that is given.
"""

from __future__ import annotations

import re
import zlib
from collections import deque
from collections.abc import Generator
from dataclasses import dataclass
from struct import Struct
from typing import Final, Literal

from wikka_port.files.avif_boxes import META_BYTES_MAX, BadBox, Extent, cleaned
from wikka_port.texts import N_

EXIF_BYTES_MAX: Final = 1_048_576  # of one picture; a longer one is dropped, and with it the orientation
UPRIGHT: Final = 1
_ORIENTATION_TAG: Final = 0x0112
_SHORT: Final = 3
_ENTRIES_MAX: Final = 1_000  # of a directory that are read
_MINIMAL: Final = Struct("<4sIHHHIHHI")
MINIMAL_BYTES: Final = _MINIMAL.size
assert MINIMAL_BYTES == 26, "the worked example"


class DamagedPicture(ValueError):
    """The structure of a picture cannot be followed; ``str()`` names the place, as a text to be translated."""


@dataclass(frozen=True, slots=True)
class _Need:
    """The treatment that a reader needs for the next bytes of the stream."""

    act: Literal["read", "head", "copy", "skip", "zero", "scan", "rest", "end"]  # head: read, or the end of the file
    count: int = 0


_SCAN: Final = _Need("scan")  # copy entropy-coded data, and return the code of the marker behind it
_REST: Final = _Need("rest")  # copy all that follows
_END: Final = _Need("end")  # drop all that follows
_Reader = Generator[_Need, bytes, None]
_MARKER: Final = re.compile(b"\xff([^\x00\xd0-\xd7\xff])")


class MetadataRemover:
    """Removes the metadata of one picture.  After ``finish`` the fields say what was found."""

    def __init__(self, media_type: str) -> None:
        """Raises KeyError if ``media_type`` is none of REMOVABLE."""
        self.width = self.height = 0  # as stored; 0: unknown
        self.orientation = UPRIGHT
        self.removed_bytes = 0
        self._buffer = bytearray()
        self._out = bytearray()
        self._reader = _READERS[media_type](self)
        self._need: _Need | None = next(self._reader)

    @property
    def size(self) -> tuple[int, int]:
        """Width and height as a reader sees the picture: turned by its orientation."""
        return (self.height, self.width) if self.orientation >= 5 else (self.width, self.height)

    def feed(self, piece: bytes) -> bytes:
        """Return the bytes to be stored as far as they are known.  Raises DamagedPicture."""
        self._buffer += piece
        while self._need is not None and self._step(self._need):
            pass
        done = bytes(self._out)
        self._out.clear()
        return done

    def finish(self) -> bytes:
        """Return the last bytes.  Raises DamagedPicture if the stream ended too early."""
        at_end = self._need is not None and self._need.act == "head" and not self._buffer
        if self._need is not None and self._need.act not in ("scan", "rest", "end") and not at_end:
            raise DamagedPicture(N_("it ends too early"))
        done = bytes(self._buffer)  # of a JPEG that ends within its picture
        self._buffer.clear()
        return done

    # --- for the readers of the formats -----------------------------------------------------------

    def put_bytes(self, *parts: bytes) -> None:
        for part in parts:
            self._out += part

    def count_removed(self, size_bytes: int) -> None:
        self.removed_bytes += max(0, size_bytes)

    def measure(self, width: int, height: int) -> None:
        """Take the first size that the file states."""
        if not self.width:
            self.width, self.height = width, height

    def take_orientation(self, exif: bytes) -> int:
        """Return the orientation in ``exif`` if it is the first that turns the picture, else UPRIGHT."""
        found = orientation_of(exif) if self.orientation == UPRIGHT else UPRIGHT
        self.orientation = max(self.orientation, found)
        return found

    def _step(self, need: _Need) -> bool:
        """Meet a need as far as the buffer allows; return whether it is met."""
        available = min(need.count, len(self._buffer))
        if need.act in ("read", "head"):
            return available == need.count and self._go(self._taken(available))
        if need.act == "scan":
            return self._scan()
        if need.act in ("rest", "end"):
            rest = self._taken(len(self._buffer))
            self.removed_bytes += 0 if need.act == "rest" else len(rest)
            self._out += rest if need.act == "rest" else b""
            return False
        taken = self._taken(available)
        if need.act == "copy":
            self._out += taken
        else:
            self.removed_bytes += available
            self._out += bytes(available if need.act == "zero" else 0)
        if available < need.count:
            self._need = _Need(need.act, need.count - available)
            return False
        return self._go(b"")

    def _go(self, answer: bytes) -> bool:
        try:
            self._need = self._reader.send(answer)
        except StopIteration:
            self._need = _END
        return True

    def _taken(self, count: int) -> bytes:
        taken = bytes(self._buffer[:count])
        del self._buffer[:count]
        return taken

    def _scan(self) -> bool:
        marker = _MARKER.search(self._buffer)
        if marker is None:
            most = len(self._buffer) - self._buffer.endswith(b"\xff")
            self._out += self._taken(most)
            return False
        code = marker[1]
        self._out += self._taken(marker.start())
        self._taken(2)
        return self._go(code)


# --- EXIF --------------------------------------------------------------------------------------
#
#   TIFF := order ("II" little-endian, "MM" big-endian), 42:u16, offset of the first directory:u32
#   directory := count:u16, entry*          entry := tag:u16, type:u16, count:u32, value or its offset:u32
#
# The minimal EXIF for orientation 6, 26 bytes, little-endian:
#   49492a00 08000000 0100 1201 0300 01000000 06000000 00000000


def orientation_of(tiff: bytes) -> int:
    """Return the orientation, 1 to 8; UPRIGHT if there is none or the bytes cannot be read."""
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(tiff[:4])
    if order is None or len(tiff) < 10:
        return UPRIGHT
    short, entry = Struct(f"{order}H"), Struct(f"{order}HHIH")
    (offset,) = Struct(f"{order}I").unpack_from(tiff, 4)
    if offset + 2 > len(tiff):
        return UPRIGHT
    (count,) = short.unpack_from(tiff, offset)
    for number in range(min(count, _ENTRIES_MAX)):
        position = offset + 2 + 12 * number
        if position + 12 > len(tiff):
            break
        tag, kind, values, value = entry.unpack_from(tiff, position)
        if tag == _ORIENTATION_TAG:
            return value if (kind, values) == (_SHORT, 1) and 1 <= value <= 8 else UPRIGHT
    return UPRIGHT


def minimal_exif(orientation: int) -> bytes:
    """Return a TIFF with nothing but the orientation."""
    assert 1 <= orientation <= 8, "from ``orientation_of``"
    return _MINIMAL.pack(b"II*\0", 8, 1, _ORIENTATION_TAG, _SHORT, 1, orientation, 0, 0)


# --- JPEG --------------------------------------------------------------------------------------

_EXIF_MARK: Final = b"Exif\0\0"
_JFIF: Final = b"JFIF\0"
_KEPT_PREFIXES: Final = {0xE2: b"ICC_PROFILE\0", 0xEE: b"Adobe"}
_FRAMES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_TABLES: Final = frozenset((0xC4, 0xCC, 0xDA, 0xDB, 0xDC, 0xDD, 0xDE, 0xDF))
_ALONE: Final = frozenset((0x01, *range(0xD0, 0xD8)))
_START, _END_OF_IMAGE, _SCAN_HEADER = 0xD8, 0xD9, 0xDA


def _jpeg(remover: MetadataRemover) -> _Reader:
    start = yield _Need("read", 2)
    if start != b"\xff\xd8":
        raise DamagedPicture(N_("it does not begin like a JPEG"))
    remover.put_bytes(start)
    code = yield from _marker()
    while code != _END_OF_IMAGE:
        if code in _ALONE:
            remover.put_bytes(bytes((0xFF, code)))
        else:
            yield from _segment(remover, code)
        code = (yield _SCAN)[0] if code == _SCAN_HEADER else (yield from _marker())
        if code == _START:
            raise DamagedPicture(N_("a JPEG begins within another"))
    remover.put_bytes(b"\xff\xd9")


def _marker() -> Generator[_Need, bytes, int]:
    read = yield _Need("read", 2)
    if read[0] != 0xFF:
        raise DamagedPicture(N_("a segment of the JPEG does not begin with a marker"))
    while read[-1] == 0xFF:  # bytes that fill
        read = yield _Need("read", 1)
    if read[-1] == 0:
        raise DamagedPicture(N_("a segment of the JPEG does not begin with a marker"))
    return read[-1]


def _segment(remover: MetadataRemover, code: int) -> _Reader:
    length = yield _Need("read", 2)
    count = int.from_bytes(length, "big") - 2
    if count < 0:
        raise DamagedPicture(N_("a segment of the JPEG has no length"))
    header = bytes((0xFF, code)) + length
    if code in _TABLES:
        remover.put_bytes(header)
        yield _Need("copy", count)
        return
    if code not in _FRAMES and code not in _KEPT_PREFIXES and code not in (0xE0, 0xE1):
        remover.count_removed(4)
        yield _Need("skip", count)
        return
    content = yield _Need("read", count)
    kept = _kept_segment(remover, code, header, content)
    remover.count_removed(4 + count - len(kept))
    remover.put_bytes(kept)


def _kept_segment(remover: MetadataRemover, code: int, header: bytes, content: bytes) -> bytes:
    """Return what is kept of a segment, with its header."""
    if code in _FRAMES:
        remover.measure(int.from_bytes(content[3:5], "big"), int.from_bytes(content[1:3], "big"))
        return header + content
    if code in _KEPT_PREFIXES:
        return header + content if content.startswith(_KEPT_PREFIXES[code]) else b""
    if code == 0xE0 and content.startswith(_JFIF) and len(content) >= 14:
        return b"\xff\xe0\x00\x10" + content[:12] + b"\0\0"
    if code == 0xE1 and content.startswith(_EXIF_MARK):
        found = remover.take_orientation(content[len(_EXIF_MARK) :])
        if found != UPRIGHT:
            exif = _EXIF_MARK + minimal_exif(found)
            return b"\xff\xe1" + (len(exif) + 2).to_bytes(2, "big") + exif
    return b""


# --- PNG ---------------------------------------------------------------------------------------

_PNG_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_PNG_KEPT: Final = frozenset(
    b"PLTE IDAT tRNS gAMA cHRM sRGB iCCP sBIT bKGD pHYs cICP mDCV mDCv cLLI cLLi acTL fcTL fdAT".split()
)
_PNG_CHUNK_MAX: Final = 2**31 - 1


def _png(remover: MetadataRemover) -> _Reader:
    signature = yield _Need("read", 8)
    header = yield _Need("read", 25)
    if signature != _PNG_SIGNATURE or header[:8] != b"\0\0\0\x0dIHDR":
        raise DamagedPicture(N_("it does not begin like a PNG"))
    remover.measure(int.from_bytes(header[8:12], "big"), int.from_bytes(header[12:16], "big"))
    remover.put_bytes(signature, header)
    while True:
        start = yield _Need("read", 8)
        count, name = int.from_bytes(start[:4], "big"), start[4:]
        if count > _PNG_CHUNK_MAX or not name.isalpha():
            raise DamagedPicture(N_("a chunk of the PNG cannot be read"))
        if name == b"IEND":
            break
        if name in _PNG_KEPT:
            remover.put_bytes(start)
            yield _Need("copy", count + 4)
        elif name == b"eXIf" and count <= EXIF_BYTES_MAX:
            content = yield _Need("read", count + 4)
            remover.count_removed(12 + count)
            _keep_png_orientation(remover, content)
        elif name[:1].isupper():
            raise DamagedPicture(N_("the PNG has a critical chunk that is unknown"))
        else:
            remover.count_removed(8)
            yield _Need("skip", count + 4)
    checksum = yield _Need("read", 4)
    remover.put_bytes(start, checksum)


def _keep_png_orientation(remover: MetadataRemover, content: bytes) -> None:
    found = remover.take_orientation(content)
    if found != UPRIGHT:
        chunk = b"eXIf" + minimal_exif(found)
        remover.put_bytes(MINIMAL_BYTES.to_bytes(4, "big"), chunk, zlib.crc32(chunk).to_bytes(4, "big"))


# --- WebP --------------------------------------------------------------------------------------

_WEBP_KEPT: Final = frozenset((b"VP8 ", b"VP8L", b"ALPH", b"ANIM", b"ANMF", b"ICCP"))
_XMP_FLAG: Final = 0x04


def _webp(remover: MetadataRemover) -> _Reader:
    header = yield _Need("read", 12)
    if header[:4] != b"RIFF" or header[8:] != b"WEBP":
        raise DamagedPicture(N_("it does not begin like a WebP"))
    remover.put_bytes(header)
    left = int.from_bytes(header[4:8], "little") - 4
    while left >= 8:
        start = yield _Need("read", 8)
        count = int.from_bytes(start[4:], "little")
        padded = min(count + count % 2, left - 8)  # some writers leave out the last byte
        if padded < count:
            raise DamagedPicture(N_("a chunk of the WebP is longer than the file"))
        yield from _webp_chunk(remover, start, count, padded)
        left -= 8 + padded
    if left:
        raise DamagedPicture(N_("the length of the WebP is wrong"))


def _webp_chunk(remover: MetadataRemover, start: bytes, count: int, padded: int) -> _Reader:
    name = start[:4]
    if name == b"VP8X" and count >= 10:
        content = yield _Need("read", 10)
        width, height = (int.from_bytes(content[at : at + 3], "little") + 1 for at in (4, 7))
        remover.measure(width, height)
        remover.put_bytes(start, bytes((content[0] & ~_XMP_FLAG,)), content[1:])
        yield _Need("copy", padded - 10)
    elif name in (b"VP8 ", b"VP8L") and count >= 10 and not remover.width:
        content = yield _Need("read", 10)
        remover.measure(*_webp_size(name, content))
        remover.put_bytes(start, content)
        yield _Need("copy", padded - 10)
    elif name in _WEBP_KEPT:
        remover.put_bytes(start)
        yield _Need("copy", padded)
    elif name == b"EXIF" and MINIMAL_BYTES <= count <= EXIF_BYTES_MAX:
        content = yield _Need("read", padded)
        found = remover.take_orientation(content.removeprefix(_EXIF_MARK))
        remover.count_removed(count - MINIMAL_BYTES)
        remover.put_bytes(start, minimal_exif(found), bytes(padded - MINIMAL_BYTES))
    else:
        remover.put_bytes(b"JUNK", start[4:])
        yield _Need("zero", padded)


def _webp_size(name: bytes, content: bytes) -> tuple[int, int]:
    """Return width and height from the header of a picture's data."""
    if name == b"VP8L":
        bits = int.from_bytes(content[1:5], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    return int.from_bytes(content[6:8], "little") & 0x3FFF, int.from_bytes(content[8:10], "little") & 0x3FFF


# --- GIF ---------------------------------------------------------------------------------------


def _gif(remover: MetadataRemover) -> _Reader:
    header = yield _Need("read", 10)
    remover.measure(int.from_bytes(header[6:8], "little"), int.from_bytes(header[8:10], "little"))
    remover.put_bytes(header)
    yield _REST


# --- AVIF --------------------------------------------------------------------------------------


def _avif(remover: MetadataRemover) -> _Reader:
    at, extents = 0, deque[Extent]()
    has_meta = False
    while True:
        start = yield _Need("head", 8)
        size, kind, head = int.from_bytes(start[:4], "big"), start[4:], 8
        if size == 1:
            start += yield _Need("read", 8)
            size, head = int.from_bytes(start[8:], "big"), 16
        if size < head and not (size == 0 and kind == b"mdat"):
            raise DamagedPicture(N_("a box of the AVIF has a wrong length"))
        remover.put_bytes(start)
        if kind == b"meta" and not has_meta and size - head <= META_BYTES_MAX:
            content = yield _Need("read", size - head)
            try:
                meta = cleaned(content)
            except BadBox as damage:
                raise DamagedPicture(str(damage)) from None
            has_meta = True
            extents.extend(meta.extents)
            remover.measure(meta.width, meta.height)
            remover.put_bytes(meta.content)
            remover.count_removed(meta.erased_bytes)
            if extents and extents[0].start < at + size:
                raise DamagedPicture(N_("metadata of the AVIF stands before its index"))
        elif kind == b"mdat":
            yield from _avif_data(remover, at + head, at + size if size else None, extents)
        elif kind == b"ftyp":
            yield _Need("copy", size - head)
        elif kind in (b"meta", b"moov"):
            raise DamagedPicture(N_("it is a film, or its index is too long"))
        else:
            yield _Need("zero", size - head)
        at += size


def _avif_data(remover: MetadataRemover, at: int, end: int | None, extents: deque[Extent]) -> _Reader:
    """Copy the data from ``at`` to ``end`` (None: all that follows), without the ``extents``."""
    while extents and (end is None or extents[0].start < end):
        one = extents.popleft()
        if one.start < at or (end is not None and one.stop > end):
            raise DamagedPicture(N_("an item of the AVIF lies outside its data"))
        yield _Need("copy", one.start - at)
        if one.content:
            yield _Need("read", len(one.content))
            remover.put_bytes(one.content)
            remover.count_removed(len(one.content))
        yield _Need("zero", one.stop - one.start - len(one.content))
        at = one.stop
    if end is None:
        yield _REST
    else:
        yield _Need("copy", end - at)


_READERS: Final = {
    "image/jpeg": _jpeg,
    "image/png": _png,
    "image/webp": _webp,
    "image/gif": _gif,
    "image/avif": _avif,
}
REMOVABLE: Final = frozenset(_READERS)
