"""(pure) Shares as mutations of the view's table: one for each group, or for each ROW_SHARES shares of a group.

Groups are in the order of their rows, so that the cells that a batch reads and writes together stand side by side.

Knows nothing of regions, and of how mutations are written.
"""

from __future__ import annotations

from typing import Final

from columnar.flows.effects import OPERATION_BYTES, WRITE_BYTES, Write
from columnar.model.mutation import Contribute, RowMutation
from columnar.regions.log.change_record import Sequence
from columnar.views.contributions import Rules, Share, operation_of

BATCH_RECORDS: Final = 1_024  # the more records, the more of them share a group's totals
BATCH_BYTES: Final = 1024 * 1024  # of one batch, except for the shares of one row
ROW_SHARES: Final = 64  # of one mutation: some 0.5 ms of the loop, which nothing interrupts


class ShareBatch:
    """Shares that are written to the view's table together, group by group.  Owned by the loop."""

    def __init__(self, table: bytes) -> None:
        self._table = table
        self._by_group: dict[bytes, list[Contribute]] = {}
        self._hops: dict[bytes, int] = {}  # group -> the highest hops of its changes, if above 0
        self.size_bytes = 0
        self.count = 0  # of changes and rows (``add_record``)

    def add_share(self, rules: Rules, share: Share, sequence: Sequence, hops: int = 0) -> None:
        """Add a share of a change.

        ``hops`` are the hops of the change; the view's own change has one more hop, so that a cycle through a view
        ends.
        """
        if hops > self._hops.get(share.group, 0):
            self._hops[share.group] = hops
        operations = self._by_group.get(share.group)
        if operations is None:
            operations = self._by_group[share.group] = []
            self.size_bytes += len(share.group) + WRITE_BYTES
        operations.append(operation_of(rules, share, (sequence.origin, sequence.epoch, sequence.n)))
        self.size_bytes += len(share.member) + len(share.order or b"") + OPERATION_BYTES
        for column, value in share.carry:
            self.size_bytes += 2 * (len(column) + len(value))

    def add_record(self) -> None:
        """Count a change or a row whose shares are added."""
        self.count += 1

    @property
    def is_full(self) -> bool:
        return self.count >= BATCH_RECORDS or self.size_bytes >= BATCH_BYTES

    def writes(self) -> list[Write]:
        return [
            (self._table, RowMutation(group, tuple(shares[first : first + ROW_SHARES]), hops=self._hops_of(group)))
            for group, shares in sorted(self._by_group.items(), key=_first)
            for first in range(0, len(shares), ROW_SHARES)
        ]

    def _hops_of(self, group: bytes) -> int:
        return 1 + self._hops.get(group, 0)


def _first(group: tuple[bytes, list[Contribute]]) -> bytes:
    return group[0]
