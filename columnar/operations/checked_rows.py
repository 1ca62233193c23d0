"""Conditional writes of several rows in one call: each row a step of its own, all with the fsyncs of their regions.

    written   or refused by a condition, as a row alone would be
    left      without effect: its region is another server's, unavailable or busy, the row met an error, or the call
              has worked for STEP_S.  The caller sends the row in a call of its own, and gets the reason

So a call never waits for a region, goes to no other server, and no error hides the outcome of the rows before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

from columnar.errors import ColumnarError
from columnar.model.mutation import RowMutation
from columnar.operations.access import TableAccess, after, joined
from columnar.operations.row_plan import STEP_S
from columnar.regions.tables import ServedTable
from columnar.regions.write.applied import Applied

Outcomes = list[Applied | None]  # one for each row, in order; None: it is left


def write_checked(
    access: TableAccess, served: ServedTable, mutations: Sequence[RowMutation], answer: Callable[[Outcomes], Any]
) -> Any:
    """Rows are named once, and checked.  The answer waits until what was written, or a condition saw, is on disk."""
    if served.schema.kept_by:
        served.schema.check_written_by()
    if served.is_throttled:
        access.admit(served, writes=True)
    outcomes: Outcomes = []
    waits: list[Any] = []
    ends_s = perf_counter() + STEP_S
    for mutation in mutations:
        if outcomes and perf_counter() >= ends_s:
            break
        try:
            region = access.writable(served, mutation.row)
            applied = region.apply(mutation)
        except ColumnarError:
            outcomes.append(None)
            continue
        if served.is_throttled:
            access.charge_writes(served, [mutation])
        waits.append(access.acknowledgement(region, applied))
        outcomes.append(applied)
    outcomes += [None] * (len(mutations) - len(outcomes))
    return after(joined(waits), answer(outcomes))
