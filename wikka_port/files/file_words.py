"""(pure) Files in words, in the language of the request: how large one is, and of which kind."""

from __future__ import annotations

from typing import Final

from wikka_port.files.content_types import BY_MEDIA_TYPE
from wikka_port.texts import _, _n, figure

_UNITS: Final = ("kB", "MB", "GB", "TB")  # of 1000, as file managers and browsers count
_ARCHIVES: Final = frozenset({"zip", "gz", "bz2", "xz", "zst", "7z"})


def size_text(size_bytes: int) -> str:
    """Return a size as people read it, to two digits: "812 bytes", "3.4 MB", "120 MB"."""
    if size_bytes < 1000:
        return _n("{n} byte", "{n} bytes", size_bytes)
    size, unit = size_bytes / 1000, 0
    while size >= 999.5 and unit < len(_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{figure(size, '.1f' if size < 9.95 else '.0f')} {_UNITS[unit]}"


def kind_text(media_type: str) -> str:
    """Return the kind of a file in two words: "Picture, PNG"."""
    known = BY_MEDIA_TYPE.get(media_type)
    if known is None:
        return _("File")
    ending = known.endings[0].upper()
    family = media_type.partition("/")[0]
    if family == "image":
        return _("Picture, {ending}", ending=ending)
    if family == "audio":
        return _("Sound, {ending}", ending=ending)
    if family == "video":
        return _("Film, {ending}", ending=ending)
    if known.text:
        return _("Text, {ending}", ending=ending)
    if known.endings[0] in _ARCHIVES:
        return _("Archive, {ending}", ending=ending)
    return _("Document, {ending}", ending=ending)
