"""A view's table written by hand: the recomputation of its sources, with withdrawn members in between."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from columnar.client import Connection
from columnar.client.view_reader import ViewReader
from columnar.model.contribution import Member, order_qualifier, pack, pack_carried
from columnar.model.view_definition import MEMBERS, ORDERED, View
from columnar.views.contributions import Rules, Share, rules_of
from tests.support.recompute import recomputed

Rows = Mapping[bytes, Mapping[bytes, bytes]]
GUARD = Member((1, 1, 1), 0, True, ())
FAMILIES = {"v": {"max_versions": 1}, "m": {"max_versions": 1}, "o": {"max_versions": 1}}


def written(connection: Connection, view: View, *sources: Rows, withdrawn: tuple[bytes, ...] = ()) -> ViewReader:
    """Write the view; ``withdrawn`` are source rows that every group has as withdrawn members."""
    connection.create_table(view.name, FAMILIES)
    table = connection.table(view.name)
    rules = rules_of(view)
    found = recomputed([(one, rows.items()) for one, rows in zip(rules, sources, strict=True)])
    with table.batch(batch_size=500) as batch:
        for row, group in found.groups.items():
            cells = {column: total.to_bytes(8, "big", signed=True) for column, total in group.totals(rules).items()}
            for one in rules:
                for gone in withdrawn:
                    cells[MEMBERS + b":" + one.side + gone] = pack(GUARD)
                cells |= _cells(one, [share for share in group.members.values() if share.member.startswith(one.side)])
            batch.put(row, cells)
    if withdrawn:  # a group of which nothing is left but them
        table.put(b"~nobody", {MEMBERS + b":" + rules[0].side + withdrawn[0]: pack(GUARD)})
    return ViewReader(connection, lambda: (view, view.name))


def _cells(rules: Rules, shares: Iterable[Share]) -> dict[bytes, bytes]:
    cells: dict[bytes, bytes] = {}
    names = [family + b":" + qualifier for family, qualifier in rules.totals]
    for share in shares:
        amounts = tuple(sorted(zip(names, share.amounts or (), strict=True)))
        ordered = ORDERED if share.order is not None else b""
        member = Member((1, 1, 1), 0, False, amounts, ordered, share.order or b"", share.carry)
        cells[MEMBERS + b":" + share.member] = pack(member)
        if share.order is not None:
            cells[ORDERED + b":" + order_qualifier(share.order, share.member)] = pack_carried(share.carry)
    return cells
