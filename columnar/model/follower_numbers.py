"""(pure) Numbers of followers: each registration gets one, no number is given twice, removed ones are recorded.

    numbers := JSON {"given": highest, "removed": [[first, last], ...]}

Stored in the catalogue (``master.trigger_rows``).

Invariants:
    I1. A number is written as given before a region bears it, so no number is given twice.
    I2. A cursor goes only when its number is recorded as removed.  The absence of a registration proves nothing: it
        may be unreadable.

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

    def with_next(self) -> Numbers:
        """Give the next number, which is ``given`` then."""
        return Numbers(self.given + 1, self.removed)

    def with_removed(self, number: int) -> Numbers:
        assert 0 < number <= self.given, "only given numbers are removed"
        if self.is_removed(number):
            return self
        spans: list[tuple[int, int]] = []
        for first, last in sorted((*self.removed, (number, number))):
            if spans and first == spans[-1][1] + 1:
                spans[-1] = (spans[-1][0], last)
            else:
                spans.append((first, last))
        return Numbers(self.given, tuple(spans))

    def is_removed(self, number: int) -> bool:
        return any(first <= number <= last for first, last in self.removed)

    def check(self) -> None:
        """The invariants of the fields, for tests."""
        ends = [end for span in self.removed for end in span]
        assert ends == sorted(ends)
        assert all(0 < first <= last <= self.given for first, last in self.removed)
        assert all(end + 1 < start for (_, end), (start, _) in zip(self.removed, self.removed[1:], strict=False))


def to_json(numbers: Numbers) -> bytes:
    return json.dumps({"given": numbers.given, "removed": numbers.removed}, sort_keys=True).encode()


def from_json(data: bytes) -> Numbers:
    """DamagedData when the bytes are none of ours."""
    try:
        held: dict[str, Any] = json.loads(data)
        spans = tuple((int(first), int(last)) for first, last in held["removed"])
        return Numbers(int(held["given"]), spans)
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedData(f"numbers of followers: {error}") from error
