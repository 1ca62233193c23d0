"""Two endpoints, one session: every call to both, every answer held against the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from tests.differential.answers import Answer
from tests.differential.calls import Call
from tests.differential.documented import Documented


class Answering(Protocol):
    """An endpoint, or a recording of one."""

    def run(self, call: Call) -> Answer: ...


@dataclass(frozen=True, slots=True)
class Difference:
    number: int  # of the call, from 0
    call: Call
    reference: Answer
    ours: Answer

    def __str__(self) -> str:
        return f"call {self.number}: {self.call}\n    reference {self.reference}\n    ours      {self.ours}"


@dataclass(slots=True)
class Found:
    calls: Counter[str] = field(default_factory=Counter)  # by kind
    refused: Counter[str] = field(default_factory=Counter)  # by kind: answered with an error by both
    documented: Counter[str] = field(default_factory=Counter)  # by paragraph
    differences: list[Difference] = field(default_factory=list)


def compare(
    calls: Iterable[Call],
    reference: Answering,
    ours: Answering,
    *,
    strict: bool = False,
    most: int = 10,
    after_each: Callable[[], None] = lambda: None,
) -> Found:
    """``strict``: both are ours, no difference is documented.  Ends at the ``most``-th difference."""
    found, documented = Found(), Documented()
    for number, call in enumerate(calls):
        expected, got = reference.run(call), ours.run(call)
        found.calls[call.kind] += 1
        if expected == got:
            found.refused[call.kind] += expected[0] == "error"
        else:
            name = None if strict else documented.name(call, expected, got)
            if name is None:
                found.differences.append(Difference(number, call, expected, got))
                if len(found.differences) >= most:
                    break
            else:
                found.documented[name] += 1
        after_each()
    return found
