"""Languages that a page can be in (pure): their codes, what they call themselves, and the stemmer of each.

``meta:language`` of a page's row and of a revision's row has the code.  A page without it is in English, as far as the
search is concerned, and in the language of the wiki for a reader's browser; the first revision of a page in a wiki of
another language has the cell.  Once a page has it, all its later revisions have it.

The row LANGUAGES_ROW of ``pages`` lists the languages that pages have, or had: a column for each, put before the first
page of that language is.  A search uses the stems of all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

ENGLISH: Final = "en"
LANGUAGES_ROW: Final = b"~languages"  # after the key of every page
_COLUMN: Final = b"meta:"

# Code -> what the language calls itself, and Snowball's algorithm, "" if it has none.
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
    """Return the language of NAMES that ``code`` means: that of pt-BR is pt; "" if there is none."""
    plain = code.strip().lower().replace("_", "-").partition("-")[0]
    plain = _ALIKE.get(plain, plain)
    return plain if plain in NAMES else ""


def algorithm(code: str) -> str:
    """Snowball's; "": words of that language stay as they are."""
    return _KNOWN[code][1] if code in _KNOWN else ""


def column(code: str) -> bytes:
    return _COLUMN + code.encode()


def listed(columns: Iterable[bytes]) -> list[str]:
    """Return the languages that a row of that name lists, and English, which comes first."""
    found = {one[len(_COLUMN) :].decode(errors="replace") for one in columns}
    return [ENGLISH, *sorted(found & NAMES.keys() - {ENGLISH})]
