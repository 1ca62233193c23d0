"""Page names (pure): which texts are names, when two names are equal, and a name's row key and path segment.

A name is any text without control characters, in Unicode's composed form (NFC); ``_`` reads as a
blank, blanks at the ends are dropped and several count as one.  Upper and lower case differ.

In a URL a name is always ONE path segment.  Percent-encoding alone would not preserve the following:
servers and proxies decode (or merge, or refuse) ``%2F`` before the wiki sees the path, and browsers
resolve ``.`` and ``..`` even if they are percent-encoded.

    ``/ % ~ \\``          are written ``~2F ~25 ~7E ~5C``
    ``.`` and ``..``      as whole names are written ``~2E`` and ``~2E~2E``

So "A/edit" is ``A~2Fedit`` and can never be read as the handler ``edit`` of the page "A", and
``from_url`` gives the same answer for the raw path and for one that a server has decoded.

Knows nothing of handlers, tables or HTTP.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import Final
from urllib.parse import quote, unquote

from wikka_port.texts import _

# Four bytes for each of 255 characters: longer than any title in Wikipedia (255 bytes), short enough
# that a URL (three characters for each byte) stays under the 8 KB that servers take for a request line.
MAX_NAME_BYTES: Final = 1020

# Controls, lone surrogates (no UTF-8 for them) and the two separators that end a line in some readers.
_REFUSED: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_CAMEL_CASE: Final = re.compile(r"[A-Z]++[a-z]++[A-Z0-9][A-Za-z0-9]*+")
# The escapes that ``url_path`` writes, and an escaped first letter (``urls``: a page whose name is a reserved word).
_TILDE: Final = re.compile("~(2[5EeFf]|5[Cc]|7[Ee]|(?<=\\A~)[46][1-9A-Fa-f]|(?<=\\A~)[57][0-9Aa])")
_TILDE_WRITTEN: Final = str.maketrans({"/": "~2F", "%": "~25", "~": "~7E", "\\": "~5C"})
_PLAIN_IN_URL: Final = "~!$'()*,:@"  # beside letters, digits and -._ ; they have no meaning of their own in a path


class InvalidName(ValueError):
    """The text cannot be a page name; ``str()`` is a sentence for the person who typed it."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(_("This cannot be the name of a page: {reason}.", reason=reason))
        self.name = name
        self.reason = reason


def normalise(name: str) -> str:
    """Return the one form of ``name`` that is stored and compared.  Raises InvalidName."""
    refused = _REFUSED.search(name)
    if refused:
        character = f"U+{ord(refused.group()):04X}"
        raise InvalidName(name, _("it has the control character {character} in it", character=character))
    composed = name if name.isascii() else unicodedata.normalize("NFC", name)
    normal = " ".join(composed.replace("_", " ").split())
    if not normal:
        raise InvalidName(name, _("it is empty"))
    size_bytes = len(normal.encode())
    if size_bytes > MAX_NAME_BYTES:
        said = _("it is {size} bytes long and {most} are the most", size=size_bytes, most=MAX_NAME_BYTES)
        raise InvalidName(name, said)
    return normal


def page_key(name: str) -> bytes:
    """Return the row key: lower-case hexadecimal MD5 of the normalised name in UTF-8 (thesis, section 5)."""
    return hashlib.md5(normalise(name).encode(), usedforsecurity=False).hexdigest().encode()


def pages_above(name: str) -> list[str]:
    """Return the names of the pages above a subpage, the highest first: "A" and "A/B" of "A/B/C"."""
    parts = name.split("/")
    found = ("/".join(parts[:number]) for number in range(1, len(parts)))
    return [above for above in found if is_name(above)]


def is_name(text: str) -> bool:
    """Return whether ``text`` is a name in its one form."""
    try:
        return normalise(text) == text
    except InvalidName:
        return False


def is_camel_case(name: str) -> bool:
    """Return whether the whole ``name`` has the form that becomes a link without brackets, as WikiPage does."""
    return _CAMEL_CASE.fullmatch(name) is not None


def url_path(name: str) -> str:
    """Return ``name`` as one path segment in ASCII, without a leading slash.  Raises InvalidName."""
    normal = normalise(name)
    if normal in (".", ".."):
        return normal.replace(".", "~2E")
    return quote(normal.translate(_TILDE_WRITTEN).replace(" ", "_"), safe=_PLAIN_IN_URL)


def from_url(path: str) -> str:
    """Return the name in a path without handler, which may be percent-encoded or decoded.  Raises InvalidName.

    A ``/`` or ``%`` that somebody typed unescaped is part of the name.
    """
    decoded = unquote(path, errors="replace").removeprefix("/")
    return normalise(_TILDE.sub(lambda written: chr(int(written.group(1), 16)), decoded))
