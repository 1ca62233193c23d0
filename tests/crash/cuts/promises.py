"""(pure) The promises at a cut, and the check that they were kept.

The states of each row, and of each table (as a row without a name), are known in their order.  At a cut a row must be
in its last acknowledged state, or in the next one, which was under way: in no older state, no mixture of two, and no
state that was never written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.crash.cuts.recording import Recording
from tests.crash.cuts.workload import AUDIT, GONE, THERE, State

SYSTEM: Final = b"columnar:"
_Steps = list[tuple[int, State]]  # (event at which it was acknowledged, what it is from then on)
Tables = Mapping[bytes, Mapping[bytes, Mapping[bytes, bytes]]]


class Promises:
    def __init__(self, recording: Recording) -> None:
        self._steps: dict[tuple[bytes, bytes], _Steps] = {}
        answered = sorted(zip(recording.acknowledged, recording.calls, strict=True), key=lambda one: one[0])
        for event, call in answered:  # about one row whoever asks waits for each answer, over which connection ever
            for key, state in call.changes:
                self._steps.setdefault(key, [(0, GONE)]).append((event, state))

    def broken(self, tables: Tables, cut: int, unseen: tuple[bytes, ...] = ()) -> list[str]:
        """Return a line for each broken promise, except of tables whose names begin with ``unseen``."""
        wrong = []
        for (table, row), steps in self._steps.items():
            if unseen and table.startswith(unseen):
                continue
            allowed = _allowed(steps, cut)
            if row == b"":
                found = THERE if table in tables else GONE
            elif table in tables:
                found = tuple(sorted(tables[table].get(row, {}).items()))
            else:
                continue  # the table itself is looked at
            if found not in allowed:
                wrong.append(f"{table.decode()} {row.decode()}: {_shown(found)}; {_why(found, steps, allowed)}")
        for table, rows in tables.items():
            if not table.startswith(SYSTEM) and table != AUDIT:
                strange = [row for row in rows if (table, row) not in self._steps and row != b"after"]
                wrong += [f"{table.decode()} {row!r}: nobody wrote this row" for row in strange]
        return wrong


def _allowed(steps: _Steps, cut: int) -> list[State]:
    last = max(number for number, (event, _) in enumerate(steps) if event <= cut)
    return [state for _, state in steps[last : last + 2]]


def _why(found: State, steps: _Steps, allowed: list[State]) -> str:
    text = f"acknowledged is {_shown(allowed[0])}"
    if any(state == found for _, state in steps):
        return text + " (LOST: this is an older state)"
    return text + " (TORN or STRANGE: it was never in this state)"


def _shown(state: State) -> str:
    return "{" + ", ".join(f"{column.decode()}={value[:14]!r}/{len(value)}" for column, value in state) + "}"
