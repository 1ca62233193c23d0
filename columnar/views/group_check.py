"""(pure) A group checked within itself: its totals and its ordered cells against its members, as of one moment.

    totals     each is the sum of what the members give to it, and no cell where that is 0
    order      the ordered cells are those of the members that stand in the order, with what these carry

The ordered cells come in another order than the members, so both are added up to a number: it takes memory for neither.
The number is of this process alone.

Knows nothing of stores and of sources.
"""

from __future__ import annotations

from columnar.errors import DamagedData
from columnar.model.contribution import Member, order_qualifier, pack_carried, unpack, wrapped
from columnar.model.view_definition import ORDERED, TOTALS


class GroupCheck:
    __slots__ = ("_orders", "_stored", "_sums", "is_readable", "members")

    def __init__(self) -> None:
        self.members = 0  # that stand
        self.is_readable = True
        self._stored: dict[bytes, bytes] = {}
        self._sums: dict[bytes, int] = {}
        self._orders = 0

    def total(self, qualifier: bytes, value: bytes) -> None:
        self._stored[TOTALS + b":" + qualifier] = value

    def member(self, source: bytes, data: bytes) -> bool:
        """Return whether somebody says that it stands; a member that cannot be read does, and adds nothing."""
        try:
            member = unpack(data)
        except DamagedData:
            self.is_readable = False
            return True
        if member.is_gone:
            return False
        self.members += 1
        for total, amount in member.amounts:
            self._sums[total] = self._sums.get(total, 0) + amount
        cell = ordered_cell(source, member)
        if cell is not None:
            self._orders += hash(cell)
        return True

    def ordered(self, qualifier: bytes, value: bytes) -> None:
        self._orders -= hash((qualifier, value))

    def wrong(self) -> str:
        """The faults as words; empty: none."""
        found = []
        if not self.is_readable:
            found.append("members")
        if self._stored != self.right_totals():
            found.append("totals")
        if self._orders:
            found.append("order")
        return " ".join(found)

    def right_totals(self) -> dict[bytes, bytes]:
        """Return each total that is a cell, by its column."""
        sums = {total: wrapped(amount) for total, amount in self._sums.items()}
        return {total: amount.to_bytes(8, "big", signed=True) for total, amount in sums.items() if amount}

    def differences(self) -> dict[bytes, int]:
        """The amounts to be added to stored totals that are wrong; a total that is no number is 0."""
        found = {}
        for total in self._stored.keys() | self._sums.keys():
            value = self._stored.get(total, b"")
            stored = int.from_bytes(value, "big", signed=True) if len(value) == 8 else 0
            difference = wrapped(self._sums.get(total, 0) - stored)
            if difference or self._stored.get(total) != self.right_totals().get(total):
                found[total] = difference
        return found


def ordered_cell(source: bytes, member: Member) -> tuple[bytes, bytes] | None:
    """Qualifier and value of the member's cell in the order; None: it stands in none."""
    if member.ordered != ORDERED:
        return None
    return order_qualifier(member.order, source), pack_carried(member.carried)
