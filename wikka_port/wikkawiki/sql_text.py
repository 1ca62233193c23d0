r"""(pure) The text of an SQL dump in pieces of any size: words, quoted texts, comments.

Inside quotes ``\n`` and its like, ``\\``, ``\'`` and doubled quotes are resolved; ``\%`` and ``\_`` stay so,
as MySQL reads them.

Memory is bounded by ROW_BYTES_MAX and one piece.  Each byte is matched a bounded number of times, whatever the pieces
are: what was matched is never matched again when the next piece comes.

Knows nothing of statements and tables (``sql_dump``), and of character sets.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

ROW_BYTES_MAX: Final = 64 * 1024 * 1024  # of one row as it stands in the dump; a MEDIUMTEXT has 16 MiB, twice escaped
WORD_BYTES_MAX: Final = 1_024  # of a keyword, a name or a number

_BLANK: Final = re.compile(rb"\s++")
_WORD: Final = re.compile(rb"[A-Za-z0-9_$@.\x80-\xff]++")
_NUMBER: Final = re.compile(rb"[-+]?[0-9A-Za-z.]++(?:(?<=[eE])[-+][0-9]++)?")
_CONDITION: Final = re.compile(rb"/\*(M?)!([0-9]*)")
_CONDITION_BYTES: Final = 12
_SANDBOX: Final = 999_999  # a version that no server has: a comment for the client of MariaDB alone
_BODIES: Final = {
    quote: re.compile(rb"(?:[^%c\\]++|\\.|%c%c)++" % (quote, quote, quote), re.DOTALL) for quote in b"'\"`"
}
_NAME_BODY: Final = re.compile(rb"(?:[^`]++|``)++")
_SKIPPED: Final = re.compile(rb"[^'\"`;#/*\-]++")
_ESCAPES: Final = ((b"\\n", b"\n"), (b"\\'", b"'"), (b'\\"', b'"'), (b"\\r", b"\r"), (b"\\t", b"\t"), (b"\\0", b"\0"),
                   (b"\\Z", b"\x1a"), (b"\\b", b"\b"))  # fmt: skip
_OTHER_ESCAPE: Final = re.compile(rb"\\([^%_])", re.DOTALL)
_BEFORE_NAME: Final = frozenset({b"OR", b"REPLACE", b"TEMPORARY", b"TABLE", b"IF", b"NOT", b"EXISTS"})
_ENDS: Final = (b"-- MySQL dump", b"-- MariaDB dump")  # the tools that write "-- Dump completed" at the end
_COMPLETED: Final = b"-- Dump completed"
# Until MySQL 4.0 it wrote no end at all, and in 4.1 the statements that restore the settings of the session.
_WITHOUT_END: Final = re.compile(rb"-- MySQL dump (?:[0-9]\.|10\.([0-9])\b)")
_RESTORED: Final = re.compile(rb"\s*=\s*@OLD_")
_HEAD_BYTES: Final = 24


class SqlDumpError(Exception):
    """The dump cannot be read; ``line`` is the place, counted from 1."""

    def __init__(self, why: str, line: int) -> None:
        super().__init__(f"line {line:,}: {why}")
        self.line = line


class SqlText:
    """The text of a dump, read from its beginning.  Raises SqlDumpError if it ends where it must not."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._data = b""
        self._at = 0
        self._lines = 1  # up to the beginning of ``_data``
        self._taken = 0  # bytes before ``_data``
        self._row_begin: int | None = None
        self._conditions = 0  # conditional comments that are open
        self.is_unfinished = False  # the dump's head promises an end that did not come yet
        self._ends_restored = False  # the settings of the session are that end

    @property
    def line(self) -> int:
        return self._lines + self._data.count(b"\n", 0, self._at)

    def error(self, why: str) -> SqlDumpError:
        return SqlDumpError(why, self.line)

    def begin_row(self) -> None:
        self._row_begin = self._taken + self._at

    def need(self, size: int) -> bool:
        """Read on until ``size`` bytes are there; return whether they are."""
        while len(self._data) - self._at < size:
            piece = next(self._pieces, None)
            if piece is None:
                return False
            if self._row_begin is not None and self._taken + self._at - self._row_begin > ROW_BYTES_MAX:
                raise self.error(f"a row has more than {ROW_BYTES_MAX:,} bytes")
            self._lines = self.line
            self._taken += self._at
            self._data = self._data[self._at :] + piece
            self._at = 0
        return True

    def peek(self) -> bytes:
        """Return the next byte."""
        if not self.need(1):
            raise self.error("the dump ends within a statement: it was cut off")
        return self._data[self._at : self._at + 1]

    def advance(self) -> None:
        self._at += 1

    def match(self, pattern: re.Pattern[bytes]) -> re.Match[bytes] | None:
        """Match ``pattern`` within the bytes that are there, and go past it."""
        found = pattern.match(self._data, self._at)
        if found is not None:
            self._at = found.end()
        return found

    def run(self, pattern: re.Pattern[bytes], most: int) -> bytes:
        """Return the longest run of ``pattern``, which may go over several pieces."""
        parts: list[bytes] = []
        size = 0
        while self.need(1):
            found = pattern.match(self._data, self._at)
            if found is None:
                break
            parts.append(found.group())
            size += len(parts[-1])
            self._at = found.end()
            if size > most:
                raise self.error(f"{parts[0][:40]!r} is too long")
            if self._at < len(self._data):
                break
        return b"".join(parts)

    def number(self) -> bytes:
        """Return the number or hexadecimal literal that is next, b"" if there is none."""
        self.need(2)  # a sign with its digit
        return self.run(_NUMBER, ROW_BYTES_MAX)

    def is_word(self) -> bool:
        return self.need(1) and _WORD.match(self._data, self._at) is not None

    def word(self) -> bytes:
        word = self.run(_WORD, WORD_BYTES_MAX)
        if not word:
            raise self.error(f"{self.peek()!r} stands where a word should")
        return word

    def word_ahead(self) -> bytes:
        """Return the next word without going past it."""
        size = 64
        self.need(size)
        found = _WORD.match(self._data, self._at)
        return found.group()[:size] if found is not None else b""

    def words(self) -> list[bytes]:
        """Return the words before a table's name, in capitals."""
        found: list[bytes] = []
        while True:
            self.skip_blanks()
            ahead = self.word_ahead().upper()
            if ahead not in _BEFORE_NAME:
                return found
            found.append(self.word().upper())

    def quoted(self, *, keep: bool = True) -> bytes:
        """Return the text between the quote that is next and its end, with its escapes resolved, or b"" to pass it."""
        quote = self.peek()
        body = _NAME_BODY if quote == b"`" else _BODIES[quote[0]]
        self.advance()
        parts: list[bytes] = []
        while True:
            found = body.match(self._data, self._at)
            if found is not None:
                if keep:
                    parts.append(found.group())
                self._at = found.end()
            if not self.need(2) and not (self.need(1) and self.peek() == quote):
                raise self.error("the dump ends within a text: it was cut off")
            if self.peek() == quote and self._data[self._at + 1 : self._at + 2] != quote:
                self.advance()
                return _resolved(b"".join(parts), quote)

    # --- passing over ------------------------------------------------------------------------------

    def skip_blanks(self) -> bool:
        """Go past blanks and comments; return False."""
        while self.need(1):
            found = _BLANK.match(self._data, self._at)
            if found is not None:
                self._at = found.end()
                continue
            if not self._is_comment():
                return False
        return False

    def _is_comment(self) -> bool:
        """Go past a comment; return whether there was one."""
        sign = self._data[self._at : self._at + 1]
        if sign == b"#":
            self._skip_after(b"\n")
            return True
        if sign not in (b"-", b"/", b"*"):
            return False
        self.need(3)
        begin = self._data[self._at : self._at + 3]
        if begin[:2] == b"--" and (len(begin) == 2 or begin[2:].isspace()):
            self._note_comment()
            self._skip_after(b"\n")
            return True
        if begin[:2] == b"*/" and self._conditions:
            self._at += 2
            self._conditions -= 1
            return True
        if begin[:2] != b"/*":
            return False
        self.need(_CONDITION_BYTES)
        condition = _CONDITION.match(self._data, self._at)
        if condition is None or int(condition[2] or 0) >= _SANDBOX:
            self._at += 2
            self._skip_after(b"*/")
        else:
            self._at = condition.end()
            self._conditions += 1
        return True

    def _note_comment(self) -> None:
        self.need(_HEAD_BYTES)
        if self._data.startswith(_ENDS, self._at):
            old = _WITHOUT_END.match(self._data, self._at)
            self._ends_restored = old is not None and old[1] is not None
            self.is_unfinished = old is None or self._ends_restored
        elif self._data.startswith(_COMPLETED, self._at):
            self.is_unfinished = False

    def note_restored(self) -> None:
        """Take the end of a dump of MySQL 4.1, if the present statement gives a setting its old value back."""
        self.need(_HEAD_BYTES)
        if self._ends_restored and _RESTORED.match(self._data, self._at):
            self.is_unfinished = False

    def _skip_after(self, end: bytes) -> None:
        while True:
            found = self._data.find(end, self._at)
            if found >= 0:
                self._at = found + len(end)
                return
            self._at = max(self._at, len(self._data) - len(end) + 1)
            if not self.need(len(end)):
                self._at = len(self._data)
                return

    def skip_statement(self) -> None:
        """Go past the semicolon that ends the statement."""
        self._row_begin = None
        while self.need(1):
            found = _SKIPPED.match(self._data, self._at)
            if found is not None:
                self._at = found.end()
                continue
            sign = self._data[self._at : self._at + 1]
            if sign in b"'\"`":
                self.quoted(keep=False)
            elif not self._is_comment():
                self.advance()
                if sign == b";":
                    return
        if self._conditions:
            raise self.error("the dump ends within a comment: it was cut off")
        raise self.error("the dump ends within a statement: it was cut off")

    def skip_delimited(self) -> None:
        """Go past the line that makes the semicolon the delimiter again."""
        begin = self.line
        self._skip_after(b"\n")
        while self.need(1):
            self.need(64)
            line = self._data[self._at : self._at + 64].partition(b"\n")[0]
            self._skip_after(b"\n")
            if line[:9].upper() == b"DELIMITER" and line[9:].strip() == b";":
                return
        raise SqlDumpError("the delimiter that is set here is never set back: the dump was cut off", begin)


def _resolved(body: bytes, quote: bytes) -> bytes:
    """Return the text that ``body`` stands for.  O(its length)."""
    if quote in body:
        if quote == b"`" or b"\\" not in body:
            return body.replace(quote * 2, quote)
        body = body.replace(quote * 2, quote)  # a run of quotes behind a backslash gives the same in both orders
    if b"\\" not in body or quote == b"`":
        return body
    return b"\\".join(_unescaped(part) for part in body.split(b"\\\\"))


def _unescaped(part: bytes) -> bytes:
    """Resolve the escapes in a text without doubled backslashes."""
    if b"\\" not in part:
        return part
    for written, meant in _ESCAPES:
        part = part.replace(written, meant)
    return _OTHER_ESCAPE.sub(rb"\1", part) if b"\\" in part else part
