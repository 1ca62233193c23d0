r"""(pure) The grammar of ``columnar shell``: lines are cut into statements, and statements into words.

    script     := line*
    line       := (statement ";")* statement?        ";" and the line's end separate outside quotes
    statement  := word (blank word)*
    word       := (bare | '...' | "...")+            without blanks between its pieces

    '...'   everything in between is literal, line ends too
    "..."   the same, but \" is a quote and \\ a backslash
    bare    \ takes the meaning of a following blank, quote, ; # or \ away; before any other character it
            is itself, so that \x00 names a byte as it does within quotes
    #       at the beginning of a word: a comment up to the line's end
    \       at the line's end: the statement continues in the next line

A statement like ``get 'pages', 'HomePage'`` is in the words of HBase's shell.  Its quotes are Ruby's (\' within '...'),
and it continues in the next line after an open bracket or a comma.

Invariants:
    L1. No input is lost: each character belongs to a statement, a separator, a comment or a joined line end.
    L2. Feeding lines costs time in proportion to their length, however long a statement stays open.

Knows nothing of commands, files and terminals.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from columnar.errors import IllegalArgument
from columnar.limits import SHELL_STATEMENT_CHARACTERS

_BLANKS: Final = " \t\n"  # and no others: a no-break space is part of its word
_QUOTES: Final = "'\""
_ESCAPABLE: Final = " \t\n'\";#\\"  # outside quotes
_OPENING, _CLOSING = "{[(", "}])"
# A verb and one quoted argument; if a comma follows, the statement is in HBase's words.
_HBASE_BEGIN: Final = re.compile(r"""\s*[a-z_]+\s+(?:'[^']*'|"(?:[^"\\]|\\.)*")\s*""")
_HBASE_BEGIN_CHARACTERS: Final = 400  # a verb and a table's name: nothing longer is searched for the comma
_SAFE: Final = re.compile(r"(?!,)[\w@%+=:,./-]+")  # a comma at the beginning may be HBase's
_OF_OTHER_SHELLS: Final = frozenset("$`!")  # which they replace within "..."
_PLAIN: Final = re.compile(r"[^\s'\";#\\]+")


@dataclass(frozen=True, slots=True)
class Statement:
    text: str  # as typed, without comments
    line: int  # in which it began, from 1
    is_hbase: bool  # written as HBase's shell has it

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(word.value for word in _words(self.text))


@dataclass(frozen=True, slots=True)
class Unfinished:
    """The text in front of a cursor; ``last`` is the word at the cursor, '' after a blank."""

    words: tuple[str, ...]
    last: str
    begin: int  # of the last word in the text, quotes included
    quote: str  # that is open there, or ''


class Statements:
    """A parser that cuts lines into statements, and keeps the statement that has not ended yet."""

    def __init__(self, first_line: int = 1) -> None:
        self.line = first_line  # that is fed next
        self._restart()

    def _restart(self) -> None:
        self._text: list[str] = []
        self._kept = 0  # pieces of the text up to the end of its last word; blanks after it are none of it
        self._size = 0
        self._began = self.line
        self._quote = ""
        self._quote_line = 0
        self._is_hbase = False
        self._depth = 0

    @property
    def is_open(self) -> bool:
        """Whether the next line belongs to a statement that has begun."""
        return bool(self._text)

    @property
    def open_text(self) -> str:
        """The text of the open statement so far."""
        return "".join(self._text)

    @property
    def _is_in_word(self) -> bool:
        return 0 < self._kept == len(self._text)

    @property
    def lacking(self) -> str:
        """The missing end of the open statement, for a message."""
        if self._quote:
            return f"the {self._quote} of line {self._quote_line} is not closed"
        if self._depth:
            return f"a bracket of the statement that begins in line {self._began} is not closed"
        return f"the statement that begins in line {self._began} goes on"

    def feed(self, line: str) -> list[Statement]:
        """Return the statements that end in ``line``, which has no line end."""
        found: list[Statement] = []
        continues = self._scan(line, found)
        self.line += 1
        if self._quote:
            self._add("\n")
        elif continues:
            self._add("\n" if self._is_hbase else "", in_word=self._is_in_word and not self._is_hbase)
        else:
            self._finish(found)
        return found

    def _scan(self, line: str, found: list[Statement]) -> bool:
        """Return whether the statement at the line's end continues for a reason other than a quote."""
        place, end = 0, len(line)
        while place < end:
            character = line[place]
            if self._quote:
                place = self._quoted(line, place)
            elif character in _QUOTES:
                self._quote, self._quote_line = character, self.line
                self._add(character)
                place += 1
            elif character == "\\" and not self._is_hbase:
                if place + 1 == end:
                    return True
                self._add(line[place : place + 2])
                place += 2
            elif character == "#" and not self._is_in_word:
                break
            elif character == ";" and not self._depth:
                self._finish(found)
                place += 1
            else:
                plain = _PLAIN.match(line, place)
                piece = plain[0] if plain is not None and plain.end() > place else character
                if not self._is_hbase and "," in piece:
                    piece = piece[: piece.index(",") + 1]
                    self._is_hbase = self._begins_as_hbase(piece)
                if self._is_hbase:
                    self._count_brackets(piece)
                self._add(piece, in_word=piece not in " \t;")  # ";" within HBase's brackets
                place += len(piece)
        return bool(self._depth) or (self._is_hbase and self._ends_with_comma())

    def _quoted(self, line: str, place: int) -> int:
        """Take the part of ``line`` that belongs to the open quote; return the place after it."""
        escapes = self._quote == '"' or self._is_hbase
        at = place
        while at < len(line):
            if line[at] == "\\" and escapes:
                at += 2
                continue
            if line[at] == self._quote:
                self._add(line[place : at + 1])
                self._quote = ""
                return at + 1
            at += 1
        self._add(line[place:])
        return len(line)

    def _begins_as_hbase(self, piece: str) -> bool:
        if self._size > _HBASE_BEGIN_CHARACTERS:
            return False
        return _HBASE_BEGIN.fullmatch("".join(self._text) + piece[:-1]) is not None

    def _count_brackets(self, piece: str) -> None:
        for character in piece:
            if character in _OPENING:
                self._depth += 1
            elif character in _CLOSING:
                self._depth = max(0, self._depth - 1)

    def _ends_with_comma(self) -> bool:
        last = next((piece for piece in reversed(self._text) if piece.strip()), "")
        return last.endswith(",")

    def _add(self, piece: str, *, in_word: bool = True) -> None:
        self._size += len(piece)
        if self._size > SHELL_STATEMENT_CHARACTERS:
            raise IllegalArgument(
                f"a statement has more than {SHELL_STATEMENT_CHARACTERS} characters: {self.lacking}? "
                "A long value is read from a file: COLUMN=@FILE"
            )
        if not self._text:
            self._began = self.line
        self._text.append(piece)
        if in_word:
            self._kept = len(self._text)

    def _finish(self, found: list[Statement]) -> None:
        text = "".join(self._text[: self._kept]).lstrip(_BLANKS)
        if text:
            found.append(Statement(text, self._began, self._is_hbase))
        self._restart()


