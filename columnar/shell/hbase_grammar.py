r"""(pure) The grammar of HBase's shell, parsed without evaluating anything.

    call   :=  verb (argument ("," argument)*)?
    argument := value | pair                      pairs in a row are one hash: LIMIT => 5, VERSIONS => 3
    value  :=  text | number | name | "[" (value ("," value)*)? "]" | "{" (pair ("," pair)*)? "}"
    pair   :=  (name | text) "=>" value
    text   :=  '...' with \' and \\  |  "..." with Ruby's \xNN \n \t \r \e \0 \" \\

Values are bytes (texts and names that are no other word), ``int``, ``bool``, ``None`` (nil), lists and dicts.
Ruby's other expressions (sums, calls, variables) are not part of the grammar and raise ``NotUnderstood``.

Knows nothing of the meaning of verbs, which ``hbase_words`` knows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from columnar.limits import SHELL_NESTING

Value: TypeAlias = "bytes | int | Sequence[Value] | Mapping[str, Value] | None"

_TOKEN: Final = re.compile(
    r"""\s*(?: (?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
             | (?P<number>-?\d+(?![\w.]))
             | (?P<name>[A-Za-z_][\w:.]*)
             | (?P<sign>=>|[,\[\]{}]) )""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_WORDS: Final[Mapping[str, bool | None]] = {"true": True, "false": False, "nil": None}
_ESCAPE: Final = re.compile(rb"\\(x[0-9A-Fa-f]{1,2}|[0-7]{1,3}|.)", re.DOTALL)
_ESCAPES: Final = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"e": b"\x1b", b"a": b"\a", b"b": b"\b", b"s": b" "}
_DIGITS: Final = 19  # of a number: 64 bits


class NotUnderstood(Exception):
    """The text is no call in this grammar; the argument says at which place."""


@dataclass(frozen=True, slots=True)
class Call:
    verb: str
    arguments: tuple[Value, ...]  # a hash of bare pairs is one of them


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    place: int


def parse(text: str) -> Call:
    """Return the call that ``text`` contains.  Raises NotUnderstood if ``text`` is no call."""
    tokens = _tokens(text)
    if not tokens or tokens[0].kind != "name":
        raise NotUnderstood("it begins with no verb")
    reader = _Reader(text, tokens)
    reader.take()
    return Call(tokens[0].text, tuple(reader.arguments()))


def _tokens(text: str) -> list[_Token]:
    found, place, end = [], 0, len(text.rstrip())
    while place < end:
        match = _TOKEN.match(text, place)
        if match is None:
            raise NotUnderstood(f"'{text[place:].strip()[:20]}' is neither text in quotes, a number nor a name")
        kind = match.lastgroup or ""
        found.append(_Token(kind, match[kind], match.start(kind)))
        place = match.end()
    return found


class _Reader:
    def __init__(self, text: str, tokens: list[_Token]) -> None:
        self._text = text
        self._tokens = tokens
        self._next = 0

    def _peek(self, ahead: int = 0) -> str:
        place = self._next + ahead
        return self._tokens[place].text if place < len(self._tokens) and self._is_sign(place) else ""

    def _is_sign(self, place: int) -> bool:
        return self._tokens[place].kind == "sign"

    def take(self) -> _Token:
        if self._next == len(self._tokens):
            raise NotUnderstood("it ends too soon")
        self._next += 1
        return self._tokens[self._next - 1]

    def arguments(self) -> list[Value]:
        found: list[Value] = []
        pairs: dict[str, Value] = {}
        while self._next < len(self._tokens):
            if self._peek(1) == "=>":
                key, value = self._pair(0)
                if not pairs:
                    found.append(pairs)
                pairs[key] = value
            else:
                found.append(self._value(0))
                pairs = {}
            if self._next < len(self._tokens):
                self._expect(",")
                if self._next == len(self._tokens):
                    raise NotUnderstood("something is to follow the last comma")
        return found

    def _expect(self, sign: str) -> None:
        token = self.take()
        if token.kind != "sign" or token.text != sign:
            raise NotUnderstood(f"'{sign}' is expected before '{self._text[token.place :][:20]}'")

    def _pair(self, depth: int) -> tuple[str, Value]:
        token = self.take()
        if token.kind == "text":
            key = _text_of(token.text).decode("utf-8", "surrogateescape")
        elif token.kind == "name":
            key = token.text.upper()
        else:
            raise NotUnderstood(f"'{token.text}' is no key of a hash")
        self._expect("=>")
        return key, self._value(depth)

    def _value(self, depth: int) -> Value:
        if depth > SHELL_NESTING:
            raise NotUnderstood(f"brackets are nested more than {SHELL_NESTING} deep")
        token = self.take()
        if token.kind == "text":
            return _text_of(token.text)
        if token.kind == "number":
            if len(token.text.lstrip("-")) > _DIGITS:
                raise NotUnderstood(f"{token.text[:30]} is more than 64 bits hold")
            return int(token.text)
        if token.kind == "name":
            return _WORDS[token.text] if token.text in _WORDS else token.text.encode()
        if token.text == "[":
            return self._list(depth)
        if token.text == "{":
            return self._hash(depth)
        raise NotUnderstood(f"'{self._text[token.place :][:20]}' is no value")

    def _list(self, depth: int) -> list[Value]:
        found: list[Value] = []
        while self._peek() != "]":
            found.append(self._value(depth + 1))
            if self._peek() != "]":
                self._expect(",")
        self.take()
        return found

    def _hash(self, depth: int) -> dict[str, Value]:
        found: dict[str, Value] = {}
        while self._peek() != "}":
            key, value = self._pair(depth + 1)
            found[key] = value
            if self._peek() != "}":
                self._expect(",")
        self.take()
        return found


def _text_of(token: str) -> bytes:
    inner = token[1:-1].encode("utf-8", "surrogateescape")
    if token[0] == "'":
        return re.sub(rb"\\(['\\])", rb"\1", inner)
    return _ESCAPE.sub(_unescaped, inner)


def _unescaped(found: re.Match[bytes]) -> bytes:
    code = found[1]
    if code[:1] == b"x" and len(code) > 1:
        return bytes([int(code[1:], 16)])
    if code[:1].isdigit() and code[:1] < b"8":
        return bytes([int(code, 8) & 0xFF])
    return _ESCAPES.get(code, code)
