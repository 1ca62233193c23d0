"""(pure) Tags whose content MediaWiki does not read as markup: nowiki, pre, code listings, formulas, galleries.

Knows nothing of where such tags begin; ``Closings`` finds their ends.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from wikka_port.markup.mediawiki_inline import KNOWN_TAGS, embedded_line, inline
from wikka_port.markup.mediawiki_links import picture
from wikka_port.markup.mediawiki_pieces import (
    PLAIN_CHARS_MAX,
    Draft,
    Piece,
    balance_quotes,
    code_block,
    collapse,
    escape,
    literal,
    mono,
    preformatted,
    unescape,
)
from wikka_port.markup.mediawiki_titles import FILE

_LISTINGS: Final = ("source", "syntaxhighlight")
_FORMULAS: Final = ("math", "chem", "ce")
_DATA: Final = (
    *("timeline", "score", "graph", "templatedata", "templatestyles", "mapframe", "maplink", "hiero"),
    *("inputbox", "imagemap", "categorytree", "indicator", "charinsert", "pagequality", "pages"),
)
TAGS: Final = ("nowiki", "pre", "gallery", *_LISTINGS, *_FORMULAS, *_DATA)

_TAG: Final = re.compile(r"</?([a-zA-Z][a-zA-Z0-9]*)")
_ADDRESS: Final = re.compile(r"https?://|ftp://|mailto:")

_OPTION: Final = re.compile(r"\s*(?:alt|link|page|lang|class)\s*=[^|\[\]{}]*+\|")
_LANGUAGE: Final = re.compile(r"""lang\s*=\s*["']?([A-Za-z0-9+#-]{1,24})""", re.IGNORECASE)

Read = Callable[[str], str]


class Closings:
    """The closing tags of a text up to ``end``, each pattern from its last match on."""

    def __init__(self, text: str, end: int) -> None:
        self._text = text
        self._end = end
        self._next: dict[str, re.Match[str] | None] = {}  # pattern -> its nearest match; None: no more

    def after(self, pattern: str, start: int) -> re.Match[str] | None:
        """Return the next match of a closing, or None; ``start`` never falls from call to call.

        No part of the text is searched twice for one pattern, which would be quadratic.
        """
        known = self._next.get(pattern)
        if pattern in self._next and (known is None or known.start() >= start):
            return known
        found = self._next[pattern] = re.compile(pattern, re.IGNORECASE).search(self._text, start, self._end)
        return found


def raw(draft: Draft, name: str, attributes: str, content: str, read: Read) -> Piece:
    """Convert a tag and its content; ``read`` converts the links and templates of captions, which are wikitext."""
    plain = collapse(content.strip()[:PLAIN_CHARS_MAX]).replace("\n", " ")
    if name == "nowiki":
        draft.converted["nowiki"] += 1
        return Piece(_escape_text(content), collapse(unescape(content))[:PLAIN_CHARS_MAX])
    if name == "gallery":
        return _gallery(draft, content, read)
    if name in _FORMULAS:
        draft.unconverted["formula"] += 1
        return Piece(mono(content), plain)
    if name == "pre":
        content = unescape(content.replace("<nowiki>", "").replace("</nowiki>", ""))
    language = _LANGUAGE.search(attributes) if name in _LISTINGS else None
    if name in _DATA:
        draft.unconverted[f"<{name}>"] += 1
    else:
        draft.converted["code"] += 1
    if not content.strip():
        return Piece("", block="")
    short = "\n" not in content.strip()
    block = code_block(content, language[1].lower() if language else "")
    if short and "inline" in attributes:
        return Piece(mono(content.strip()), plain)
    return Piece(mono(content.strip()) if short else preformatted(content.strip("\n")), plain, block=block)


def preformatted_lines(draft: Draft, lines: list[str]) -> str:
    """Convert lines that begin with a blank: a code block; with emphasis or addresses, embedded HTML.

    Lines with links to pages or with templates keep their indents, and no more: neither of the two can hold these.
    """
    lines = [line[1:].rstrip() for line in lines]
    text = "\n".join(lines)
    if "\x02" in text:
        shown = [(_indent(line), inline(draft, line)) for line in lines]
        return "\n".join(indent + line for indent, line in shown if line)
    draft.converted["code"] += 1
    if "''" not in text and _ADDRESS.search(text) is None and not any(map(is_known_tag, _TAG.finditer(text))):
        return code_block(unescape(text))
    return f'""<pre>{"&#10;".join(embedded_line(draft, line) for line in lines)}</pre>""'


def is_known_tag(found: re.Match[str]) -> bool:
    return found[1].lower() in KNOWN_TAGS


def begins_preformatted(line: str) -> bool:
    """Return whether a line is preformatted: it begins with a blank, and with no block behind it."""
    words = line.lstrip()
    if not line.startswith(" ") or not words or words.startswith(("\x02", "|", "!")):
        return False
    tag = _TAG.match(words)
    return tag is None or not is_known_tag(tag)


def _indent(line: str) -> str:
    return "\xa0" * (len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip(" ")))


def _escape_text(content: str) -> str:
    """Return text that is no markup in MediaWiki and none in Wikka.

    It is escaped word by word.  A word that begins and ends with letters stays readable in the editor.  A word with a
    sign at an end becomes a literal, since the sign could join with one outside.
    """
    words = collapse(unescape(content)).split(" ")
    return " ".join(
        escape(word, cell=True) if not word or (word[0].isalnum() and word[-1].isalnum()) else literal(word)
        for word in words
    )


def _gallery(draft: Draft, content: str, read: Read) -> Piece:
    draft.unconverted["gallery"] += 1
    items = []
    for line in content.split("\n"):
        name, _, caption = line.strip().partition("|")
        if name.strip():
            shown = picture(draft.dialect, _file(draft, unescape(name).strip()))
            items.append(f"{shown} {inline(draft, read(_captions(caption)), cell=True)}".strip())
    block = "\n".join(f"~- {item}" for item in items)
    return Piece(balance_quotes(" --- ".join(items)), "", block=block)


def _file(draft: Draft, name: str) -> str:
    """Return the name of a file without its namespace, which may be missing."""
    prefix, colon, rest = name.partition(":")
    is_file = colon and draft.dialect.numbers.get(prefix.strip().lower()) == FILE
    return rest.strip() if is_file and rest.strip() else name


def _captions(text: str) -> str:
    """Return a caption without the options before it, which galleries have since MediaWiki 1.17."""
    while option := _OPTION.match(text):
        text = text[option.end() :]
    return text
