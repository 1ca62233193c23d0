"""(pure) Sets of characters: parses the syntax of ``java.util.regex`` into ranges of code points.

    [abc] [^abc] [a-z] [a[bc]] (union) [a-z&&[^b]] (intersection)   and the escapes for one or many characters

A set is a sorted list of half-open, disjoint, non-touching ranges of code points.

Knows nothing of the rest of a pattern (``columnar.model.java_patterns``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import reduce
from typing import Final

Ranges = tuple[tuple[int, int], ...]

_END: Final = 0x110000
CLASSES_DEEP: Final = 20


class ClassProblem(ValueError):
    """A set has a fault; the message has the position of the character."""


def merged(ranges: Iterable[tuple[int, int]]) -> Ranges:
    done: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if low >= high:
            continue
        if done and low <= done[-1][1]:
            done[-1] = (done[-1][0], max(high, done[-1][1]))
        else:
            done.append((low, high))
    return tuple(done)


def complement(ranges: Ranges) -> Ranges:
    edges = [0, *(edge for pair in ranges for edge in pair), _END]
    return merged(zip(edges[::2], edges[1::2], strict=True))


def intersection(a: Ranges, b: Ranges) -> Ranges:
    return complement(merged((*complement(a), *complement(b))))


def _of(text: str) -> Ranges:
    return merged((ord(c), ord(c) + 1) for c in text)


def _span(*pairs: str) -> Ranges:
    return merged((ord(pair[0]), ord(pair[1]) + 1) for pair in pairs)


_DIGIT: Final = _span("09")
_WORD: Final = merged((*_span("az", "AZ", "09"), *_of("_")))
_SPACE: Final = _of(" \t\n\v\f\r")
_HORIZONTAL: Final = merged((*_of(" \t\u00a0\u1680\u180e\u202f\u205f\u3000"), (0x2000, 0x200B)))
_VERTICAL: Final = _of("\n\v\f\r\u0085\u2028\u2029")
_ALNUM: Final = _span("az", "AZ", "09")
CLASSES: Final[dict[str, Ranges]] = {  # \p{Name}
    "Lower": _span("az"),
    "Upper": _span("AZ"),
    "ASCII": ((0, 128),),
    "Alpha": _span("az", "AZ"),
    "Digit": _DIGIT,
    "Alnum": _ALNUM,
    "Punct": _span("!/", ":@", "[`", "{~"),
    "Graph": ((33, 127),),
    "Print": ((32, 127),),
    "Blank": _of(" \t"),
    "Cntrl": ((0, 32), (127, 128)),
    "XDigit": _span("09", "af", "AF"),
    "Space": _SPACE,
}
_LETTERED: Final[dict[str, Ranges]] = {
    "d": _DIGIT,
    "w": _WORD,
    "s": _SPACE,
    "h": _HORIZONTAL,
    "v": _VERTICAL,
    "D": complement(_DIGIT),
    "W": complement(_WORD),
    "S": complement(_SPACE),
    "H": complement(_HORIZONTAL),
    "V": complement(_VERTICAL),
    "t": _of("\t"),
    "n": _of("\n"),
    "r": _of("\r"),
    "f": _of("\f"),
    "a": _of("\a"),
    "e": _of("\x1b"),
}
_CODED: Final = re.compile(
    r"\\(?:x\{([0-9a-fA-F]{1,6})\}|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|0([0-3]?[0-7]{1,2})|c([ -~]))"
)
_PROPERTY: Final = re.compile(r"\\([pP])\{(\w{1,20})\}")


def written_class(ranges: Ranges) -> str:
    """Return the set in the syntax of Python's ``re``."""
    if not ranges:
        return "(?!)"
    if len(ranges) == 1 and ranges[0][1] - ranges[0][0] == 1:
        return re.escape(chr(ranges[0][0]))
    return "[" + "".join(_written_range(low, high - 1) for low, high in ranges) + "]"


def _written_range(low: int, last: int) -> str:
    return f"\\U{low:08x}" if low == last else f"\\U{low:08x}-\\U{last:08x}"


def escape_set(java: str, at: int) -> tuple[Ranges, int]:
    """Return the characters that the escape at ``at`` stands for, and the position after the escape."""
    if found := _CODED.match(java, at):
        hexadecimal = found[1] or found[2] or found[3]
        if hexadecimal:
            code = int(hexadecimal, 16)
        else:
            code = int(found[4], 8) if found[4] else ord(found[5]) ^ 64
        if code >= _END:
            raise ClassProblem(f"no such character at character {at}")
        return ((code, code + 1),), found.end()
    if found := _PROPERTY.match(java, at):
        if found[2] not in CLASSES:
            raise ClassProblem(f"only the ASCII classes may stand in \\p{{...}}, not {found[2]}, at character {at}")
        ranges = CLASSES[found[2]]
        return (ranges if found[1] == "p" else complement(ranges)), found.end()
    c = java[at + 1 : at + 2]
    if c in _LETTERED:
        return _LETTERED[c], at + 2
    if not c or (c.isascii() and c.isalnum()):
        raise ClassProblem(f"unknown escape '\\{c}' at character {at}")
    return _of(c), at + 2


def read_class(java: str, at: int, depth: int = 0) -> tuple[Ranges, int]:
    """Return the set whose '[' is at ``at``, and the position after its ']'."""
    if depth >= CLASSES_DEEP:
        raise ClassProblem(f"sets nested deeper than {CLASSES_DEEP} at character {at}")
    start = at
    at += 1
    negated = java.startswith("^", at)
    at += negated
    operands: list[Ranges] = []  # of &&
    parts: list[tuple[int, int]] = []
    some = False
    while at < len(java):
        c = java[at]
        if c == "]" and (some or operands):
            # Java passes over an empty side of &&.
            whole = reduce(intersection, [*operands, merged(parts)] if parts else operands)
            return (complement(whole) if negated else whole), at + 1
        if java.startswith("&&", at):
            if some:
                operands.append(merged(parts))
            parts, some = [], False
            at += 2
            continue
        if c == "[":
            ranges, at = read_class(java, at, depth + 1)
        else:
            ranges, at = _one_or_range(java, at)
        parts += ranges
        some = True
    raise ClassProblem(f"the set is not closed at character {start}")


def _one_or_range(java: str, at: int) -> tuple[Ranges, int]:
    start = at
    low, at = _single(java, at)
    if not java.startswith("-", at) or java[at + 1 : at + 2] in ("]", "[", "") or _width(low) != 1:
        return low, at
    high, at = _single(java, at + 1)
    if _width(high) != 1 or high[0][0] < low[0][0]:
        raise ClassProblem(f"the range ends before it begins at character {start}")
    return ((low[0][0], high[0][1]),), at


def _width(ranges: Ranges) -> int:
    return sum(high - low for low, high in ranges)


def _single(java: str, at: int) -> tuple[Ranges, int]:
    if java[at] == "\\":
        return escape_set(java, at)
    return _of(java[at]), at + 1
