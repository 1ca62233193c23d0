"""(pure) The findings of a diagnosis: what was measured, why it matters, what to do.

ok        as it should be
note      worth knowing; nothing has to be done
warning   the store works, and will be slow, lose its protection or stop working
problem   the store does not start or does not serve, or acknowledged writes are in danger
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

Level = Literal["ok", "note", "warning", "problem"]
LEVELS: Final[tuple[Level, ...]] = ("problem", "warning", "note", "ok")  # the worst first


@dataclass(frozen=True, slots=True)
class Finding:
    level: Level
    name: str  # the subject: one word or two, as in ``open files``
    text: str  # what was measured
    why: str = ""  # why it matters; empty for ok
    advice: str = ""  # what to do; empty if there is nothing to do

    def line(self) -> str:
        """Return the finding as one sentence or several."""
        more = "; ".join(filter(None, (self.why, self.advice)))
        return f"{self.text}; {more}" if more else self.text


def by_level(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings with the worst first; those of one level keep their order."""
    return sorted(findings, key=lambda one: LEVELS.index(one.level))


def count_problems(findings: Iterable[Finding]) -> int:
    return sum(one.level == "problem" for one in findings)
