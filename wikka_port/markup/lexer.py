"""(pure, fuzzed) From text to tokens.  Any text is a page: the lexer never raises, and wrong markup becomes text.

A compiled expression finds the next place where a construct may begin; every alternative in it begins
with a literal, so that the regex engine skips plain text by a character set.  The end of a construct with
its own closing mark (``[[ ]]``, ``{{ }}``, ``%% %%``, ``"" ""``, comments) is then searched for.

Invariants:
    I1. Time is linear in the text.  No expression can backtrack over more than it has consumed
        (possessive quantifiers), and ends are searched for through ``_ahead`` (``token_buffer``), which remembers
        the last answer: 100,000 openers without an end cost one search, not 100,000.
    I2. A ``[[`` or ``{{`` that occurs again before its end is text: the innermost pair counts.
    I3. HEADING_END follows every HeadingStart on the same line, before its NEWLINE, and before the end of its cell.
        A heading inside a line becomes text again if its end turns out to lie in code or in a link.
    I4. A Cell occurs only on a line that began with a Cell.
    I5. A text over a bound of ``limits`` (links, cells, steps) is read up to the bound: the last token is then a Rest
        with the unread text.  The cut depends only on the text, so all readers cut at the same position.
    I6. NOTE_END follows every NOTE on the same line and in the same cell; between them there is no heading, rule or
        NOTE.

Knows nothing of HTML and of which pages exist.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from typing import Final

from wikka_port.limits import HTML_STEPS
from wikka_port.markup import interwiki
from wikka_port.markup.targets import IMAGE_ENDINGS, read_action, read_link, safe_url, trimmed
from wikka_port.markup.token_buffer import UNFIT, Full, TokenBuffer, fit
from wikka_port.markup.tokens import (
    BREAK,
    CLEAR,
    HEADING_END,
    NEWLINE,
    NOTE,
    NOTE_END,
    RULE,
    TOGGLES,
    Cell,
    CodeBlock,
    Embedded,
    Float,
    HeadingStart,
    Image,
    Item,
    MindMap,
    Outside,
    Rest,
    Token,
)

# Every alternative must begin with a literal character (see above); longer before shorter.
_MARK: Final = re.compile(
    r"\n|\*\*|//|/\*|__|##|#%|''|\+\+|££|¥¥|@@|\"\"|%%|``|---+|\[\[|\[\^|\^\]|\{\{"
    r"|\|\||\|[=?!#_\[\]\-]\||<<|>>|<map[ >]|::c::|:|==+|&pound;&pound;|&yen;&yen;"
    r"|&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});"
)
_INDENT: Final = re.compile(
    r"((?:~|\t| {4})++)(?:(-)(?!--) ?|(&)(?![#\w]{1,31};) ?|([0-9]{1,9}|[A-Za-z]|[ivx]{2,8}|[IVX]{2,8})\) ?)?"
)
_RULE: Final = re.compile(r" *+-{4,}+")
_HEADING: Final = re.compile(r" *+(={2,6})(?!=)")
_BLANK_TO_END: Final = re.compile(r"[ \t]*+(?=\n|\Z)")
_BLANKS: Final = re.compile(r"[ \t]*+")
_CELL_ATTRIBUTES: Final = re.compile(r"\(([a-z]:[^()\n]{0,400})\)|\{(?!\{)([^{}\n:]{1,40}:[^{}\n]{0,400})\}")
_CODE_HEAD: Final = re.compile(r"\(([\w+#.\- ]{0,40})(?:;([0-9 ]{0,9})(?:;([^)\n]{0,200}))?)?\)")
_URL_REST: Final = re.compile(r"(?:(?!\*\*|''|%%|££|¥¥)[^\s<>\"|\[\]{}`\\^])++")
_MAIL_REST: Final = re.compile(r"[\w.+\-]{1,64}+@[A-Za-z0-9\-]{1,63}+(?:\.[A-Za-z0-9\-]{1,63}+){1,8}+")
_WORD_BEFORE: Final = re.compile(r"(?<!\w)[A-Za-z][A-Za-z0-9]{0,19}\Z")
_LINE_MARKS: Final = frozenset("~\t -=|")


def tokens(text: str, *, autolink: bool = True) -> list[Token]:
    """Return the tokens of ``text``; with ``autolink`` CamelCase words are links.  Never raises; O(len(text))."""
    return _Lexer(fit(text), autolink).run()


class _Lexer(TokenBuffer):
    """A pass over one text: a method for each kind of mark."""

    __slots__ = ("_within", "heading", "line_start", "note", "row")

    def __init__(self, text: str, autolink: bool) -> None:
        super().__init__(text, autolink)
        self.heading = 0  # number of "=" that close the open heading; 0: none is open
        self._within = -1  # index in ``out`` of the open heading that began inside a line; -1: none is open
        self.note = -1  # position at which the open note should end; -1: none is open
        self.row = False  # whether this line began with a cell
        self.line_start = 0  # of this line, for comments that fill a line

    def run(self) -> list[Token]:
        rest: Rest | None = None
        try:
            self._read()
        except Full as full:
            rest = Rest(self.text[self.done :], full.over)
        self._end_heading()
        if rest is not None:
            self.out.append(rest)
        return self.out

    def _read(self) -> None:
        text, out, search = self.text, self.out, _MARK.search
        position = self._begin_line(0)
        while found := search(text, position):
            self._steps -= 1
            if self._steps < len(out):
                raise Full("steps")
            mark = found.group()
            start = found.start()
            toggle = TOGGLES.get(mark)
            if toggle is not None:
                self._flush(start)
                out.append(toggle)
                self.done = position = found.end()
            else:
                position = _AFTER[mark[0]](self, start, mark)
        self._flush(len(text))

    # -- lines

    def _begin_line(self, start: int) -> int:
        """Emit the token with which the line at ``start`` begins, if any; return where to continue."""
        text = self.text
        self.line_start = start
        if start >= len(text) or text[start] not in _LINE_MARKS:
            return start
        indent = _INDENT.match(text, start)
        if indent:
            if indent.end() == indent.end(1) and "~" not in indent[1] and _BLANK_TO_END.match(text, indent.end()):
                return indent.end()
            depth = indent[1].count("~") + indent[1].count("\t") + indent[1].count(" ") // 4
            return self._emit(start, indent.end(), Item(depth, indent[2] or indent[3] or indent[4] or ""))
        rule = _RULE.match(text, start)
        if rule:
            return self._emit(start, rule.end(), RULE)
        heading = _HEADING.match(text, start)
        if heading:
            if self._is_closed(heading[1], heading.end()):
                self.heading = len(heading[1])
                return self._emit(start, heading.end(), HeadingStart(7 - self.heading, self._place()))
        elif text[start] == "|" and (text.startswith("||", start) or text[start + 2 : start + 3] == "|"):
            self.row = True
        return start

    def _newline(self, start: int, _mark: str) -> int:
        self._flush(start)
        self._end_heading()
        self.row = False
        self._emit(start, start + 1, NEWLINE)
        return self._begin_line(start + 1)

    def _is_closed(self, mark: str, start: int) -> bool:
        """Return whether ``mark`` occurs again, after more than blanks, in the rest of the line or cell."""
        stop = min(self._ahead("\n", start), len(self.text))
        if self.row:
            stop = min(stop, self._ahead("||", start))
        close = self.text.find(mark, start, stop)
        return close > 0 and not self.text[start:close].isspace()

    def _equals(self, start: int, mark: str) -> int:
        end = start + len(mark)
        if self.note >= 0:
            return end
        if self.heading:
            if len(mark) < self.heading:
                return end
            self.heading, self._within = 0, -1
            return self._emit(start, end, HEADING_END)
        if len(mark) > 6 or not self._is_closed(mark, end):
            return end
        self._emit(start, end, HeadingStart(7 - len(mark), self._place()))
        self.heading, self._within = len(mark), len(self.out) - 1
        return end

    def _place(self) -> int:
        """Return the position of this line, for the section of its heading, or -1 in a table and after a comment."""
        start = self.line_start
        return -1 if self.row or self.text[start - 1 : start] not in ("", "\n") else start

    def _end_heading(self) -> None:
        """End an open heading or note at the end of its line or cell; the text before that end must be in ``out``."""
        self._end_note()
        if self._within >= 0:
            self.out[self._within] = "=" * self.heading
        elif self.heading:
            self.out.append(HEADING_END)
        self.heading, self._within = 0, -1

    def _dashes(self, start: int, mark: str) -> int:
        if len(mark) == 3:
            return self._emit(start, start + 3, BREAK)
        return start + len(mark) if self.heading or self.note >= 0 else self._emit(start, start + len(mark), RULE)

    def _bar(self, start: int, mark: str) -> int:
        if not self.row:
            return start + 1
        end = start + len(mark)
        typed = {"(": "", "{": ""}
        while found := _CELL_ATTRIBUTES.match(self.text, end):
            if typed[found[0][0]]:
                break
            typed[found[0][0]] = found[1] or found[2]
            end = found.end()
        self._flush(start)
        self._spend_cell()
        self._end_heading()
        return self._emit(start, end, Cell("|" if mark == "||" else mark[1], typed["("], typed["{"]))

    # -- what has an end of its own

    def _slash(self, start: int, _mark: str) -> int:
        """Read a comment that vanishes with the blanks after it, and with its line if it fills the line."""
        close = self._ahead("*/", start + 2)
        if close > len(self.text):
            return start + 2
        blanks = _BLANKS.match(self.text, close + 2)
        end = blanks.end() if blanks else close + 2
        self._flush(start)
        self.done = end
        if self.text[self.line_start : start].isspace() or start == self.line_start:
            if self.text.startswith("\n", end):
                self.done = end + 1
                return self._begin_line(end + 1)
            return self._begin_line(end)
        return end

    def _backticks(self, start: int, _mark: str) -> int:
        """Read a comment that leaves the blanks around it."""
        close = self._ahead("``", start + 2)
        if close > len(self.text):
            return start + 2
        self._flush(start)
        self.done = close + 2
        return close + 2

    def _quotes(self, start: int, _mark: str) -> int:
        close = self._ahead('""', start + 2)
        if close > len(self.text):
            return start + 2
        self._flush(start)
        self._spend(HTML_STEPS * (1 + self.text.count("<", start, close)))
        return self._emit(start, close + 2, Embedded(self.text[start + 2 : close]))

    def _percents(self, start: int, _mark: str) -> int:
        close = self._ahead("%%", start + 2)
        if close > len(self.text):
            return start + 2
        head = _CODE_HEAD.match(self.text, start + 2, close)
        if not head:
            return self._emit(start, close + 2, CodeBlock(self.text[start + 2 : close]))
        number = (head[2] or "").strip()
        first = int(number) if number.isdigit() else None
        if first is not None:
            self._flush(start)
            self._spend(self.text.count("\n", start, close))
        code = CodeBlock(self.text[head.end() : close], head[1].strip().lower(), first, (head[3] or "").strip())
        return self._emit(start, close + 2, code)

    def _caret(self, start: int, _mark: str) -> int:
        if start != self.note:
            return start + 1
        self._flush(start)
        self._end_note()
        self.done = start + 2
        return start + 2

    def _note(self, start: int) -> int:
        close = self._ahead("^]", start + 2)
        if self.note >= 0 or self.heading or close > self._ahead("\n", start + 2) or close > len(self.text):
            return start + 1
        if (self.row and close > self._ahead("||", start + 2)) or not self.text[start + 2 : close].strip():
            return start + 1
        self.note = close
        return self._emit(start, start + 2, NOTE)

    def _end_note(self) -> None:
        if self.note >= 0:
            self.out.append(NOTE_END)
            self.note = -1

    def _bracket(self, start: int, mark: str) -> int:
        if mark == "[^":
            return self._note(start)
        inside = start + 2
        close = self._ahead("]]", inside)
        if close > len(self.text) or self._ahead("\n", inside) < close or self._ahead("[[", inside) < close:
            return start + 1
        body = self.text[inside:close]
        if self.text.startswith("]", close + 2) and body.count("[") > body.count("]"):
            body += "]"  # the bracket closes one within the name
            close += 1
        link = read_link(body)
        return self._emit(start, close + 2, link) if link else start + 1

    def _brace(self, start: int, _mark: str) -> int:
        close = self._ahead("}}", start + 2)
        if close > len(self.text) or self._ahead("{{", start + 2) < close:
            return start + 1
        action = read_action(self.text, start + 2, close)
        return self._emit(start, close + 2, action) if action else start + 1

    def _angle(self, start: int, mark: str) -> int:
        if mark[:2] in ("<<", ">>"):
            return self._emit(start, start + 2, Float("left" if mark == "<<" else "right"))
        close = self._ahead("</map>", start + 4)
        if close > len(self.text):
            return start + 4
        self._flush(start)
        self._spend(2 * self.text.count("<", start, close))
        return self._emit(start, close + 6, MindMap(self.text[start : close + 6]))

    # -- addresses and references

    def _colon(self, start: int, mark: str) -> int:
        """Read a colon: the word before it may be a scheme or the prefix of another wiki."""
        text = self.text
        if mark == "::c::":
            return self._emit(start, start + 5, CLEAR)
        after = text[start + 1 : start + 2]
        if not after or after.isspace() or start == self.done:
            return start + 1
        word = _WORD_BEFORE.search(text, max(self.done, start - 20), start)
        if not word:
            return start + 1
        scheme = word.group().lower()
        if scheme in ("http", "https", "ftp"):
            return self._bare_url(word.start(), start) if text.startswith("://", start) else start + 1
        if scheme == "mailto":
            rest = _MAIL_REST.match(text, start + 1)
            if not rest:
                return start + 1
            return self._emit(word.start(), rest.end(), Outside("mailto:" + rest[0], rest[0], "mail"))
        rest = _URL_REST.match(text, start + 1) if scheme in interwiki.SITES else None
        if not rest:
            return start + 1
        end = start + 1 + trimmed(rest[0])
        url = interwiki.address(scheme, text[start + 1 : end])
        if url is None:
            return rest.end()  # not again from within it (I1)
        return self._emit(word.start(), end, Outside(url, text[word.start() : end], "interwiki"))

    def _bare_url(self, start: int, colon: int) -> int:
        rest = _URL_REST.match(self.text, colon + 3)
        length = trimmed(rest[0]) if rest else 0
        url = safe_url(self.text[start : colon + 3 + length]) if length else None
        if url is None:
            return rest.end() if rest else colon + 3  # not again from within it (I1)
        image = url.lower().endswith(IMAGE_ENDINGS)
        return self._emit(start, colon + 3 + length, Image(url) if image else Outside(url, url, "external"))

    def _ampersand(self, start: int, mark: str) -> int:
        """Read ``&copy;`` or ``&#42;`` as the character, without its meaning in the markup."""
        character = html.unescape(mark)
        if character == mark or character in "\n\r" or UNFIT.search(character):
            return start + 1
        self._flush(start)
        self.out.append(character)
        self.done = start + len(mark)
        return self.done


_AFTER: Final[dict[str, Callable[[_Lexer, int, str], int]]] = {
    "\n": _Lexer._newline,
    "=": _Lexer._equals,
    "-": _Lexer._dashes,
    "|": _Lexer._bar,
    "/": _Lexer._slash,
    "`": _Lexer._backticks,
    '"': _Lexer._quotes,
    "%": _Lexer._percents,
    "[": _Lexer._bracket,
    "^": _Lexer._caret,
    "{": _Lexer._brace,
    "<": _Lexer._angle,
    ">": _Lexer._angle,
    ":": _Lexer._colon,
    "&": _Lexer._ampersand,
}
