"""The audit: the changes of accounts and rights, and who made them; entries are added, never changed.

    row     salt, inverted milliseconds (13 digits), 16 random hexadecimal digits
    a:what  register, sign-in, sign-in refused, sign-out, password, email, status, admin, delete, invite, ...
    a:user  the account that was changed         a:by  the actor: "" for the account itself, or visitors.COMMAND
    a:note  details, for a person                n:network  the actor's network; ends after 90 days

Older entries of commands have one of visitors.OLD_COMMANDS as their actor, names that no account can be given; they are
read as COMMAND.  No entry contains a password or a token.

A separate table keeps the networks of authors without an account, for administrators and for 90 days.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from heapq import merge
from itertools import islice
from typing import Annotated, Final

from wikka_port.accounts.rows import Cells, Rows
from wikka_port.accounts.tables import AUDIT, NETWORK, NETWORKS, audit_row
from wikka_port.limits import AUDIT_LISTED, AUDIT_SCANNED
from wikka_port.names import page_key
from wikka_port.schema import CHANGE_SALTS, TIME_MAX_MS, cells_of, fields_in, folded, revisions_from
from wikka_port.store import StoreUnavailable
from wikka_port.texts import N_
from wikka_port.visitors import COMMAND, OLD_COMMANDS

log = logging.getLogger(__name__)
KINDS: Final[Mapping[str, str]] = {
    "address confirmed": N_("Address confirmed"),
    "address is taken": N_("Somebody else has the address"),
    "administrator": N_("Made an administrator, or unmade"),
    "administrator's link": N_("Link for an administrator"),
    "antispam settings": N_("Settings of antispam changed"),
    "block lifted": N_("Block lifted"),
    "blocked": N_("Blocked"),
    "dead letters discarded": N_("Dead letters thrown away"),
    "dead letters retried": N_("Dead letters delivered again"),
    "delete": N_("Account erased"),
    "delete comment": N_("Comment deleted"),
    "delete page": N_("Page deleted"),
    "email": N_("Mail address changed"),
    "erase file version": N_("Version of a file erased for good"),
    "erase revision": N_("Revision erased for good"),
    "hide revision": N_("Revision hidden"),
    "invitation": N_("Invitation"),
    "key ended": N_("Key ended"),
    "key made": N_("Key made"),
    "many pages: delete": N_("Many pages deleted"),
    "many pages: revert": N_("Edits of many pages taken back"),
    "many pages: rights": N_("Owner or lists of many pages changed"),
    "many pages: undo": N_("Work on many pages undone"),
    "password": N_("Password changed"),
    "purge page": N_("Page purged for good"),
    "register": N_("Account made"),
    "reset link": N_("Link for a new password"),
    "restore comment": N_("Comment brought back"),
    "review accepted": N_("Text under review accepted"),
    "review refused": N_("Text under review refused"),
    "rights": N_("Rights changed"),
    "sessions ended": N_("Sessions ended"),
    "show revision": N_("Revision shown again"),
    "sign-in": N_("Signed in"),
    "sign-in refused": N_("Sign-in refused"),
    "sign-out": N_("Signed out"),
    "site settings": N_("Settings of the site changed"),
    "status": N_("Status of an account changed"),
    "undelete page": N_("Page brought back"),
}


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
        """Add an entry of a kind of KINDS; returns when it is on disk.  Raises StoreUnavailable."""
        assert what in KINDS, f"the page of the audit does not know {what!r}"
        now_ms = self._clock()
        cells = cells_of(Entry(now_ms, what, user, by, note, network))
        row = audit_row(now_ms, secrets.token_hex(8).encode())
        self._rows.put(AUDIT, row, {column: value for column, value in cells.items() if value})

    def recent(self, limit: int = 100) -> list[Entry]:
        """Return up to ``limit`` entries, newest first.  Raises StoreUnavailable."""
        return [_entry(row, cells) for row, cells in islice(merge(*map(self._salted, CHANGE_SALTS)), limit)]

    def filtered(self, what: str = "", user: str = "") -> Iterator[Entry]:
        """Yield all entries as ``part`` selects them, newest first, however many are read for it."""
        before = ""
        while True:
            found, before = self.part(before=before, what=what, user=user)
            yield from found
            if not before:
                return

    def part(self, *, before: str = "", what: str = "", user: str = "") -> tuple[list[Entry], str]:
        """Return up to AUDIT_LISTED entries, newest first, and the token with which to continue, "" at the end.

        ``before`` is the token of the preceding part, ``what`` a kind of KINDS; ``user`` made the change or was
        changed by it.  AUDIT_SCANNED entries are read at most, so a part may be short though others follow.  Raises
        StoreUnavailable.
        """
        found, last, who = list[Entry](), "", folded(_actor(user))
        read = merge(*(self._salted(salt, before.encode("utf-8", "replace")) for salt in CHANGE_SALTS))
        for number, (row, cells) in enumerate(read):
            if len(found) == AUDIT_LISTED or number == AUDIT_SCANNED:
                return found, last
            entry, last = _entry(row, cells), row.decode(errors="replace")
            if what in ("", entry.what) and (not who or who in (folded(entry.user), folded(entry.by))):
                found.append(entry)
        return found, ""

    def _salted(self, salt: bytes, after: bytes = b"") -> Iterator[tuple[bytes, Cells]]:
        for row, cells in self._rows.scan(AUDIT, salt + after + b"\x00" if after else salt):
            if not row.startswith(salt):
                return
            yield row[len(salt) :], cells


def _entry(row: bytes, cells: Cells) -> Entry:
    digits = row[:13]
    entry = Entry(TIME_MAX_MS - int(digits) if digits.isdigit() else 0, **fields_in(Entry, cells))
    return replace(entry, by=COMMAND) if entry.by in OLD_COMMANDS else entry


def _actor(typed: str) -> str:
    return COMMAND if folded(typed) in OLD_COMMANDS else typed


def note_settings(audit: Audit, what: str, names: Iterable[str], *, by: str, network: str = "") -> None:
    """Note a change of settings, which is on disk already, by their names; their values are in their own history."""
    try:
        audit.note(what, user="", by=by, note=", ".join(names), network=network)
    except StoreUnavailable as away:
        log.warning("%s by %s is not in the audit: %s", what, by, away)


def note_network(rows: Rows, name: str, number: int, network: str) -> None:
    """Store the network from which a revision was written.  Raises StoreUnavailable."""
    rows.put(NETWORKS, revisions_from(page_key(name), number), {NETWORK: network.encode("utf-8", "replace")})


def networks_of(rows: Rows, name: str, numbers: Iterable[int]) -> dict[int, str]:
    """Return the known networks by revision number, in one call.  Raises StoreUnavailable."""
    wanted = {revisions_from(page_key(name), number): number for number in numbers}
    found = rows.rows(NETWORKS, list(wanted))
    return {wanted[row]: cells[NETWORK].decode(errors="replace") for row, cells in found.items() if NETWORK in cells}
