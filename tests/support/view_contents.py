"""The comparison of a view's table with the recomputed view: members, totals, order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from columnar.model import contribution
from columnar.model.view_definition import MEMBERS, ORDERED, TOTALS
from columnar.views.contributions import Rules, Share
from tests.support.recompute import Recomputed

Cells = Mapping[bytes, bytes]  # column -> value


def differences(rules: Sequence[Rules], expected: Recomputed, rows: Mapping[bytes, Cells]) -> list[str]:
    """Return the differences by group; ``rows`` are all rows of the table that a reader sees."""
    found = []
    for group in sorted(expected.groups.keys() | rows.keys()):
        held, cells = expected.groups.get(group), rows.get(group, {})
        shares = held.members if held is not None else {}
        members = {source: given_by(rules, share) for source, share in shares.items()}
        totals = held.totals(rules) if held is not None else {}
        ordered = [qualifier for qualifier, _ in held.ordered()] if held is not None else []
        for what, wanted, seen in (
            ("members", members, _members(cells)),
            ("totals", totals, {name: int.from_bytes(cells[name], "big", signed=True) for name in _of(cells, TOTALS)}),
            ("order", ordered, sorted(name[len(ORDERED) + 1 :] for name in _of(cells, ORDERED))),
        ):
            if wanted != seen:
                found.append(f"group {group!r}: {what} are {seen}, not {wanted}")
    return found


def given_by(rules: Sequence[Rules], share: Share) -> tuple[dict[bytes, int], tuple[tuple[bytes, bytes], ...]]:
    """Return amounts by total, and the cells that the member carries."""
    (mine,) = [one for one in rules if not one.side or share.member.startswith(one.side)]
    names = [family + b":" + name for family, name in mine.totals]
    return dict(zip(names, share.amounts or (), strict=True)), share.carry


def _members(cells: Cells) -> dict[bytes, tuple[dict[bytes, int], tuple[tuple[bytes, bytes], ...]]]:
    found = {}
    for name in _of(cells, MEMBERS):
        member = contribution.unpack(cells[name])
        if not member.is_gone:
            found[name[len(MEMBERS) + 1 :]] = dict(member.amounts), member.carried
    return found


def _of(cells: Cells, family: bytes) -> list[bytes]:
    return [column for column in cells if column.startswith(family + b":")]
