"""Searches by regular expressions in bounded time: a bound for each search, and one for all searches of a row.

Python's ``re`` cannot be interrupted, and a pattern with two repetitions may take time exponential in the length of
the text.  So ``re`` searches only if the form of the pattern and the length of the text bound its time.  All other
searches use the ``regex`` module, which has the language and rules of ``re`` and checks a clock meanwhile.
``regex`` checks processor time at intervals: a search over its bound ends at most some tenths of a second later.

All searches of one row share ``limits.PATTERN_S`` (``RowSearches``), because a filter may have many patterns; searches
for substrings in large values share it too.  A large value adds time in proportion to its length, to its own bound
and to the row's.

Owned by the loop.
"""

from __future__ import annotations

import re
from time import perf_counter, thread_time
from typing import Any, Final

from columnar.limits import MIB, PATTERN_S, PATTERN_S_PER_MIB

LARGE_BYTES: Final = 64 * 1_024  # from this size, converting a value to text costs more than searching it
PLAIN_CHARACTERS: Final = 1_024  # the longest text that ``re`` searches: quadratic time is some milliseconds


class PatternProblem(ValueError):
    """A pattern that cannot be used.  The message continues a sentence that begins with "the pattern '...'"."""


class PatternTimeout(Exception):
    """A search took longer than the time left for its row.  The message has the pattern and the bound."""


def _bound_s(characters: int) -> float:
    return PATTERN_S + PATTERN_S_PER_MIB * characters / MIB


class RowSearches:
    """The time of all searches for the current row, and its last large value as text."""

    def __init__(self) -> None:
        self.begin_row()

    def begin_row(self) -> None:
        """Start the time of a new row: later searches count for that row."""
        self._spent_s = 0.0
        self._characters = 0  # of all large values of the row
        self._begin_value(b"", "")

    def _begin_value(self, value: bytes, text: str) -> None:
        self._value = value
        self._text = text
        self._lower = ""  # empty until a search needs it
        self._value_s = 0.0  # of the searches in ``text``

    def decode(self, value: bytes) -> str:
        """Return the value as text.  A large value is converted once for all patterns that search it in succession."""
        if len(value) <= LARGE_BYTES:
            return value.decode("utf-8", "replace")
        if value is not self._value:
            self._begin_value(value, value.decode("utf-8", "replace"))
            self._characters += len(self._text)
        return self._text

    def contains(self, value: bytes, wanted: str) -> bool:
        """Tell whether the value in lower case contains ``wanted``.

        Raises PatternTimeout if the searches of the row have used up their time.
        """
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
        """Return the seconds left for a search in ``text``: by the row's bound, and by the bound of a large value."""
        left = _bound_s(max(len(text), self._characters)) - self._spent_s
        return min(left, _bound_s(len(text)) - self._value_s) if text is self._text else left


SEARCHES: Final = RowSearches()  # of this process: one loop reads rows


class BoundedPattern:
    """A pattern and its bounded searches, ``is_in`` and ``matches``; both may raise PatternTimeout."""

    __slots__ = ("_ignores_case", "_java", "_plain", "_plain_characters", "_python", "_watched")

    def __init__(self, java: str, python: str, *, ignore_case: bool, is_plain: bool) -> None:
        """Compile the pattern.  Raises PatternProblem if Python refuses the pattern.

        ``java`` is the pattern as the client wrote it, ``python`` its translation for DOTALL and ASCII.
        """
        self._java = java
        self._python = python
        self._ignores_case = ignore_case
        self._plain = _checked(python, re.DOTALL | re.ASCII | (re.IGNORECASE if ignore_case else 0))
        self._plain_characters = PLAIN_CHARACTERS if is_plain else -1  # the longest text that ``re`` may search
        self._watched: Any = None  # the pattern compiled by ``regex``, from the first need on
        if not is_plain:
            self._watch()

    def is_in(self, text: str) -> bool:
        """Tell whether the pattern matches a part of the text."""
        if len(text) <= self._plain_characters:
            return self._plain.search(text) is not None
        return self._bounded(self._watch().search, text)

    def matches(self, text: str) -> bool:
        """Tell whether the pattern matches the whole text."""
        if len(text) <= self._plain_characters:
            return self._plain.fullmatch(text) is not None
        return self._bounded(self._watch().fullmatch, text)

    def _watch(self) -> Any:
        if self._watched is None:
            import regex  # 1 MB of memory, so only when a pattern needs it

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
