r"""(pure) An SQL dump of MySQL or MariaDB, as rows: what mysqldump, mariadb-dump, phpMyAdmin and Adminer write.

Read are ``CREATE TABLE`` (for the names of columns), ``INSERT`` and ``REPLACE`` (rows) and ``SET NAMES`` (the character
set).  All other statements are passed over, as are comments and what stands between two ``DELIMITER`` lines (triggers
and procedures).  Conditional comments (``/*!40101 ... */``) are read as what they contain.

    value := NULL | number | 'text' | "text" | 0x4A | x'4A' | b'01' | _charset value

Inside text ``\n`` and its like, ``\\``, ``\'`` and doubled quotes are resolved; ``\%`` and ``\_`` stay two characters,
as MySQL reads them.  Values are bytes, or None for NULL.

The dump is read in pieces of any size.  Memory is bounded by ROW_BYTES_MAX and one piece.  Each byte is matched a
bounded number of times, whatever the pieces are.

Knows nothing of character sets beyond their names, of WikkaWiki's tables, and of files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

ROW_BYTES_MAX: Final = 64 * 1024 * 1024  # of one row as it stands in the dump; a MEDIUMTEXT has 16 MiB, twice escaped
WORD_BYTES_MAX: Final = 1_024  # of a keyword, a name or a number
COLUMNS_MAX: Final = 4_096  # MySQL's own bound
DEFINITION_WORDS_MAX: Final = 400_000  # of one CREATE TABLE
TABLES_MAX: Final = 10_000

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
# A value that stands whole in the piece, without an escape: most are.
_SIMPLE: Final = re.compile(rb"\s*+(?:'([^'\\]*+)'|(NULL)|(-?[0-9]++(?:\.[0-9]++)?))\s*+([,)])")
_SKIPPED: Final = re.compile(rb"[^'\"`;#/*\-]++")
_ESCAPES: Final = ((b"\\n", b"\n"), (b"\\'", b"'"), (b'\\"', b'"'), (b"\\r", b"\r"), (b"\\t", b"\t"), (b"\\0", b"\0"),
                   (b"\\Z", b"\x1a"), (b"\\b", b"\b"))  # fmt: skip
_OTHER_ESCAPE: Final = re.compile(rb"\\([^%_])", re.DOTALL)
_NO_COLUMNS: Final = frozenset(
    {b"PRIMARY", b"KEY", b"UNIQUE", b"INDEX", b"FULLTEXT", b"SPATIAL", b"CONSTRAINT", b"FOREIGN", b"CHECK", b"PERIOD"}
)
_BEFORE_NAME: Final = frozenset({b"OR", b"REPLACE", b"TEMPORARY", b"TABLE", b"IF", b"NOT", b"EXISTS"})
_MODIFIERS: Final = frozenset({b"LOW_PRIORITY", b"DELAYED", b"HIGH_PRIORITY", b"IGNORE", b"INTO"})
_ENDS: Final = (b"-- MySQL dump", b"-- MariaDB dump")  # the tools that write "-- Dump completed" at the end
_COMPLETED: Final = b"-- Dump completed"
_SUPPORTED: Final = frozenset({"utf8", "utf8mb3", "utf8mb4", "latin1", "binary", "ascii"})


class SqlDumpError(Exception):
    """The dump cannot be read; ``line`` is the place, counted from 1."""

    def __init__(self, why: str, line: int) -> None:
        super().__init__(f"line {line:,}: {why}")
        self.line = line


@dataclass(frozen=True, slots=True)
class Row:
    table: str
    columns: tuple[str, ...]
    values: tuple[bytes | None, ...]


class SqlDump:
    """Iterates over the rows of the tables that ``is_wanted`` accepts; others are passed over quickly."""

    def __init__(self, pieces: Iterable[bytes], is_wanted: Callable[[str], bool] = lambda table: True) -> None:
        self.columns: dict[str, tuple[str, ...]] = {}  # of the tables that the dump makes
        self.charset = ""  # of SET NAMES; "": the dump names none
        self._is_wanted = is_wanted
        self._text = _Pieces(pieces)

    @property
    def line(self) -> int:
        return self._text.line

    def __iter__(self) -> Iterator[Row]:
        """Yield the rows.  Raises SqlDumpError."""
        text = self._text
        while True:
            text.skip_blanks()
            if not text.need(1):
                break
            word = text.word().upper() if text.is_word() else b""
            if word in (b"INSERT", b"REPLACE"):
                yield from self._insert()
            elif word == b"CREATE":
                self._create()
            elif word == b"SET":
                self._set()
            elif word == b"DELIMITER":
                text.skip_delimited()
            else:
                text.skip_statement()
        if text.is_unfinished:
            raise text.error("the dump ends before its last line “-- Dump completed”: it was cut off")

    # --- statements --------------------------------------------------------------------------------

    def _set(self) -> None:
        text = self._text
        text.skip_blanks()
        if text.is_word() and text.word().upper() == b"NAMES":
            text.skip_blanks()
            named = text.quoted() if text.peek() in b"'\"" else text.word()
            charset = named.decode("ascii", "replace").lower()
            if charset not in _SUPPORTED:
                raise text.error(
                    f"the dump is in the character set {charset[:40]!r}. Make it again with "
                    "--default-character-set=utf8mb4"
                )
            self.charset = charset
        text.skip_statement()

    def _create(self) -> None:
        """Take the names of a table's columns."""
        text = self._text
        words = text.words()
        if b"TABLE" not in words:
            text.skip_statement()
            return
        table = self._name()
        text.skip_blanks()
        if text.peek() != b"(":
            text.skip_statement()  # CREATE TABLE ... LIKE
            return
        if table in self.columns:
            raise text.error(f"the table {table!r} is made twice. Give a dump of one database alone")
        if len(self.columns) >= TABLES_MAX:
            raise text.error(f"there are more than {TABLES_MAX:,} tables")
        self.columns[table] = tuple(self._definitions())
        text.skip_statement()

    def _definitions(self) -> Iterator[str]:
        """Yield the first name of each definition between the parentheses of a CREATE TABLE."""
        text = self._text
        depth, is_first = 0, False
        for _ in range(DEFINITION_WORDS_MAX):
            text.skip_blanks()
            sign = text.peek()
            if is_first:
                is_first = False
                if sign in b'`"':
                    yield text.quoted().decode("utf-8", "replace")
                    continue
                word = text.word()
                if word.upper() not in _NO_COLUMNS:
                    yield word.decode("utf-8", "replace")
                continue
            if sign in b"'\"`":
                text.quoted()
                continue
            if text.is_word():
                text.word()
                continue
            text.advance()
            depth += (sign == b"(") - (sign == b")")
            is_first = depth == 1 and sign in b"(,"
            if depth == 0:
                return
        raise text.error("a table has too many definitions")

    def _insert(self) -> Iterator[Row]:
        text = self._text
        while text.skip_blanks() or text.is_word():
            if text.word_ahead().upper() not in _MODIFIERS:
                break
            text.word()
        table = self._name()
        if not self._is_wanted(table):
            text.skip_statement()
            return
        text.skip_blanks()
        listed = self._column_list() if text.peek() == b"(" else None
        text.skip_blanks()
        if not text.is_word() or text.word().upper() not in (b"VALUES", b"VALUE"):
            raise text.error(f"rows of {table!r} without VALUES: this is no dump")
        columns = listed or self.columns.get(table)
        if columns is None:
            raise text.error(f"rows of {table!r} come before its CREATE TABLE, and name no columns")
        while True:
            values = self._values()
            if len(values) != len(columns):
                raise text.error(f"a row of {table!r} has {len(values)} values and {len(columns)} columns")
            yield Row(table, columns, values)
            text.skip_blanks()
            if text.peek() != b",":
                break
            text.advance()
        if text.peek() != b";" and not text.is_word():
            raise text.error(f"behind a row stands {text.peek()!r}")
        text.skip_statement()

    def _name(self) -> str:
        """Return a table's name, without that of its database."""
        text = self._text
        while True:
            text.skip_blanks()
            is_quoted = text.peek() in b'`"'
            name = text.quoted() if is_quoted else text.word()
            if text.need(1) and text.peek() == b".":
                text.advance()
                continue
            return (name if is_quoted else name.rpartition(b".")[2]).decode("utf-8", "replace")

    def _column_list(self) -> tuple[str, ...]:
        text = self._text
        names: list[str] = []
        while len(names) <= COLUMNS_MAX:
            text.advance()  # the parenthesis, or a comma
            names.append(self._name())
            text.skip_blanks()
            if text.peek() == b")":
                text.advance()
                return tuple(names)
            if text.peek() != b",":
                break
        raise text.error("a list of columns that does not end")

    # --- values ------------------------------------------------------------------------------------

    def _values(self) -> tuple[bytes | None, ...]:
        text = self._text
        text.skip_blanks()
        if text.peek() != b"(":
            raise text.error(f"a row begins with {text.peek()!r} in the place of a parenthesis")
        text.advance()
        text.begin_row()
        values: list[bytes | None] = []
        while len(values) <= COLUMNS_MAX:
            found = text.match(_SIMPLE)
            if found is not None:
                body, null, number, end = found
                values.append(None if null is not None else number if body is None else body)
            else:
                values.append(self._value())
                text.skip_blanks()
                end = text.peek()
                if end not in b",)":
                    raise text.error(f"behind a value stands {end!r}")
                text.advance()
            if end == b")":
                return tuple(values)
        raise text.error("a row with too many values")

    def _value(self) -> bytes | None:
        text = self._text
        text.skip_blanks()
        sign = text.peek()
        if sign in b"'\"":
            return text.quoted()
        if sign in b"-+" or sign.isdigit():
            return self._number()
        word = text.word()
        if word.upper() == b"NULL":
            return None
        if text.need(1) and text.peek() == b"'" and word in (b"x", b"X", b"b", b"B"):
            return self._digits(text.quoted(), 16 if word in b"xX" else 2)
        if word.startswith(b"_"):
            return self._value()
        raise text.error(f"{word[:40]!r} is no value")

    def _number(self) -> bytes:
        self._text.need(2)  # a sign with its digit
        number = self._text.run(_NUMBER, ROW_BYTES_MAX)
        if not number:
            raise self._text.error("a sign without a number")
        if number[:2] in (b"0x", b"0X"):
            return self._digits(number[2:], 16)
        if number[:2] == b"0b":
            return self._digits(number[2:], 2)
        return number

    def _digits(self, digits: bytes, base: int) -> bytes:
        try:
            if base == 16:
                return bytes.fromhex(("0" if len(digits) % 2 else "") + digits.decode("ascii"))
            return int(digits, 2).to_bytes(8, "big")  # BIT has 64 at most
        except (ValueError, OverflowError):
            raise self._text.error(f"{digits[:40]!r} are no digits") from None


