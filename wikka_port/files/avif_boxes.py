"""(pure) The box ``meta`` of an AVIF picture: its size, and the places of its metadata (ISO 14496-12, 23008-12).

    box    := size:u32 type:4 content       size with these 8 bytes; 1: a u64 follows; 0: to the end of the file
    meta   := version and flags:4, box*     among them
        pitm   the item that is the picture
        iinf   the type of each item: ``av01`` a picture, ``Exif`` and ``mime`` metadata
        iloc   the places of each item in the file
        iprp   properties, and those of each item: ``ispe`` width and height, ``irot`` a turn by quarters

The rule is the list of items that are kept; the places of all others are erased, and so is the content of unknown
boxes.  The lengths stay, since ``iloc`` counts bytes from the beginning of the file.  The turn of an AVIF is a
property, so the orientation in its EXIF means nothing and goes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from wikka_port.texts import N_

META_BYTES_MAX: Final = 1_048_576  # of the box, which is read whole
ITEMS_MAX: Final = 5_000
_KEPT_ITEMS: Final = frozenset({b"av01", b"grid", b"iovl", b"iden", b"tmap"})
_KEPT_BOXES: Final = frozenset({b"hdlr", b"pitm", b"iinf", b"iloc", b"iprp", b"iref", b"idat", b"dinf", b"grpl"})
# An Exif item that says nothing: the offset of the TIFF header, and a directory without entries.
EMPTY_EXIF: Final = b"\0\0\0\0II*\0\x08\0\0\0\0\0\0\0\0\0"
assert len(EMPTY_EXIF) == 18


class BadBox(ValueError):
    """The structure of the boxes cannot be followed; ``str()`` names the place."""


@dataclass(frozen=True, slots=True)
class Extent:
    """Bytes of the file that are erased; the beginning becomes ``content``, the rest zeros."""

    start: int
    stop: int
    content: bytes = b""


@dataclass(frozen=True, slots=True)
class Meta:
    content: bytes  # of the box, without the content of unknown boxes
    extents: tuple[Extent, ...]  # in order, none over another
    width: int = 0  # as it is seen
    height: int = 0
    erased_bytes: int = 0  # in ``content``


class _Reader:
    """Reads numbers from a box.  Raises BadBox beyond its end."""

    def __init__(self, content: bytes, at: int = 0) -> None:
        self._content = content
        self.at = at

    def take(self, count: int) -> bytes:
        found = self._content[self.at : self.at + count]
        if len(found) < count:
            raise BadBox(N_("a box of the AVIF is too short"))
        self.at += count
        return found

    def number(self, count: int) -> int:
        return int.from_bytes(self.take(count), "big")


def boxes(content: bytes, at: int) -> Iterator[tuple[bytes, int, int]]:
    """Yield type, begin and end of the content of each box from ``at`` on.  Raises BadBox."""
    while at < len(content):
        reader = _Reader(content, at)
        size, kind = reader.number(4), reader.take(4)
        if size == 1:
            size = reader.number(8)
        end = len(content) if size == 0 else at + size
        if end < reader.at or end > len(content):
            raise BadBox(N_("a box of the AVIF has a wrong length"))
        yield kind, reader.at, end
        at = end


def cleaned(content: bytes) -> Meta:
    """Return the box ``meta`` of the given content without its metadata.  Raises BadBox."""
    found, out, erased = dict[bytes, bytes](), bytearray(content), 0
    for kind, begin, end in boxes(content, 4):
        if kind not in _KEPT_BOXES:
            out[begin:end] = bytes(end - begin)
            erased += end - begin
        found.setdefault(kind, content[begin:end])
    if not {b"pitm", b"iinf", b"iloc"} <= found.keys():
        raise BadBox(N_("the AVIF has no index"))
    types = dict(_types(found[b"iinf"]))
    extents = list[Extent]()
    for item, method, start, stop in _places(found[b"iloc"]):
        if types.get(item) in _KEPT_ITEMS:
            continue
        if method != 0 or stop <= start:  # in ``idat`` or another item, or to the end of the file
            raise BadBox(N_("metadata of the AVIF lies where it cannot be erased"))
        is_exif = types.get(item) == b"Exif" and stop - start >= len(EMPTY_EXIF)
        extents.append(Extent(start, stop, EMPTY_EXIF if is_exif else b""))
    extents.sort(key=lambda one: one.start)
    if any(after.start < before.stop for before, after in pairwise(extents)):
        raise BadBox(N_("items of the AVIF lie over each other"))
    width, height = _size(found.get(b"iprp", b""), _primary(found[b"pitm"]))
    return Meta(bytes(out), tuple(extents), width, height, erased)


def _primary(content: bytes) -> int:
    reader = _Reader(content)
    return reader.number(2 if reader.number(4) >> 24 == 0 else 4)


def _types(content: bytes) -> Iterator[tuple[int, bytes]]:
    reader = _Reader(content)
    reader.number(2 if reader.number(4) >> 24 == 0 else 4)
    for number, (kind, begin, end) in enumerate(boxes(content, reader.at)):
        entry = _Reader(content[begin:end])
        version = entry.number(4) >> 24
        if kind != b"infe" or version not in (2, 3) or number >= ITEMS_MAX:
            raise BadBox(N_("an item of the AVIF cannot be read"))
        item = entry.number(2 if version == 2 else 4)
        entry.number(2)
        yield item, entry.take(4)


def _places(content: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Yield item, kind of place, begin and end of each place."""
    reader = _Reader(content)
    version = reader.number(4) >> 24
    sizes = reader.number(2)
    offset, length, base, index = (sizes >> shift & 15 for shift in (12, 8, 4, 0))
    if version > 2:
        raise BadBox(N_("the places of the AVIF cannot be read"))
    left = ITEMS_MAX
    for _item in range(reader.number(2 if version < 2 else 4)):
        item = reader.number(2 if version < 2 else 4)
        method = reader.number(2) & 15 if version else 0
        reader.number(2)
        begin = reader.number(base)
        for _extent in range(reader.number(2)):
            left -= 1
            if left < 0:
                raise BadBox(N_("the AVIF has too many items"))
            if version:
                reader.number(index)
            start = begin + reader.number(offset)
            yield item, method, start, start + reader.number(length)


def _size(content: bytes, primary: int) -> tuple[int, int]:
    """Return width and height of the picture as it is seen; (0, 0) if they are not stated."""
    properties, links = list[tuple[bytes, bytes]](), b""
    for kind, begin, end in boxes(content, 0):
        if kind == b"ipco":
            inside = content[begin:end]
            properties = [(one, inside[first:last]) for one, first, last in boxes(inside, 0)]
        elif kind == b"ipma" and not links:
            links = content[begin:end]
    size, turns = (0, 0), 0
    for number in _properties_of(links, primary) if links else ():
        kind, value = properties[number - 1] if 0 < number <= len(properties) else (b"", b"")
        if kind == b"ispe":
            reader = _Reader(value, 4)
            size = (reader.number(4), reader.number(4))
        elif kind == b"irot":
            turns = _Reader(value).number(1) & 3
    return (size[1], size[0]) if turns % 2 else size


def _properties_of(content: bytes, primary: int) -> list[int]:
    """Return the numbers of the properties of an item."""
    reader = _Reader(content)
    head = reader.number(4)
    wide = head & 1
    for _entry in range(reader.number(4)):
        item = reader.number(2 if head >> 24 == 0 else 4)
        numbers = [reader.number(2) & 0x7FFF if wide else reader.number(1) & 0x7F for _ in range(reader.number(1))]
        if item == primary:
            return numbers
    return []
