"""(pure) Names of files: the stored form of what a browser or a person gives, and the header of a download.

A name is what the uploader's system calls the file, in composed Unicode, without its folders.  Characters that mean
something in the wiki's markup, in addresses or in file systems become ``-``, so that a name can be written in a link
and exported to a disk of any system:

    C:\\photos\\Grüße.PNG -> Grüße.PNG        a[1]:b?.txt -> a-1--b-.txt        .htaccess -> htaccess

A name is refused if a reader could be deceived (controls, invisible and direction characters), if it is empty, or too
long to be cut at its ending.  The ending of a stored name agrees with the content (``content_types.fitting_name``).

Knows nothing of contents and pages.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final
from urllib.parse import quote

from wikka_port.texts import _

MAX_FILE_NAME_BYTES: Final = 200  # file systems take 255; exports add the number of a version
ENDING_CHARS_MAX: Final = 10  # a longer text after the last dot is no ending
# Controls, surrogates, separators of lines, and format characters: zero width, direction marks and overrides
# ("photo\u202egnp.exe" reads photoexe.png), tags.  ZWNJ and ZWJ are letters of Persian, Hindi and emoji.
_REFUSED: Final = frozenset({"Cc", "Cs", "Cn", "Co", "Zl", "Zp"})
_JOINERS: Final = "\u200c\u200d"
_REPLACED: Final = str.maketrans(dict.fromkeys('<>:"|?*[]{}#%\\/~^`', "-"))
_DEVICES: Final = re.compile(r"(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(?:\..*)?", re.IGNORECASE)
_ENDING: Final = re.compile(rf"\.([A-Za-z0-9]{{1,{ENDING_CHARS_MAX}}})\Z")
_NOT_IN_QUOTES: Final = re.compile(r"[^ !#-\[\]-~]|[%;]")


class InvalidFileName(ValueError):
    """The text cannot be the name of a file; ``str()`` is a sentence for the person who gave it."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(_("This cannot be the name of a file: {reason}.", reason=reason))
        self.name = name
        self.reason = reason


def clean_file_name(given: str) -> str:
    """Return the stored form of a file's name.  A second call changes nothing.  Raises InvalidFileName."""
    last = re.split(r"[/\\]", given.rstrip("/\\"))[-1]
    composed = unicodedata.normalize("NFC", last)
    for character in composed:
        kind = unicodedata.category(character)
        if kind in _REFUSED or (kind == "Cf" and character not in _JOINERS):
            code = f"U+{ord(character):04X}"
            raise InvalidFileName(given, _("it has the invisible character {character} in it", character=code))
    name = " ".join(composed.translate(_REPLACED).split()).lstrip(". ").rstrip(". ")
    if not name.strip("-_."):
        raise InvalidFileName(given, _("it is empty"))
    if _DEVICES.fullmatch(name):
        raise InvalidFileName(given, _("{name} is a device of Windows", name=name))
    return _shortened(name, given)


def _shortened(name: str, given: str) -> str:
    """Return ``name`` cut before its ending if it is too long.  Raises InvalidFileName if it has no ending."""
    size_bytes = len(name.encode())
    if size_bytes <= MAX_FILE_NAME_BYTES:
        return name
    ending = ending_of(name)
    if not ending:
        said = _("it is {size} bytes long and {most} are the most", size=size_bytes, most=MAX_FILE_NAME_BYTES)
        raise InvalidFileName(given, said)
    most = MAX_FILE_NAME_BYTES - len(ending) - 1
    stem = name[: -len(ending) - 1].encode()[:most].decode(errors="ignore").rstrip(". ")
    return f"{stem}.{name[-len(ending) :]}"


def ending_of(name: str) -> str:
    """Return the ending of a name in lower case, without its dot: "png"; "" if it has none."""
    found = _ENDING.search(name)
    return found[1].lower() if found and found.start() else ""


def with_ending(name: str, ending: str, *, replace: bool) -> str:
    """Return ``name`` with ``ending`` behind it, or in the place of its own.  Raises InvalidFileName."""
    stem = name[: -len(ending_of(name)) - 1] if replace and ending_of(name) else name
    return clean_file_name(f"{stem}.{ending}")


def content_disposition(name: str, *, inline: bool) -> str:
    """Return the header by which a browser shows a file or saves it under ``name`` (RFC 6266, RFC 8187).

    Old clients read the name in ASCII, in which other characters are ``_``.
    """
    kind = "inline" if inline else "attachment"
    plain = _NOT_IN_QUOTES.sub("_", name)
    header = f'{kind}; filename="{plain}"'
    return header if plain == name else f"{header}; filename*=UTF-8''{quote(name, safe='!#$&+-.^_`|~')}"
