"""(pure) The judge of linearizability: whether a history of concurrent calls on one object has a sequential order.

The search is Lowe's just-in-time linearization ("Testing for linearizability", 2017), as Knossos has it,
which is Wing and Gong's with memory: go through the beginnings and ends in their order and keep every
configuration that explains what was answered so far.  A configuration is a state and the calls under way
that have already taken effect in it.  A call takes effect as late as possible: when it ends, or when the end of a
different call needs its effect.  Two paths to the same configuration count as one.

A call without an answer (its server was killed) may have taken effect between its beginning and its end, or never.  Its
end is the moment at which a new process serves, after which the call cannot take effect any more.

Knows nothing of rows: ``step`` gives the answer and the next state of a call in a state.  The cost is linear in the
length of the history and exponential in the number of concurrent calls.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

MOST_CONFIGURATIONS: Final = 200_000  # at once; over it the history is left undecided, and said to be
Step = Callable[[Any, Any], tuple[Any, Hashable]]
_Configuration = tuple[Hashable, frozenset[int]]  # state, calls under way that took effect


class _NoAnswer:
    def __repr__(self) -> str:
        return "no answer"


NO_ANSWER: Final = _NoAnswer()


@dataclass(frozen=True, slots=True)
class Event:
    """One call from ``began`` to ``ended``: numbers of one clock that no two beginnings or ends share."""

    began: int
    ended: int
    call: Any
    answer: Any = NO_ANSWER
    who: str = ""

    def __str__(self) -> str:
        return f"[{self.began}..{self.ended}] {self.who} {self.call} -> {self.answer}"


@dataclass(frozen=True, slots=True)
class Judgement:
    """The result: ``stuck_at`` is the first end that no order explains, ``states`` the possible states before it."""

    is_linearizable: bool
    final_states: frozenset[Hashable] = frozenset()
    stuck_at: Event | None = None
    states: frozenset[Hashable] = frozenset()
    under_way: tuple[Event, ...] = ()
    is_decided: bool = True


class _TooMany(Exception):
    pass


def judge(
    history: Sequence[Event], step: Step, starts: Iterable[Hashable], most: int = MOST_CONFIGURATIONS
) -> Judgement:
    """Judge a history; ``starts`` are the possible states of the object before it."""
    configurations: set[_Configuration] = {(state, frozenset()) for state in starts}
    under_way: dict[int, Event] = {}
    moments = sorted((moment, n) for n, event in enumerate(history) for moment in (event.began, event.ended))
    for moment, n in moments:
        event = history[n]
        if moment == event.began:
            under_way[n] = event
            continue
        try:
            after = _end(configurations, n, under_way, step, most)
        except _TooMany:
            return Judgement(False, stuck_at=event, under_way=tuple(under_way.values()), is_decided=False)
        if not after:
            states = frozenset(state for state, _ in configurations)
            return Judgement(False, stuck_at=event, states=states, under_way=tuple(under_way.values()))
        configurations = after
        del under_way[n]
    return Judgement(True, frozenset(state for state, _ in configurations))


def _end(
    configurations: set[_Configuration], ending: int, under_way: dict[int, Event], step: Step, most: int
) -> set[_Configuration]:
    """Return the configurations that are left after call ``ending``, which is no longer among the calls under way."""
    after: set[_Configuration] = set()
    may_never_happen = under_way[ending].answer is NO_ANSWER
    seen = set(configurations)
    left = list(configurations)
    while left:
        state, done = left.pop()
        if ending in done:
            after.add((state, done - {ending}))
            continue
        if may_never_happen and (state, done) in configurations:
            after.add((state, done))
        for n, event in under_way.items():
            if n in done:
                continue
            answer, next_state = step(state, event.call)
            if event.answer is not NO_ANSWER and event.answer != answer:
                continue
            reached = (next_state, done | {n})
            if reached not in seen:
                seen.add(reached)
                left.append(reached)
        if len(seen) > most:
            raise _TooMany
    return after
