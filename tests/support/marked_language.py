"""A language in which every text of the wiki is the English text between two marks.

Words of a page without marks are texts that cannot be translated.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

from wikka_port.texts import files

BEGIN: Final = "⟦"
END: Final = "⟧"
CODE: Final = "qaa"  # of those that no language has
_SAID: Final = ("aria-label", "title", "placeholder", "alt")
_SILENT: Final = frozenset({"script", "style", "code", "kbd", "samp", "pre", "textarea", "time", "svg"})
_VOID: Final = frozenset({"input", "br", "hr", "img", "meta", "link", "col", "wbr"})
_INNERMOST: Final = re.compile(f"{BEGIN}[^{BEGIN}{END}]*{END}")
_WORD: Final = re.compile(r"[^\W\d_]{2,}")


def write_marked_language(folder: Path) -> None:
    """Write the file of the language, for ``--languages``."""
    made = files.up_to_date(None, files.texts(), CODE)
    for entry in made:
        if entry.msgid_plural:
            entry.msgstr_plural = {0: f"{BEGIN}{entry.msgid}{END}", 1: f"{BEGIN}{entry.msgid_plural}{END}"}
        else:
            entry.msgstr = f"{BEGIN}{entry.msgid}{END}"
    (folder / f"{CODE}.po").write_text(files.written(made), encoding="utf-8")


def unmarked(html: str, content: Iterable[str]) -> list[str]:
    """Return visible words without marks; ``content`` has the words of pages and people, which need none."""
    reader = _Reader()
    reader.feed(html)
    return sorted({word for text in _bare(reader.said) for word in _WORD.findall(text)} - set(content))


def _bare(said: Iterable[str]) -> Iterator[str]:
    """Yield the unmarked words; a text may begin in one element and end in the next, so they are joined."""
    text = "\n".join(said)
    before = ""
    while before != text:
        before, text = text, _INNERMOST.sub("", text)
    yield text.replace(BEGIN, " ").replace(END, " ")


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []
        self._attributes: list[str] = []
        self._silent: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        if not self._silent:
            self.said += [str(given[name]) for name in _SAID if given.get(name)]
            if tag == "input" and given.get("type") in ("submit", "button"):
                self.said.append(str(given.get("value")))
        is_silent = tag in _SILENT or ("lang" in given and tag != "html") or given.get("translate") == "no"
        if tag not in _VOID and (self._silent or is_silent):
            self._silent.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._silent:
            while self._silent and self._silent.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.said.append(data)
