"""Carry out contributions within the draft of a row: member, totals and ordered cell, together or not at all.

All cells are read and written through the draft, so the operations of one mutation see each other.  A change record
shows a contribution as puts and deletes of the cells that the contribution changed.

Families of members, totals and ordered cells keep their cells for ever: cells would expire without a record, so a
family with a time to live is refused.  A family may keep several versions: the newest version counts, and a guard has
no older versions.

``model.contribution`` has the arithmetic, ``guards`` the removal of guards.  ``contribution_rows`` does the same for
many rows whose changes are not logged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from columnar.errors import CellTooBig, DamagedData, NotAllowed, NotALong, NotAMember, abbreviate
from columnar.limits import CELL_BYTES
from columnar.model.contribution import (
    Member,
    differences,
    follow,
    order_qualifier,
    pack,
    pack_carried,
    unpack,
    wrapped,
)
from columnar.model.mutation import Contribute

if TYPE_CHECKING:
    from columnar.regions.write.row_draft import RowDraft


def contribute(draft: RowDraft, said: Contribute) -> None:
    """Carry out one contribution in the draft.

    Raises NotAMember, NotALong, NotAllowed, CellTooBig or NoSuchColumnFamily; the draft must not be used after that.
    """
    for family in said.families:
        if draft.columns.view(family).ttl_ms is not None:
            raise expiring(draft.table, family)
    previous = _read_member(draft, said)
    member = follow(previous, said, draft.now_ms)
    if member is None:
        return
    for total, difference in differences(previous, member):
        _add(draft, total, difference)
    _move(draft, said.source, previous, member)
    data = pack(member)
    if len(said.source) + len(data) > CELL_BYTES:
        raise CellTooBig(f"the member {abbreviate(said.source)}", len(said.source) + len(data), CELL_BYTES)
    view = draft.columns.view(said.family)
    if member.is_gone:
        draft.guarded.append(view.number)
        if view.max_versions > 1:
            draft.remove_cell(said.family, said.source)
    draft.write_cell(said.family, said.source, data)


def _read_member(draft: RowDraft, said: Contribute) -> Member | None:
    data = draft.value_of(said.family, said.source)
    if data is None:
        return None
    try:
        return unpack(data)
    except DamagedData as error:
        raise NotAMember(draft.table, draft.row, said.family + b":" + said.source, error.text) from error


def _add(draft: RowDraft, total: bytes, difference: int) -> None:
    """Add ``difference`` to a total.  A total of 0 has no cell; a total of a dropped family is skipped."""
    family, _, qualifier = total.partition(b":")
    if not draft.columns.has_family(family):
        return
    value = draft.value_of(family, qualifier)
    if value is not None and len(value) != 8:
        raise NotALong(len(value))
    old = int.from_bytes(value, "big", signed=True) if value is not None else 0
    new = wrapped(old + difference)
    if new:
        draft.write_cell(family, qualifier, new.to_bytes(8, "big", signed=True))
    elif value is not None:
        draft.remove_cell(family, qualifier)


def _move(draft: RowDraft, source: bytes, previous: Member | None, member: Member) -> None:
    """Move the ordered cell of the source to its new place."""
    if (
        previous is not None
        and previous.ordered
        and (previous.ordered, previous.order) != (member.ordered, member.order)
    ):
        if draft.columns.has_family(previous.ordered):
            draft.remove_cell(previous.ordered, order_qualifier(previous.order, source))
        previous = None
    if not member.ordered:
        return
    if previous is None or not previous.ordered or previous.carried != member.carried:
        draft.write_cell(member.ordered, order_qualifier(member.order, source), pack_carried(member.carried))


def expiring(table: str, family: bytes) -> NotAllowed:
    name = abbreviate(family)
    return NotAllowed(
        f"family {name} of {table} has a time to live, after which cells that a contribution counts on would "
        f"vanish; alter it to TTL=FOREVER, or name another family"
    )
