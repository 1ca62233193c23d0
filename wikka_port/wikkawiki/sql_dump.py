r"""(pure) An SQL dump of MySQL or MariaDB, as rows: what mysqldump, mariadb-dump, phpMyAdmin and Adminer write.

Read are ``CREATE TABLE`` (for the names of columns), ``INSERT`` and ``REPLACE`` (rows) and ``SET NAMES`` (the character
set).  All other statements are passed over, as are comments and what stands between two ``DELIMITER`` lines (triggers
and procedures).  Conditional comments (``/*!40101 ... */``) are read as what they contain.

    value := NULL | number | 'text' | "text" | 0x4A | x'4A' | b'01' | _charset value

Values are bytes, or None for NULL.

Knows nothing of the pieces in which a dump comes (``sql_text``), of character sets beyond their names, of WikkaWiki's
tables, and of files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from wikka_port.wikkawiki.sql_text import SqlText

COLUMNS_MAX: Final = 4_096  # MySQL's own bound
DEFINITION_WORDS_MAX: Final = 400_000  # of one CREATE TABLE
TABLES_MAX: Final = 10_000

# A value that stands whole in the piece, without an escape: most are.
_SIMPLE: Final = re.compile(rb"\s*+(?:'([^'\\]*+)'|(NULL)|(-?[0-9]++(?:\.[0-9]++)?))\s*+([,)])")
_NO_COLUMNS: Final = frozenset(
    {b"PRIMARY", b"KEY", b"UNIQUE", b"INDEX", b"FULLTEXT", b"SPATIAL", b"CONSTRAINT", b"FOREIGN", b"CHECK", b"PERIOD"}
)
_MODIFIERS: Final = frozenset({b"LOW_PRIORITY", b"DELAYED", b"HIGH_PRIORITY", b"IGNORE", b"INTO"})
_SUPPORTED: Final = frozenset({"utf8", "utf8mb3", "utf8mb4", "latin1", "binary", "ascii"})


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
        self._text = SqlText(pieces)

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
        name = text.word().upper() if text.is_word() else b""
        text.note_restored()
        if name == b"NAMES":
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
            raise text.error(f"after a row stands {text.peek()!r}")
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
                body, number, end = found[1], found[3], found[4]
                values.append(number if body is None else body)  # neither: NULL
            else:
                values.append(self._value())
                text.skip_blanks()
                end = text.peek()
                if end not in b",)":
                    raise text.error(f"after a value stands {end!r}")
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
        number = self._text.number()
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
