"""Repairs the totals and the order of a group from its members, while the members change.

    totals    the sum over the members less the total, both as of one moment, is added to the present total: each
              contribution changes sum and total alike, so their difference stays the same
    order     first, in steps, the ordered cell of each member is written if it is missing or wrong; then, in steps,
              each ordered cell that no member has at this place is removed

No other code runs between the reads and the writes of a step.  Owned by the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Final

from columnar.errors import DamagedData
from columnar.model.contribution import Member, split_order_qualifier, unpack, wrapped
from columnar.model.mutation import Delete, Operation, Put, RowMutation
from columnar.model.view_definition import MEMBERS, ORDERED, TOTALS
from columnar.regions.read.family_view import visible_value
from columnar.regions.region import Region
from columnar.storage.layout import cell_key, row_end, row_prefix, split_cell_key
from columnar.views.walks import GroupCheck, check_one, inspect_member, ordered_cell

STEP_CELLS: Final = 200

_Step = Callable[[Region, bytes, list[tuple[bytes, bytes]]], list[Operation]]


def repair_group_in_steps(region: Region, group: bytes, counts: list[int]) -> Iterator[None]:
    """Repair a group in steps.  ``counts`` has the numbers of totals and ordered cells corrected so far."""
    check = GroupCheck()
    yield from check_one(region, group, check)
    differences = check.differences()
    if differences:
        counts[0] += _add(region, group, differences)
    yield
    yield from _each(region, group, MEMBERS, counts, _order_of_members)
    yield from _each(region, group, ORDERED, counts, _members_of_order)


def removed(region: Region, group: bytes, members: Sequence[tuple[bytes, bytes]]) -> None:
    """Remove each member (source, print) whose cell still has that print; totals and order stay as they are."""
    found = [source for source, stamp in members if inspect_member(region, group, source).print == stamp]
    if found:
        region.apply(RowMutation(group, tuple(Delete(MEMBERS, source) for source in found)))


def _add(region: Region, group: bytes, differences: dict[bytes, int]) -> int:
    view = region.views[TOTALS]
    operations: list[Operation] = []
    for column, difference in differences.items():
        qualifier = column.removeprefix(TOTALS + b":")
        cell = visible_value(region.store.get(view.space, cell_key(group, qualifier)), view, region.now_ms)
        stored = int.from_bytes(cell, "big", signed=True) if cell is not None and len(cell) == 8 else 0
        total = wrapped(stored + difference)
        if total:
            operations.append(Put(TOTALS, qualifier, total.to_bytes(8, "big", signed=True)))
        else:  # a total of 0 is no cell
            operations.append(Delete(TOTALS, qualifier))
    region.apply(RowMutation(group, tuple(operations)))
    return len(operations)


def _each(region: Region, group: bytes, family: bytes, counts: list[int], step: _Step) -> Iterator[None]:
    """Apply ``step`` to all cells of a family of the group, STEP_CELLS at a time, as they are then."""
    view = region.views[family]
    low, high = row_prefix(group), row_end(group)
    while True:
        found = list(islice(region.store.scan(view.space, low, high), STEP_CELLS))
        if not found:
            return
        cells = [
            (split_cell_key(key)[1], value)
            for key, raw in found
            if (value := visible_value(raw, view, region.now_ms)) is not None
        ]
        operations = step(region, group, cells)
        if operations:
            region.apply(RowMutation(group, tuple(operations)))
            counts[1] += len(operations)
        low = found[-1][0] + b"\0"
        yield


def _order_of_members(region: Region, group: bytes, cells: list[tuple[bytes, bytes]]) -> list[Operation]:
    found: list[Operation] = []
    for source, data in cells:
        member = _readable(data)
        cell = ordered_cell(source, member) if member is not None and not member.is_gone else None
        if cell is not None and _value(region, ORDERED, group, cell[0]) != cell[1]:
            found.append(Put(ORDERED, *cell))
    return found


def _members_of_order(region: Region, group: bytes, cells: list[tuple[bytes, bytes]]) -> list[Operation]:
    found: list[Operation] = []
    for cell in cells:
        try:
            source = split_order_qualifier(cell[0])[1]
            data = _value(region, MEMBERS, group, source)
            member = unpack(data) if data is not None else None
        except DamagedData:
            member = None
        if member is None or member.is_gone or ordered_cell(source, member) != cell:
            found.append(Delete(ORDERED, cell[0]))
    return found


def _readable(data: bytes) -> Member | None:
    try:
        return unpack(data)
    except DamagedData:  # the check finds it, and its row contributes again
        return None


def _value(region: Region, family: bytes, group: bytes, qualifier: bytes) -> bytes | None:
    view = region.views[family]
    return visible_value(region.store.get(view.space, cell_key(group, qualifier)), view, region.now_ms)
