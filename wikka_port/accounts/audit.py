"""The audit: the changes of accounts and rights, and who made them; entries are added, never changed.

    row     salt, inverted milliseconds (13 digits), 16 random hexadecimal digits
    a:what  register, sign-in, sign-in refused, sign-out, password, email, status, admin, delete, invite, ...
    a:user  the account that was changed         a:by  the actor: "" for the account itself, or "command"
    a:note  details, for a person                n:network  the actor's network; ends after 90 days

No entry contains a password or a token.

A separate table keeps the networks of authors without an account, for administrators and for 90 days.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from heapq import merge
from itertools import islice
from typing import Annotated

from wikka_port.accounts.rows import Cells, Rows
from wikka_port.accounts.tables import AUDIT, NETWORK, NETWORKS, audit_row
from wikka_port.names import page_key
from wikka_port.schema import CHANGE_SALTS, TIME_MAX_MS, cells_of, fields_in, revisions_from


@dataclass(frozen=True, slots=True)
class Entry:
    time_ms: int
    what: Annotated[str, b"a:what"]
    user: Annotated[str, b"a:user"]
    by: Annotated[str, b"a:by"]
    note: Annotated[str, b"a:note"]
    network: Annotated[str, NETWORK]


class Audit:
    def __init__(self, rows: Rows, clock_ms: Callable[[], int]) -> None:
        self._rows = rows
        self._clock = clock_ms

    def note(self, what: str, *, user: str, by: str = "", note: str = "", network: str = "") -> None:
        """Add an entry; returns when it is on disk.  Raises StoreUnavailable."""
        now_ms = self._clock()
        cells = cells_of(Entry(now_ms, what, user, by, note, network))
        row = audit_row(now_ms, secrets.token_hex(8).encode())
        self._rows.put(AUDIT, row, {column: value for column, value in cells.items() if value})

    def recent(self, limit: int = 100) -> list[Entry]:
        """Return up to ``limit`` entries, newest first.  Raises StoreUnavailable."""
        return [_entry(row, cells) for row, cells in islice(merge(*map(self._salted, CHANGE_SALTS)), limit)]

    def _salted(self, salt: bytes) -> Iterator[tuple[bytes, Cells]]:
        for row, cells in self._rows.scan(AUDIT, salt):
            if not row.startswith(salt):
                return
            yield row[len(salt) :], cells


def _entry(row: bytes, cells: Cells) -> Entry:
    digits = row[:13]
    return Entry(TIME_MAX_MS - int(digits) if digits.isdigit() else 0, **fields_in(Entry, cells))


def note_network(rows: Rows, name: str, number: int, network: str) -> None:
    """Store the network from which a revision was written.  Raises StoreUnavailable."""
    rows.put(NETWORKS, revisions_from(page_key(name), number), {NETWORK: network.encode("utf-8", "replace")})


def networks_of(rows: Rows, name: str, numbers: Iterable[int]) -> dict[int, str]:
    """Return the known networks by revision number, in one call.  Raises StoreUnavailable."""
    wanted = {revisions_from(page_key(name), number): number for number in numbers}
    found = rows.rows(NETWORKS, list(wanted))
    return {wanted[row]: cells[NETWORK].decode(errors="replace") for row, cells in found.items() if NETWORK in cells}
