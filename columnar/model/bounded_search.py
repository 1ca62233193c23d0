"""Searches by regular expressions that end: each in a bounded time, and so all of one row together.

Python's ``re`` cannot be stopped, and a pattern with two repetitions can take it time exponential in the length of a
text.  So ``re`` searches only if its time is bounded by the form of the pattern and the length of the text;
everything else is searched by the ``regex`` module: ``re``'s language and rules, in an engine that checks the clock.
It checks processor time, now and then: a search over its bound ends some tenths of a second later at most.

All searches for one row share ``limits.PATTERN_S`` (``RowSearches``), as a filter may have many patterns; so do the
searches for substrings in large values.  Each large value has more time by its length, and the row by all of them.

Owned by the loop.
"""

from __future__ import annotations

import re
from time import perf_counter, thread_time
from typing import Any, Final

from columnar.limits import MIB, PATTERN_S, PATTERN_S_PER_MIB

LARGE_BYTES: Final = 64 * 1_024  # of a value whose conversion to text costs more than a search in it
PLAIN_CHARACTERS: Final = 1_024  # of a text that ``re`` searches: the square of it is some milliseconds


class PatternProblem(ValueError):
    """Reads on after "the pattern '...'"."""


class PatternTimeout(Exception):
    """A search took more than its row had left; the message has the pattern and the bound."""


def _bound_s(characters: int) -> float:
    return PATTERN_S + PATTERN_S_PER_MIB * characters / MIB


class RowSearches:
    """The time of all searches for the current row, and its last large value as text."""

    def __init__(self) -> None:
        self.begin_row()

    def begin_row(self) -> None:
        """Count the searches from now on as those of another row."""
        self._spent_s = 0.0
        self._characters = 0  # of all large values of the row
        self._begin_value(b"", "")

    def _begin_value(self, value: bytes, text: str) -> None:
        self._value = value
        self._text = text
        self._lower = ""  # empty: it was not wanted yet
        self._value_s = 0.0  # of the searches in ``text``

    def decode(self, value: bytes) -> str:
        """Return the value as text; a large one is converted once for all patterns that search it in succession."""
        if len(value) <= LARGE_BYTES:
            return value.decode("utf-8", "replace")
        if value is not self._value:
            self._begin_value(value, value.decode("utf-8", "replace"))
            self._characters += len(self._text)
        return self._text

    def contains(self, value: bytes, wanted: str) -> bool:
        """Whether the value, in lower case, has ``wanted`` in it.  PatternTimeout: the row's searches take too long."""
        if len(value) <= LARGE_BYTES:
            return wanted in value.decode("utf-8", "replace").lower()
        begun = thread_time()
        text = self.decode(value)
        self._lower = self._lower or text.lower()
        found = wanted in self._lower
        self.spend(thread_time() - begun)
        if self.left_s(text) < 0:
            which = f"the search for '{wanted[:200]}', with those before it in the row,"
            raise PatternTimeout(f"{which} took more than {_bound_s(len(text)):.2g} s; compare with fewer texts")
        return found

    def spend(self, seconds: float) -> None:
        self._spent_s += seconds
        self._value_s += seconds

    def left_s(self, text: str) -> float:
        """Return the seconds that the bound of the row leaves, and that of a large value."""
        left = _bound_s(max(len(text), self._characters)) - self._spent_s
        return min(left, _bound_s(len(text)) - self._value_s) if text is self._text else left


SEARCHES: Final = RowSearches()  # of this process: one loop reads rows


class BoundedPattern:
    """A pattern and its bounded searches.  PatternTimeout of both."""

    __slots__ = ("_ignores_case", "_java", "_plain", "_plain_characters", "_python", "_watched")

    def __init__(self, java: str, python: str, *, ignore_case: bool, is_plain: bool) -> None:
        """``java``: as it was written; ``python``: with DOTALL and ASCII.  PatternProblem where Python refuses it."""
        self._java = java
        self._python = python
        self._ignores_case = ignore_case
        self._plain = _checked(python, re.DOTALL | re.ASCII | (re.IGNORECASE if ignore_case else 0))
        self._plain_characters = PLAIN_CHARACTERS if is_plain else -1  # of a text that ``re`` may search
        self._watched: Any = None  # the pattern of ``regex``, once it is needed
        if not is_plain:
            self._watch()

    def is_in(self, text: str) -> bool:
        """Whether it matches a part of the text."""
        if len(text) <= self._plain_characters:
            return self._plain.search(text) is not None
        return self._bounded(self._watch().search, text)

    def matches(self, text: str) -> bool:
        """Whether it matches the whole text."""
        if len(text) <= self._plain_characters:
            return self._plain.fullmatch(text) is not None
        return self._bounded(self._watch().fullmatch, text)

    def _watch(self) -> Any:
        if self._watched is None:
            import regex  # 1 MB, by the first pattern that needs it

            try:
                flags = regex.DOTALL | regex.ASCII | (regex.IGNORECASE if self._ignores_case else 0)
                self._watched = regex.compile(self._python, flags)
            except (regex.error, OverflowError, RecursionError, MemoryError) as error:
                raise PatternProblem(f"cannot be used: {getattr(error, 'msg', None) or error}") from error
        return self._watched

    def _bounded(self, search: Any, text: str) -> bool:
        begun = perf_counter()
        try:
            return search(text, timeout=max(SEARCHES.left_s(text), PATTERN_S / 100)) is not None
        except (TimeoutError, MemoryError) as error:
            bound_s = _bound_s(len(text))
            text = f"the pattern '{self._java[:200]}' took more than {bound_s:.2g} s"
            raise PatternTimeout(f"{text}; write it with fewer repetitions within and beside each other") from error
        finally:
            SEARCHES.spend(perf_counter() - begun)


def _checked(python: str, flags: int) -> re.Pattern[str]:
    try:
        return re.compile(python, flags)
    except (re.error, OverflowError, RecursionError) as error:
        reason = getattr(error, "msg", None) or str(error)
        raise PatternProblem(f"cannot be used: {reason}") from error
