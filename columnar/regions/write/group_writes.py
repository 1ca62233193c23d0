"""Mutations of several rows as one step: conditions of all rows are checked first, then all rows are drafted.

The rows are of one group (ROW_GROUP), and so of one region, which writes them as one batch, with one fsync.

Invariants:
    I1. The batch has all rows or none.  An error and a failed condition leave only unused sequences and stamps.
    I2. The records of the step have one stamp, and no other record is between them; each but the last says that more
        follow.
    I3. A step has at most ROW_GROUP_CELLS columns that it reads or writes, plus those of one row's operations, and
        appended cells of at most ROW_GROUP_BYTES, plus those of one row.

Knows nothing of groups, and of fsyncs (``region``).
"""

from __future__ import annotations

from typing import NamedTuple

from columnar.errors import RequestTooBig
from columnar.limits import ROW_GROUP_BYTES, ROW_GROUP_CELLS
from columnar.model.mutation import RowMutation
from columnar.regions.hooks import LogPolicy
from columnar.regions.log.change_record import Appended, Sequence
from columnar.regions.write.applied import Step
from columnar.regions.write.drafting import SENDS_ALONE, Drafting
from columnar.regions.write.row_draft import RowDraft
from columnar.storage.api import Batch


class FailedCondition(NamedTuple):
    row: int  # number of the mutation
    condition: int  # number of its condition


_Draft = tuple[RowMutation, Sequence, RowDraft]


def draft_group(
    drafting: Drafting, batch: Batch, mutations: list[RowMutation], now_ms: int, policy: LogPolicy | None
) -> list[Step | None] | FailedCondition:
    """Add the next states of different rows to ``batch``; return their steps, None for a row without operations.

    Returns the first condition that fails, and adds no key then.
    """
    log, stamp = drafting.logging.log, now_ms
    changed = [mutation.row for mutation in mutations if mutation.operations]
    if policy is None and any(bool(mutation.sends) for mutation in mutations):
        policy = SENDS_ALONE
    elif policy is not None and changed:
        stamp = drafting.logging.stamps.give_step(batch, changed, now_ms)
    drafts: list[_Draft] = []
    for number, mutation in enumerate(mutations):
        sequence = log.next()
        draft = drafting.begin_draft(mutation.row, sequence, stamp, now_ms, policy)
        failed = draft.check(mutation.conditions)
        if failed is not None:
            return FailedCondition(number, failed)
        drafts.append((mutation, sequence, draft))
    _apply(drafting, batch, drafts, policy)
    recorded = _records(drafting, batch, drafts, stamp, policy) if policy is not None else {}
    steps: list[Step | None] = []
    for mutation, sequence, draft in drafts:
        if mutation.operations:
            logged = recorded.get(mutation.row)
            steps.append(drafting.end_draft(batch, draft, sequence, stamp, now_ms, logged))
        else:
            steps.append(None)
    return steps


def _apply(drafting: Drafting, batch: Batch, drafts: list[_Draft], policy: LogPolicy | None) -> None:
    """Apply the operations of all rows.  Raises RequestTooBig above the bounds of a step (I3)."""
    columns = appended_bytes = 0
    for mutation, _, draft in drafts:
        if not mutation.operations:
            continue
        drafting.apply_operations(batch, draft, mutation, policy)
        columns += len(draft.columns.by_name)
        for _, value, _ in draft.appended:
            appended_bytes += len(value)
        if columns > ROW_GROUP_CELLS or appended_bytes > ROW_GROUP_BYTES:
            raise RequestTooBig(
                f"the rows of the step have over {ROW_GROUP_CELLS} columns that it reads or writes, or appended cells "
                f"of over {ROW_GROUP_BYTES} bytes; nothing was stored, write fewer rows as one step"
            )


def _records(
    drafting: Drafting, batch: Batch, drafts: list[_Draft], stamp: int, policy: LogPolicy
) -> dict[bytes, Appended]:
    """Add the records of the rows whose changes are logged (I2); return them by row."""
    logged = [one for one in drafts if one[0].sends or any(entry.family in policy.families for entry in one[2].entries)]
    found: dict[bytes, Appended] = {}
    for mutation, sequence, draft in logged:
        is_last = draft is logged[-1][2]
        record = drafting.logging.record(batch, draft, sequence, stamp, policy, mutation, not is_last)
        if record is not None:
            found[mutation.row] = record
    return found
