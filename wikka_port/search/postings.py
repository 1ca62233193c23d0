"""(pure) Rows and cells of the index of words.

    terms  stem, 00, bucket (the first digit of the page's key)   p:KEY (16 bytes)  the Posting of the stem in the page
    docs   key of the page                                        d:stems           the indexed stems of the page

Comments and files have longer keys (``beside_pages``); all that follows holds for them as for pages.

A stem is that of a word, a pair of neighbouring Chinese, Japanese or Korean characters, or one such character
(``words.terms``).  So a search for one character reads no more rows than one for a word.

A bucket has a sixteenth of a stem's pages, so no row grows with all of them.  A posting has the number of times that
the stem occurs in the title, the headings and the text, and the page's rough length: the power of two above its number
of words, in which pairs count and their characters do not.  So an edit changes only the postings of the words that it
touches, unless the page's length crosses a power of two, which changes all its postings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from itertools import chain
from typing import Final, NamedTuple

from wikka_port.markup.formats import WIKKA
from wikka_port.page_languages import ENGLISH
from wikka_port.search.page_text import page_text, title_text
from wikka_port.search.words import terms

POSTINGS_FAMILY: Final = b"p"
POSTING: Final = b"p:"
STEMS: Final = b"d:stems"
BUCKETS: Final = tuple(b"%x" % n for n in range(16))
_MOST: Final = 255


class Posting(NamedTuple):
    title: int  # number of times; 255 means 255 or more
    headings: int
    text: int
    length: int  # the page has less than 2 ** length words

    def pack(self) -> bytes:
        return bytes(self)


def parse_posting(value: bytes) -> Posting:
    """Parse a posting.  Raises ValueError if ``value`` is none."""
    if len(value) != 4:
        raise ValueError(f"{value[:20]!r} is no posting")
    return Posting(*value)


Postings = Mapping[str, bytes]  # by stem, packed


def of_page(name: str, body: str, *, autolink: bool, markup: str = WIKKA, language: str = ENGLISH) -> Postings:
    """Return the postings of a page by stem."""
    plain = page_text(body, autolink=autolink, markup=markup)
    return of_parts(title_text(name), plain.headings, plain.text, language)


def of_parts(title_words: str, heading_words: str, text_words: str, language: str = ENGLISH) -> Postings:
    """Return the postings of a document by stem."""
    parts = [terms(part, language) for part in (title_words, heading_words, text_words)]
    length = min(_MOST, sum(len(part.stems) for part in parts).bit_length())
    title, headings, text = (Counter(chain(part.stems, part.characters)) for part in parts)
    return {
        stem: bytes((min(_MOST, title[stem]), min(_MOST, headings[stem]), min(_MOST, text[stem]), length))
        for stem in {**title, **headings, **text}
    }


# --- rows --------------------------------------------------------------------------------------


def term_row(stem: str, key: bytes) -> bytes:
    return term_rows_begin(stem) + key[:1]


def term_rows_begin(stem: str) -> bytes:
    return stem.encode() + b"\x00"


def term_rows_end(stem: str) -> bytes:
    return stem.encode() + b"\x01"


def stem_of_row(row: bytes) -> str:
    return row.rpartition(b"\x00")[0].decode(errors="replace")


def column_of(key: bytes) -> bytes:
    """Return the column of a document, given by its key in hexadecimal."""
    return POSTING + bytes.fromhex(key.decode())


def key_of(column: bytes) -> bytes:
    return column[len(POSTING) :].hex().encode()


# --- what the index has of a page ----------------------------------------------------------------


def pack_stems(some: Collection[str]) -> bytes:
    return "\n".join(sorted(some)).encode()


def parse_stems(value: bytes) -> frozenset[str]:
    """Parse the stems of a page; an empty value has none."""
    return frozenset(value.decode().split("\n")) if value else frozenset()
