"""Networks of visitors without an account: kept separately from the pages, for administrators, for 90 days."""

from __future__ import annotations

from collections.abc import Iterable

from wikka_port.accounts.rows import Rows
from wikka_port.accounts.tables import NETWORK, NETWORKS
from wikka_port.names import page_key
from wikka_port.schema import revisions_from


def note_network(rows: Rows, name: str, number: int, network: str) -> None:
    """Raises StoreUnavailable."""
    rows.put(NETWORKS, revisions_from(page_key(name), number), {NETWORK: network.encode("utf-8", "replace")})


def networks_of(rows: Rows, name: str, numbers: Iterable[int]) -> dict[int, str]:
    """By the number of the revision, where one is known.  One call.  Raises StoreUnavailable."""
    wanted = {revisions_from(page_key(name), number): number for number in numbers}
    found = rows.rows(NETWORKS, list(wanted))
    return {wanted[row]: cells[NETWORK].decode(errors="replace") for row, cells in found.items() if NETWORK in cells}