class _Pieces:
    """A place in the dump's bytes.  Raises SqlDumpError if the dump ends where it must not."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._data = b""
        self._at = 0
        self._lines = 1  # up to the beginning of ``_data``
        self._taken = 0  # bytes before ``_data``
        self._row_begin: int | None = None
        self._conditions = 0  # conditional comments that are open
        self.is_unfinished = False  # the dump's head promises an end that did not come yet

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

    def match(self, pattern: re.Pattern[bytes]) -> tuple[bytes, ...] | None:
        """Return the groups of ``pattern`` if it matches within the bytes that are there, and go behind it."""
        found = pattern.match(self._data, self._at)
        if found is None:
            return None
        self._at = found.end()
        return found.groups()

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

    def is_word(self) -> bool:
        return self.need(1) and _WORD.match(self._data, self._at) is not None

    def word(self) -> bytes:
        word = self.run(_WORD, WORD_BYTES_MAX)
        if not word:
            raise self.error(f"{self.peek()!r} stands where a word should")
        return word

    def word_ahead(self) -> bytes:
        """Return the next word without going behind it."""
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
        """Go behind blanks and comments; return False."""
        while self.need(1):
            found = _BLANK.match(self._data, self._at)
            if found is not None:
                self._at = found.end()
                continue
            if not self._is_comment():
                return False
        return False

    def _is_comment(self) -> bool:
        """Go behind a comment; return whether there was one."""
        sign = self._data[self._at : self._at + 1]
        if sign == b"#":
            self._skip_behind(b"\n")
            return True
        if sign not in (b"-", b"/", b"*"):
            return False
        self.need(3)
        begin = self._data[self._at : self._at + 3]
        if begin[:2] == b"--" and (len(begin) == 2 or begin[2:].isspace()):
            self._note_comment()
            self._skip_behind(b"\n")
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
            self._skip_behind(b"*/")
        else:
            self._at = condition.end()
            self._conditions += 1
        return True

    def _note_comment(self) -> None:
        self.need(len(_COMPLETED))
        if self._data.startswith(_ENDS, self._at):
            self.is_unfinished = True
        elif self._data.startswith(_COMPLETED, self._at):
            self.is_unfinished = False

    def _skip_behind(self, end: bytes) -> None:
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
        """Go behind the semicolon that ends the statement."""
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
        """Go behind the line that makes the semicolon the delimiter again."""
        begin = self.line
        self._skip_behind(b"\n")
        while self.need(1):
            self.need(64)
            line = self._data[self._at : self._at + 64].partition(b"\n")[0]
            self._skip_behind(b"\n")
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
