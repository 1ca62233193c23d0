"""Smaller versions of pictures: which widths a picture gets, how they are made, and their rows.

    table   row                                    families   serves
    thumbs  sha256, ":", width (5 digits)          t          a picture in the width of a page's column or a phone
            sha256, ":00000"                                  no width could be made; ``t:none`` says why

Every content has its smaller versions once, however many pages have it.  The trigger ``wiki-pictures`` makes them
(``triggers``), so they are derived: they can be made again from the contents.  A page names all widths that a picture
should have, without reading this table; as long as a width is not made, the original is sent in its place.

Making one needs Pillow (the extra ``pictures``).  It decodes only the formats below, and no picture over the bounds, so
that a small file with a million by a million points costs nothing.  Animations have no smaller versions, nor has SVG.
"""

from __future__ import annotations

import importlib.util
import math
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Final

from wikka_port.files.file_rows import CurrentFile, FileVersion
from wikka_port.schema import TableSpec

THUMBS: Final = b"thumbs"
FAMILY: Final = b"t"
DATA: Final = b"t:data"
TYPE: Final = b"t:type"
NONE: Final = b"t:none"
WIDTHS: Final = (320, 640, 1280)
BYTES_MAX: Final = 40_000_000  # of the file; a larger one is shown as it is
PIXELS_MAX: Final[Mapping[str, int]] = {  # a JPEG is decoded in an eighth to half of its size
    "image/jpeg": 80_000_000,
    "image/png": 16_000_000,
    "image/webp": 16_000_000,
    "image/avif": 16_000_000,
}
QUALITY: Final = 80  # of WebP, in which all smaller versions are
PROFILE_BYTES_MAX: Final = 100_000  # of colours; a picture with a larger one loses it
_FORMATS: Final[Mapping[str, str]] = {
    "image/jpeg": "JPEG",
    "image/png": "PNG",
    "image/webp": "WEBP",
    "image/avif": "AVIF",
}
_NONE_WIDTH: Final = 0
CAN_MAKE: Final = importlib.util.find_spec("PIL") is not None
_ORIENTATION: Final = 0x0112  # of EXIF
_LYING: Final = 5  # this orientation and those above turn the picture by a quarter
MARKERS_MS: Final = 30 * 24 * 3600 * 1000
TABLES: Final = (TableSpec(THUMBS, {"t": {"max_versions": 1}}, {"DELETE_MARKERS": str(MARKERS_MS)}),)


class NoThumbnails(Exception):
    """A picture that cannot be made smaller, because it is damaged, animated or over a bound."""


@dataclass(frozen=True, slots=True)
class Thumbnail:
    content: bytes
    media_type: str


def thumbnail_row(sha256: str, width: int) -> bytes:
    return b"%s:%05d" % (sha256.encode(), width)


def all_rows(sha256: str) -> list[bytes]:
    """Return every row that a content may have."""
    return [thumbnail_row(sha256, width) for width in (_NONE_WIDTH, *WIDTHS)]


def widths_of(picture: CurrentFile | FileVersion) -> tuple[int, ...]:
    """Return the widths in which a picture is offered beside its own, ascending."""
    most = PIXELS_MAX.get(picture.media_type, 0) if CAN_MAKE else 0
    if picture.size_bytes > BYTES_MAX or not 0 < picture.width * picture.height <= most:
        return ()
    return tuple(width for width in WIDTHS if width < picture.width)


def thumbnail_in(cells: Mapping[bytes, bytes]) -> Thumbnail | None:
    """Return the smaller version in a row, or None."""
    if DATA not in cells:
        return None
    return Thumbnail(cells[DATA], cells.get(TYPE, b"image/webp").decode("ascii", "replace"))


def rows_of(sha256: str, content: bytes, media_type: str) -> Iterator[tuple[bytes, dict[bytes, bytes]]]:
    """Yield the rows of a content: its smaller versions, each as it is made, or the row that says why there is none.

    A width that has not fewer bytes than the file itself is left out: the original is sent in its place.
    """
    widths = kept = 0
    try:
        for width, one in smaller_versions(content, media_type):
            widths += 1
            if len(one.content) < len(content):
                kept += 1
                yield thumbnail_row(sha256, width), {DATA: one.content, TYPE: one.media_type.encode()}
    except NoThumbnails as why:
        yield thumbnail_row(sha256, _NONE_WIDTH), {NONE: str(why).encode()}
    else:
        if widths and not kept:
            yield thumbnail_row(sha256, _NONE_WIDTH), {NONE: b"no width has fewer bytes"}


def smaller_versions(content: bytes, media_type: str) -> Iterator[tuple[int, Thumbnail]]:
    """Yield the smaller versions of a picture with their widths, ascending.  Raises NoThumbnails.

    Needs Pillow.  Memory: at most PIXELS_MAX points of four bytes; a JPEG is decoded smaller.
    """
    from PIL import Image

    if media_type not in _FORMATS:
        return
    if len(content) > BYTES_MAX:
        raise NoThumbnails(f"{len(content):,} bytes are over the bound")
    try:
        # A decoder of damaged bytes may raise any of these; it never runs on a format that is not in _FORMATS.
        image = Image.open(BytesIO(content), formats=[_FORMATS[media_type]])
        yield from _scaled_versions(image, media_type)
    except (Image.DecompressionBombError, OSError, ValueError, SyntaxError, struct.error, EOFError) as damaged:
        raise NoThumbnails(f"it cannot be read: {damaged}"[:200]) from damaged
    except (LookupError, TypeError, AttributeError, OverflowError, ZeroDivisionError) as damaged:
        raise NoThumbnails(f"it cannot be read: {type(damaged).__name__}") from damaged


def _scaled_versions(image: Any, media_type: str) -> Iterator[tuple[int, Thumbnail]]:
    from PIL import ImageOps

    width, height = image.size
    if width * height > PIXELS_MAX[media_type]:
        raise NoThumbnails(f"{width} x {height} points are over the bound")
    if getattr(image, "n_frames", 1) > 1:
        raise NoThumbnails("it is animated")
    seen = height if image.getexif().get(_ORIENTATION, 1) >= _LYING else width
    wanted = [one for one in WIDTHS if one < seen]
    if not wanted:
        return
    profile = image.info.get("icc_profile") or b""
    if media_type == "image/jpeg":  # decodes at an eighth to half of the size, but not below what is needed
        share = max(wanted) / seen
        image.draft("RGB", (math.ceil(width * share), math.ceil(height * share)))
    upright = ImageOps.exif_transpose(image)
    has_alpha = "A" in upright.getbands() or "transparency" in upright.info
    whole = upright.convert("RGBA" if has_alpha else "RGB")
    for one in wanted:
        yield one, _scaled(whole, one, profile)


def _scaled(image: Any, width: int, profile: bytes) -> Thumbnail:
    from PIL import Image

    height = max(1, round(image.height * width / image.width))
    small = image.resize((width, height), Image.Resampling.LANCZOS, reducing_gap=2.0)
    out = BytesIO()
    kept = {"icc_profile": profile} if 0 < len(profile) <= PROFILE_BYTES_MAX else {}
    small.save(out, "WEBP", quality=QUALITY, method=3, **kept)
    return Thumbnail(out.getvalue(), "image/webp")
