"""Shapes of statements (pure): literals replaced, lists shortened, statements of one form counted as one.

    SELECT * FROM p WHERE id IN (1, 2) AND t LIKE 'a%'   ->  SELECT * FROM p WHERE id IN (?) AND t LIKE '?%'
    INSERT INTO p (a, b) VALUES (1, 'x'), (2, 'y')       ->  INSERT INTO p (a, b) VALUES (?, ?)
    SELECT * FROM p ORDER BY id LIMIT 20                 ->  SELECT * FROM p ORDER BY id LIMIT ?

A log of millions of statements has some hundred shapes.  A pattern of LIKE keeps its ``%`` at either end, because a
beginning can be scanned for and a middle cannot.  LIMIT 1 at the end of a statement stays: a row is no page of rows.

Bounds: ``SHAPES`` different ones are kept, each of ``SHAPE_CHARS`` at most; ``CONNECTIONS`` open transactions of
``STEPS`` shapes; ``TRANSACTIONS`` different ones.

Invariants:
    S1. The counts of all shapes and ``beyond`` together are the number of statements that were counted.
    S2. A shape has no literal of a statement but LIMIT 1: no text and no number of anybody.

Knows nothing of the meaning of a statement, nor of logs.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from typing import Final

SHAPES: Final = 10_000
SHAPE_CHARS: Final = 8_192
CONNECTIONS: Final = 1_000
STEPS: Final = 50
TRANSACTIONS: Final = 1_000
CUT: Final = " ... (cut)"  # at the end of a shape that was longer

_STRING: Final = r"'(?:[^'\\]++|\\.|'')*+(?:'|\Z)"
_QUOTED: Final = r'"(?:[^"\\]++|\\.|"")*+(?:"|\Z)'
_LITERALS: Final = (
    r"(?P<note>/\*(?!!).*?(?:\*/|\Z)|/\*!\d*|\*/|--(?=\s|\Z)[^\n]*|\#[^\n]*)"
    r"|(?P<like>\bLIKE\s+(?:BINARY\s+)?)(?P<pattern>{literal})"
    r"|(?P<name>`[^`]*(?:`|\Z){names})"
    r"|(?P<literal>\b[NXB]?(?:{literal})|\b_utf8(?:mb4)?\s*(?:{literal})|(?:{literal}))"
    r"|(?P<number>(?<![\w.$@])(?:0x[0-9a-f]+|\d+(?:\.\d*)?(?:e[+-]?\d+)?|\.\d+(?:e[+-]?\d+)?)\b)"
    r"|(?P<null>(?<!\bIS )(?<!\bNOT )\bNULL\b)"
)


def _token(*, is_quoted_name: bool) -> re.Pattern[str]:
    literal = _STRING if is_quoted_name else f"{_STRING}|{_QUOTED}"
    names = '|"[^"]*(?:"|\\Z)' if is_quoted_name else ""
    return re.compile(_LITERALS.format(literal=literal, names=names), re.I | re.S)


_MYSQL: Final = _token(is_quoted_name=False)
_STANDARD: Final = _token(is_quoted_name=True)
_EASY_MYSQL: Final = re.compile(rf"{_STRING}|{_QUOTED}|(?<![\w.$@])\d+(?:\.\d+)?+\b(?!\.)", re.S)
_EASY_STANDARD: Final = re.compile(rf"{_STRING}|(?<![\w.$@])\d+(?:\.\d+)?+\b(?!\.)", re.S)
_NUMBER_LEFT: Final = re.compile(r"(?<![\w.$@])\.?\d")
_NOTE: Final = re.compile(r"/\*(?!!)[^*]*+\*/")
# after any of these the whole grammar decides: notes, patterns, N'text', x'ff', b'1'
_HARD: Final = ("--", "#", "/*", "like", "n?", "x?", "b?", "_utf8")
_SIGN: Final = re.compile(r"(?<=[(,=<>+*/-]) ?[-+] ?\?|(?<=\b(?:IN|BY|OR) )-\?", re.I)
_LIST: Final = re.compile(r"\bIN ?\( ?\?(?: ?, ?\?)*+ ?\)", re.I)
_ROW: Final = r"\((?:[^()]++|\((?:[^()]++|\([^()]*\))*+\))*+\)"
_ROWS: Final = re.compile(rf"(\bVALUES? ?{_ROW})(?: ?, ?{_ROW})++", re.I)
_ONE: Final = re.compile(r"\bLIMIT\s+1[\s;]*\Z", re.I)
_BEGIN: Final = re.compile(r"(?:BEGIN\b|START TRANSACTION\b|SET (?:SESSION )?@{0,2}autocommit ?= ?\?)", re.I)
_END: Final = re.compile(r"(?:COMMIT|ROLLBACK)\b(?! TO\b)", re.I)
_WRITE: Final = re.compile(r"(?:INSERT|UPDATE|DELETE|REPLACE)\b", re.I)


def _replaced(match: re.Match[str]) -> str:
    kind = match.lastgroup
    if kind == "name":
        return match[0]
    if kind == "note":
        return " "
    if kind == "pattern":
        return f"{match['like'].rstrip()} {_pattern(match['pattern'])}"
    return "?"


def _pattern(literal: str) -> str:
    text = literal[1:-1]
    begins, ends = text[:1] in ("%", "_"), text.endswith("%")
    inner = text.strip("%")
    within = "%" in inner.replace("\\%", "") and not begins
    return f"'{'%' if begins else ''}?{'%' if ends or within else ''}'"


def has_quoted_names(dialect: str) -> bool:
    """Whether ``"x"`` is a name, as in standard SQL, or a text, as in MySQL."""
    return dialect not in ("mysql", "bigquery", "hive", "spark")


def without_easy_literals(statement: str, *, is_quoted_name: bool) -> str:
    """Replace plain texts and numbers, in some microseconds; an empty string if ``shape_of`` must read the statement.

    The result is equal for statements that differ in such literals alone.
    """
    if is_quoted_name and '"' in statement:
        return ""
    easy = (_EASY_STANDARD if is_quoted_name else _EASY_MYSQL).sub("?", statement)
    if "/*" in easy:
        easy = _NOTE.sub(" ", easy)  # of MediaWiki's statements each has one
    lower = easy.lower()
    if any(part in lower for part in _HARD) or _NUMBER_LEFT.search(easy):
        return ""
    if "`" in statement and _has_strange_name(statement):
        return ""
    return f"{easy} 1" if statement[-1:] in "1;\n " and _ONE.search(statement) else easy


def _has_strange_name(statement: str) -> bool:
    return not all(name.isidentifier() for name in statement.split("`")[1::2])


def shape_of(statement: str, *, dialect: str = "mysql") -> str:
    """Return the shape, on one line; an empty string for a statement without words."""
    pattern = _STANDARD if has_quoted_names(dialect) else _MYSQL
    text = " ".join(pattern.sub(_replaced, statement).split()).rstrip("; ")
    text = _SIGN.sub(lambda at: " ?" if at[0].startswith(" ") else "?", text)
    text = _ROWS.sub(r"\1", _LIST.sub("IN (?)", text))
    if _ONE.search(statement) and text.endswith("?"):
        text = f"{text[:-1]}1"
    return text if len(text) <= SHAPE_CHARS else text[: SHAPE_CHARS - len(CUT)] + CUT


class ShapeCounts:
    """Counts of shapes, and of the sets of shapes that write in one transaction.

    Belongs to one thread.
    """

    def __init__(self, *, dialect: str = "mysql", most: int = SHAPES) -> None:
        self._dialect, self._most = dialect, most  # constant
        self._is_quoted_name = has_quoted_names(dialect)  # constant
        self._known: dict[str, str] = {}  # statement without easy literals -> key
        self._texts: dict[str, str] = {}  # lower case without quotes -> as it was written
        self._counts: dict[str, int] = {}
        self._open: OrderedDict[str, list[str]] = OrderedDict()  # connection -> keys of shapes
        self._transactions: dict[tuple[str, ...], int] = {}
        self.beyond = 0
        self.empty = 0  # statements without words

    def add_statement(self, statement: str, *, connection: str = "", weight: int = 1) -> None:
        easy = without_easy_literals(statement, is_quoted_name=self._is_quoted_name)
        key = self._known.get(easy, "")
        if not key:
            text = shape_of(statement, dialect=self._dialect)
            if not text:
                self.empty += weight
                return
            key = text.replace("`", "").lower()
            if easy and len(easy) <= SHAPE_CHARS and len(self._known) < SHAPES:
                self._known[easy] = key
            if key in self._counts or len(self._counts) < self._most:
                self._texts[key] = min(text, self._texts.get(key, text))  # whatever the order of the log
        if key not in self._counts and len(self._counts) >= self._most:
            self.beyond += weight
            return
        self._counts[key] = self._counts.get(key, 0) + weight
        if weight:
            self._follow_transaction(key, connection)

    def _follow_transaction(self, key: str, connection: str) -> None:
        steps = self._open.get(connection)
        if _BEGIN.match(key):
            self._open[connection] = []
            self._open.move_to_end(connection)
            if len(self._open) > CONNECTIONS:
                self._open.popitem(last=False)
        elif _END.match(key):
            if steps and key.startswith("commit"):
                self._note_transaction(tuple(sorted(set(steps))))
            if steps is not None:
                steps.clear()
                if "begin" in key:  # pragma: no cover - COMMIT AND CHAIN is written by hardly anybody
                    return
        elif steps is not None and _WRITE.match(key) and len(steps) < STEPS and key not in steps:
            steps.append(key)

    def _note_transaction(self, steps: tuple[str, ...]) -> None:
        if steps in self._transactions or len(self._transactions) < TRANSACTIONS:
            self._transactions[steps] = self._transactions.get(steps, 0) + 1

    @property
    def statements(self) -> int:
        """How many were counted, of shapes that are kept."""
        return sum(self._counts.values())

    def shapes(self) -> list[tuple[str, int]]:
        """Return text and count of each, the most frequent first."""
        return sorted(
            ((self._texts[key], count) for key, count in self._counts.items()), key=lambda one: (-one[1], one)
        )

    def transactions(self) -> list[tuple[tuple[str, ...], int]]:
        """Return the texts of the shapes of each set, and its count, the most frequent first."""
        found = [(tuple(self._texts[key] for key in keys), count) for keys, count in self._transactions.items()]
        return sorted(found, key=lambda one: (-one[1], one))
