"""(pure) Numbers of followers: each registration gets one, no number is given twice, removed ones are recorded.

    numbers := JSON {"given": highest, "removed": [[first, last], ...], "beginning": number | 0}

Stored in the row ``#numbers`` of ``columnar:triggers``, column ``info:numbers``; ``#`` begins no trigger's name.

Invariants:
    I1. A number is written as given before anything on disk bears it, so no number is given twice.
    I2. A cursor goes only when its number is recorded as removed.  The absence of a registration proves nothing: it
        may be unreadable.
    I3. ``beginning`` is the one number whose registration may be half made.  A start that finds no registration with
        it removes it.

Knows nothing of tables, cursors and disks.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from columnar.errors import DamagedData


@dataclass(frozen=True, slots=True)
class Numbers:
    given: int = 0  # the highest
    removed: tuple[tuple[int, int], ...] = ()  # spans, first and last inclusive, ascending, never adjacent
    beginning: int = 0  # 0: none

    def begun(self) -> Numbers:
        """Give the next number, which is ``beginning`` then.  The number that was still beginning is removed."""
        settled = self.with_removed(self.beginning) if self.beginning else self
        return Numbers(settled.given + 1, settled.removed, settled.given + 1)

    def made(self) -> Numbers:
        """The registration that was beginning is on disk."""
        return Numbers(self.given, self.removed, 0)

    def with_removed(self, number: int) -> Numbers:
        assert 0 < number <= self.given, "only given numbers are removed"
        beginning = 0 if number == self.beginning else self.beginning
        if self.is_removed(number):
            return Numbers(self.given, self.removed, beginning)
        spans: list[tuple[int, int]] = []
        for first, last in sorted((*self.removed, (number, number))):
            if spans and first == spans[-1][1] + 1:
                spans[-1] = (spans[-1][0], last)
            else:
                spans.append((first, last))
        return Numbers(self.given, tuple(spans), beginning)

    def is_removed(self, number: int) -> bool:
        return any(first <= number <= last for first, last in self.removed)

    def check(self) -> None:
        """The invariants of the fields, for tests."""
        ends = [end for span in self.removed for end in span]
        assert ends == sorted(ends)
        assert all(0 < first <= last <= self.given for first, last in self.removed)
        assert all(end + 1 < start for (_, end), (start, _) in zip(self.removed, self.removed[1:], strict=False))
        assert 0 <= self.beginning <= self.given
        assert not self.is_removed(self.beginning)


def to_json(numbers: Numbers) -> bytes:
    held = {"given": numbers.given, "removed": numbers.removed, "beginning": numbers.beginning}
    return json.dumps(held, sort_keys=True).encode()


def from_json(data: bytes) -> Numbers:
    """DamagedData when the bytes are none of ours."""
    try:
        held: dict[str, Any] = json.loads(data)
        spans = tuple((int(first), int(last)) for first, last in held["removed"])
        return Numbers(int(held["given"]), spans, int(held["beginning"]))
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedData(f"numbers of followers: {error}") from error
