"""Searches by regular expressions that end: each in a bounded time, and so all of one row together.

Python's ``re`` cannot be stopped, and a pattern with two repetitions can take it time exponential in the length of a
text.  So ``re`` searches only where its time is bounded by the form of the pattern and the length of the text;
everything else is searched by the ``regex`` module: ``re``'s language and rules, in an engine that looks at the clock.
It looks at processor time, now and then: a search over its bound ends some tenths of a second later at most.

All searches for one row share ``limits.PATTERN_S`` (``begin_row``), as a filter may have many patterns.

Owned by the loop.
"""

from __future__ import annotations

import re
from time import perf_counter
from typing import Any, Final

from columnar.limits import MIB, PATTERN_S, PATTERN_S_PER_MIB

PLAIN_CHARACTERS: Final = 1_024  # of a text that ``re`` searches: the square of it is some milliseconds


class PatternProblem(ValueError):
    """Reads on after "the pattern '...'"."""


class PatternTimeout(Exception):
    """A search took more than its row had left; the message has the pattern and the bound."""


class _Clock:
    """The time of all searches for the row under way."""

    spent_s = 0.0


_clock: Final = _Clock()


def begin_row() -> None:
    """The searches from now on are those of another row."""
    _clock.spent_s = 0.0


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
        bound_s = PATTERN_S + PATTERN_S_PER_MIB * len(text) / MIB
        begun = perf_counter()
        try:
            return search(text, timeout=max(bound_s - _clock.spent_s, PATTERN_S / 100)) is not None
        except (TimeoutError, MemoryError) as error:
            text = f"the pattern '{self._java[:200]}' took more than {bound_s:.2g} s"
            raise PatternTimeout(f"{text}; write it with fewer repetitions within and beside each other") from error
        finally:
            _clock.spent_s += perf_counter() - begun


def _checked(python: str, flags: int) -> re.Pattern[str]:
    try:
        return re.compile(python, flags)
    except (re.error, OverflowError, RecursionError) as error:
        reason = getattr(error, "msg", None) or str(error)
        raise PatternProblem(f"cannot be used: {reason}") from error
