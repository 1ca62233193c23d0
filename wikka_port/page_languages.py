"""(pure) The languages of pages: their codes, their own names, and the stemmer of each.

The code is in ``meta:language`` of a page's row and of a revision's row.  A page without this cell is English for the
search, and in the wiki's language for a reader's browser; in a wiki of a different language, each page's first revision
has the cell.  Once a page has the cell, all its later revisions have it.

The row LANGUAGES_ROW of ``pages`` lists the languages that pages have, or had.  It has a column for each, put before
the first page of that language.  A search uses the stems of all these languages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

ENGLISH: Final = "en"
LANGUAGES_ROW: Final = b"~languages"  # after the key of every page
_COLUMN: Final = b"meta:"

# Code -> the language's own name, and its algorithm in Snowball, "" if it has none.
_KNOWN: Final[Mapping[str, tuple[str, str]]] = {
    "ar": ("العربية", "arabic"),
    "bg": ("български", ""),
    "bn": ("বাংলা", ""),
    "ca": ("català", "catalan"),
    "cs": ("čeština", "czech"),
    "da": ("dansk", "danish"),
    "de": ("Deutsch", "german"),
    "el": ("ελληνικά", "greek"),
    "en": ("English", "english"),
    "eo": ("Esperanto", "esperanto"),
    "es": ("español", "spanish"),
    "et": ("eesti", "estonian"),
    "eu": ("euskara", "basque"),
    "fa": ("فارسی", "persian"),
    "fi": ("suomi", "finnish"),
    "fr": ("français", "french"),
    "ga": ("Gaeilge", "irish"),
    "he": ("עברית", ""),
    "hi": ("हिन्दी", "hindi"),
    "hr": ("hrvatski", ""),
    "hu": ("magyar", "hungarian"),
    "hy": ("հայերեն", "armenian"),
    "id": ("Bahasa Indonesia", "indonesian"),
    "is": ("íslenska", ""),
    "it": ("italiano", "italian"),
    "ja": ("日本語", ""),
    "ko": ("한국어", ""),
    "la": ("Latina", ""),
    "lt": ("lietuvių", "lithuanian"),
    "lv": ("latviešu", ""),
    "ne": ("नेपाली", "nepali"),
    "nl": ("Nederlands", "dutch"),
    "no": ("norsk", "norwegian"),
    "pl": ("polski", "polish"),
    "pt": ("português", "portuguese"),
    "ro": ("română", "romanian"),
    "ru": ("русский", "russian"),
    "sk": ("slovenčina", ""),
    "sl": ("slovenščina", ""),
    "sr": ("српски", "serbian"),
    "sv": ("svenska", "swedish"),
    "ta": ("தமிழ்", "tamil"),
    "th": ("ไทย", ""),
    "tr": ("Türkçe", "turkish"),
    "uk": ("українська", ""),
    "ur": ("اردو", ""),
    "vi": ("Tiếng Việt", ""),
    "yi": ("ייִדיש", "yiddish"),
    "zh": ("中文", ""),
}
NAMES: Final[Mapping[str, str]] = {code: name for code, (name, _) in _KNOWN.items()}
_ALIKE: Final = {"nb": "no", "nn": "no", "simple": "en", "iw": "he", "in": "id", "ji": "yi"}


def known(code: str) -> str:
    """Return the code in NAMES that ``code`` means (pt-BR means pt), or "" if NAMES has none."""
    plain = code.strip().lower().replace("_", "-").partition("-")[0]
    plain = _ALIKE.get(plain, plain)
    return plain if plain in NAMES else ""


def algorithm(code: str) -> str:
    """Return Snowball's algorithm for the language, or "" if its words are not stemmed."""
    return _KNOWN[code][1] if code in _KNOWN else ""


def column(code: str) -> bytes:
    return _COLUMN + code.encode()


def listed(columns: Iterable[bytes]) -> list[str]:
    """Return the languages in the columns of LANGUAGES_ROW, with English first."""
    found = {one[len(_COLUMN) :].decode(errors="replace") for one in columns}
    return [ENGLISH, *sorted(found & NAMES.keys() - {ENGLISH})]
