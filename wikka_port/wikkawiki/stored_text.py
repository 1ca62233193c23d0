"""(pure) Texts of WikkaWiki's database, whatever character set the dump and the wiki's connection had.

A dump is in the character set that it names: UTF-8, or ``latin1``, which is Windows-1252 in MySQL, with the five bytes
that 1252 leaves free as control characters.  WikkaWiki before 1.3 set no character set for its connection.  So a wiki
whose pages were UTF-8 stored UTF-8 bytes as if each were a letter of latin1, and a dump in UTF-8 has each of these
letters encoded again.  Such a value is recognised by itself: all its letters are of latin1, and their bytes are valid
UTF-8.  A text that is really latin1 has that form only if somebody wrote "Ã©" for "é" in all of it.

WikkaWiki since 1.3 stores notes, names and lists of rights with HTML entities.

Knows nothing of tables.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from typing import Final, Literal

# A part that has no links in it, or a link of a name or address, a blank, and words.
_LINK: Final = re.compile(r'%%.*?%%|"".*?""|\[\[\s*+([^\s\[\]|]++)\s++([^\s\[\]|][^\[\]|]*+)\]\]', re.DOTALL)
_OTHER_WIKI: Final = re.compile(r"[A-Z][A-Za-z]+:")
_WORD: Final = re.compile(r"[^\W\d_][^\W_]*+")
WordLinks = Literal["any", "words", "none"]
_FREE: Final = (0x81, 0x8D, 0x8F, 0x90, 0x9D)
_OF_BYTE: Final = tuple(chr(byte) if byte in _FREE else bytes([byte]).decode("cp1252") for byte in range(256))
_TO_BYTE: Final = {ord(letter): byte for byte, letter in enumerate(_OF_BYTE)}
_LETTERS: Final = "".join(_OF_BYTE)
_NOT_LATIN: Final = re.compile(f"[^{re.escape(_LETTERS)}]")


class TextReader:
    """Reads values of a dump; ``repaired`` counts those that were encoded twice, ``damaged`` those that are no text."""

    def __init__(self, charset: Callable[[], str]) -> None:
        """Take a function that returns the character set which the dump has named so far; "" if none."""
        self.repaired = 0
        self.damaged = 0
        self._charset = charset

    def text(self, value: bytes) -> str:
        if value.isascii():
            return value.decode("ascii")
        if self._charset() == "latin1":
            return self._of_latin(value)
        try:
            text = value.decode("utf-8")
        except UnicodeDecodeError:
            if not self._charset():
                return latin_text(value)
            self.damaged += 1
            return latin_text(value)
        again = encoded_twice(text)
        self.repaired += again is not None
        return text if again is None else again

    def _of_latin(self, value: bytes) -> str:
        try:
            text = value.decode("utf-8")
        except UnicodeDecodeError:
            return latin_text(value)
        self.repaired += 1
        return text


def latin_text(value: bytes) -> str:
    """Return the text of bytes in MySQL's latin1."""
    return value.decode("latin-1").translate(_BYTES_AS_LETTERS)


_BYTES_AS_LETTERS: Final = {byte: letter for byte, letter in enumerate(_OF_BYTE) if chr(byte) != letter}


def encoded_twice(text: str) -> str | None:
    """Return the text whose UTF-8 bytes ``text`` has as letters of latin1, or None if it is no such text."""
    if text.isascii() or _NOT_LATIN.search(text) is not None:
        return None
    try:
        return text.translate(_TO_BYTE).encode("latin-1").decode("utf-8")
    except (UnicodeEncodeError, UnicodeDecodeError):
        return None


def word_links(version: str, *, has_titles: bool) -> WordLinks | None:
    """Return to which pages links have words behind a blank, ``[[HomePage home]]``, in a WikkaWiki of this version.

    Until 1.2 to "any" page, until 1.3.6 to those whose names are "words" of letters and digits, later to "none".
    None: the version is unknown, and the tables, whose pages ``have titles`` since 1.3, do not say it.
    """
    if not has_titles:
        return "any"
    found = re.match(r"([0-9]{1,3})\.([0-9]{1,3})(?:\.([0-9]{1,3}))?", version)
    if found is None:
        return None
    return "words" if tuple(int(one or 0) for one in found.groups()) < (1, 3, 7) else "none"


def with_bars(body: str, *, of_pages: WordLinks) -> str:
    """Return a text in which links with words behind a blank have a ``|`` before the words.

    ``[[WikiPedia:Tide the tides]]`` is such a link in every WikkaWiki, and ``[[HomePage home]]`` by ``word_links``;
    here a blank belongs to the name.  Addresses with words are read as they are.
    """
    if "[[" not in body:
        return body

    def barred(found: re.Match[str]) -> str:
        target, words = found[1], found[2]
        if target is None or "://" in target or not _has_words(target, of_pages):
            return found[0]
        return f"[[{target} | {words.rstrip()}]]"

    return _LINK.sub(barred, body)


def links_with_words(body: str) -> Iterator[tuple[str, str]]:
    """Yield the links that "words" have: the page, and the words behind the blank."""
    for found in _LINK.finditer(body) if "[[" in body else ():
        if found[1] is not None and _WORD.fullmatch(found[1]):
            yield found[1], " ".join(found[2].split())


def _has_words(target: str, of_pages: WordLinks) -> bool:
    if _OTHER_WIKI.match(target) or of_pages == "any":
        return True
    return of_pages == "words" and _WORD.fullmatch(target) is not None


def unescaped(text: str) -> str:
    """Return a text that WikkaWiki stored with HTML entities as its readers saw it."""
    return html.unescape(text) if "&" in text else text