def statements_of(text: str) -> tuple[list[Statement], Statements]:
    """Return all whole statements of ``text``, and the state after its last line."""
    reader, found = Statements(), []
    for line in text.split("\n"):
        found += reader.feed(line)
    return found, reader


@dataclass(frozen=True, slots=True)
class _Word:
    value: str
    begin: int
    end: int
    quote: str  # still open at the text's end


def _words(text: str) -> list[_Word]:
    found: list[_Word] = []
    place = 0
    while place < len(text):
        if text[place] in _BLANKS:
            place += 1
            continue
        found.append(_word(text, place))
        place = found[-1].end
    return found


def _word(text: str, begin: int) -> _Word:
    value: list[str] = []
    quote, place, end = "", begin, len(text)
    while place < end:
        character, following = text[place], text[place + 1 : place + 2]
        place += 1
        if quote:
            if character == quote:
                quote = ""
            elif character == "\\" and quote == '"' and following and following in '"\\':
                value.append(following)
                place += 1
            else:
                value.append(character)
        elif character in _BLANKS:
            place -= 1
            break
        elif character in _QUOTES:
            quote = character
        elif character == "\\" and following and following in _ESCAPABLE:
            value.append(following)
            place += 1
        else:
            value.append(character)
    return _Word("".join(value), begin, place, quote)


def before_cursor(text: str) -> Unfinished:
    """Return the last statement in ``text`` as completion needs it."""
    reader = Statements()
    *before, line = text.split("\n")
    for whole in before:
        reader.feed(whole)
    tail = reader.open_text + line
    begin_of_tail = len(text) - len(tail)  # counted from the end: a joined line end is in the text only
    cut = _last_statement(tail)
    words = _words(tail[cut:])
    if words and cut + words[-1].end == len(tail):  # no blank after it
        last = words.pop()
        return Unfinished(tuple(one.value for one in words), last.value, begin_of_tail + cut + last.begin, last.quote)
    return Unfinished(tuple(one.value for one in words), "", len(text), "")


def _last_statement(text: str) -> int:
    """Return the place at which the last statement of a line begins."""
    quote, place, begin = "", 0, 0
    while place < len(text):
        character = text[place]
        if character == "\\" and quote != "'":
            place += 1
        elif quote:
            quote = "" if character == quote else quote
        elif character in _QUOTES:
            quote = character
        elif character == ";":
            begin = place + 1
        place += 1
    return begin


def quoted(word: str) -> str:
    """Return ``word`` as it may be typed, here and in the system's shells: words_of(quoted(word)) == (word,)."""
    if _SAFE.fullmatch(word):
        return word
    if "'" not in word:
        return f"'{word}'"
    if not _OF_OTHER_SHELLS.intersection(word):
        escaped = word.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return "'" + word.replace("'", "'\"'\"'") + "'"


def words_of(text: str) -> tuple[str, ...]:
    return tuple(word.value for word in _words(text))
