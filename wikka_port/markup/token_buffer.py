"""(pure) The tokens of a text as far as it is read, and the bounds on them (``limits``).

    text   |....... done .......|....... running text ........| mark ...
            is tokens in ``out``  becomes tokens with the mark

Running text is split at CamelCase words, which are links.  A lexer moves the border: it gives each token with the
text that it stands for, in the order of the text.

Invariants:
    I1. All text before the position ``done`` has become tokens.
    I2. A search for an end costs as much as the text is long, for all searches together (``_ahead``).
    I3. Full is raised before the token that is over a bound is made, so all text from ``done`` on is unread.

Knows nothing of the markup, but for the words that are links by themselves.
"""

from __future__ import annotations

import re
from typing import Final

from wikka_port.limits import CELLS_MAX, LINKS_MAX, STEPS_MAX
from wikka_port.markup.tokens import Bound, PageLink, Token
from wikka_port.names import MAX_NAME_BYTES

# The pattern begins with a letter, so that the regex engine skips text by a set of characters; the look-behind follows.
CAMEL_CASE: Final = re.compile(r"[A-Z](?<!\w[A-Z])[A-Z]*+[a-z]++[A-Z0-9][A-Za-z0-9]*+(?!\w)")
UNFIT: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


def fit(text: str) -> str:
    """Return ``text`` with ``\\n`` as ends of lines; characters that HTML or UTF-8 cannot carry become U+FFFD."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return UNFIT.sub("\ufffd", text) if UNFIT.search(text) else text


class Full(Exception):
    """A bound is reached, so nothing after ``done`` is read."""

    def __init__(self, over: Bound) -> None:
        super().__init__(over)
        self.over: Bound = over


class TokenBuffer:
    """The tokens of one text."""

    __slots__ = ("_answers", "_cells", "_linked", "_steps", "autolink", "done", "out", "text")

    def __init__(self, text: str, autolink: bool) -> None:
        self.text = text
        self.autolink = autolink
        self.out: list[Token] = []
        self.done = 0
        self._answers: dict[str, int] = {}
        self._steps = STEPS_MAX  # still allowed, before the tokens made are subtracted
        self._cells = CELLS_MAX  # still allowed
        self._linked: set[str] = set()

    def _spend(self, steps: int) -> None:
        """Count the steps of an expensive token before it is made.  Raises Full."""
        self._steps -= steps
        if self._steps < len(self.out):
            raise Full("steps")

    def _spend_cell(self) -> None:
        """Count a cell before its token is made.  Raises Full."""
        if self._cells == 0:
            raise Full("cells")
        self._cells -= 1

    def _flush(self, end: int) -> None:
        """Emit the text between ``done`` and ``end`` as running text."""
        if end <= self.done:
            return
        text, out = self.text, self.out
        for word in CAMEL_CASE.finditer(text[self.done : end]) if self.autolink else ():
            name = word.group()
            if len(name) > MAX_NAME_BYTES:
                continue
            start = end - len(word.string) + word.start()
            if start > self.done:
                out.append(text[self.done : start])
                self.done = start
            self._link(name)
            out.append(PageLink(name, name))
            self.done = start + len(name)
        if self.done < end:
            out.append(text[self.done : end])
            self.done = end

    def _link(self, name: str) -> None:
        """Count a link to the page ``name`` before its token is made.  Raises Full."""
        if self._steps < len(self.out):
            raise Full("steps")
        self._linked.add(name)
        if len(self._linked) > LINKS_MAX:
            raise Full("links")

    def _emit(self, start: int, end: int, token: Token) -> int:
        """Emit ``token`` for the text from ``start`` to ``end``, after the running text before it; return ``end``."""
        self._flush(start)
        if type(token) is PageLink:
            self._link(token.name)
        self.out.append(token)
        self.done = end
        return end

    def _ahead(self, needle: str, start: int) -> int:
        """Find ``needle`` at or after ``start``; return a position past the text if there is none.

        ``start`` must not decrease from call to call (I1).
        """
        answer = self._answers.get(needle, -1)
        if answer < start:
            answer = self.text.find(needle, start)
            if answer < 0:
                answer = len(self.text) + 1
            self._answers[needle] = answer
        return answer
