"""Remains of a crash in the tables of accounts, reported as differences by ``wikka check``, and their repair.

    emails    a row that belongs to no account, after a crash of its registration or release   stale
              an account's address without a row, which somebody deleted                        missing
    users     a row without a name or status, after a crash on a plain HBase                    stale
              a deleted account whose name is still the signature of edits                      missing
              the same, of one that was deleted before files, or jobs on rights, were renamed   different

The last two are repaired by ``finish_leavings`` alone: the cell says that all is renamed, so a repair that wrote it
while triggers are late would leave the name where they write it later.

A row younger than GRACE_MS may belong to a registration that runs right now, and is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from columnar.client import Connection
from wikka_port.accounts import tables
from wikka_port.accounts.deactivation import finish
from wikka_port.accounts.records import Account, account_of
from wikka_port.accounts.tables import ALL_RENAMED, EMAILS, RENAMED, SITE, USERS, email_row
from wikka_port.differences import Difference, Kind, groups_of
from wikka_port.pages import Wiki

Stamped = Mapping[bytes, tuple[bytes, int]]


def differences(connection: Connection, now_ms: int) -> Iterator[Difference]:
    """Yield the differences of all accounts, none if the wiki was never prepared for accounts.

    O(accounts) time; a few hundred accounts are in memory.
    """
    if USERS not in connection.tables():
        return
    secret = connection.table(SITE).row(tables.SECRET_ROW).get(tables.SECRET, b"")
    for users in groups_of(connection.table(USERS).scan(columns=[b"account"], include_timestamp=True, batch_size=200)):
        accounts = {row: account_of(row, _values(cells)) for row, cells in users.items()}
        yield from _fallen(accounts, users, now_ms)
        yield from _unheld(connection, [one for one in accounts.values() if one is not None], secret, now_ms)
    for emails in groups_of(connection.table(EMAILS).scan(include_timestamp=True, batch_size=200)):
        yield from _orphaned(connection, emails, secret, now_ms)


def is_of_leaving(one: Difference) -> bool:
    return (one.table, one.column) == (USERS, RENAMED)


def finish_leavings(wiki: Wiki) -> None:
    """Rename the remaining edits of deleted accounts.  Raises StoreUnavailable."""
    if not wiki.store.run(lambda connection: USERS in connection.tables()):
        return
    for row, cells in wiki.rows.scan(USERS, columns=[b"account"]):
        account = account_of(row, cells)
        if account is not None and account.status == "deleted" and cells.get(RENAMED) != ALL_RENAMED:
            finish(wiki, account)


def _fallen(
    accounts: Mapping[bytes, Account | None], users: Mapping[bytes, Stamped], now_ms: int
) -> Iterator[Difference]:
    for row, account in accounts.items():
        newest = max(stamp for _, stamp in users[row].values())
        if account is None and now_ms - newest > tables.GRACE_MS:
            yield Difference(Kind.STALE, USERS, row, b"", None, b"no whole account", newest)
        elif account is not None and account.status == "deleted":
            renamed = _values(users[row]).get(RENAMED)
            if renamed != ALL_RENAMED:
                kind = Kind.MISSING if renamed is None else Kind.DIFFERENT
                yield Difference(kind, USERS, row, RENAMED, ALL_RENAMED, renamed, now_ms)


def _unheld(connection: Connection, accounts: list[Account], secret: bytes, now_ms: int) -> Iterator[Difference]:
    """Yield the addresses of accounts that have no row in ``emails``."""
    held = {email_row(secret, one.email): one for one in accounts if one.email and one.status != "deleted"}
    found = {row for row, _ in connection.table(EMAILS).rows(list(held))} if held else set()
    for row, account in held.items():
        if row not in found:
            expected = {tables.OF_ID: account.id.encode(), tables.OF_USER: account.row}
            for column, value in expected.items():
                yield Difference(Kind.MISSING, EMAILS, row, column, value, None, now_ms)


def _orphaned(
    connection: Connection, emails: Mapping[bytes, Stamped], secret: bytes, now_ms: int
) -> Iterator[Difference]:
    """Yield the rows of ``emails`` whose address no account has."""
    owners = {row: _values(cells).get(tables.OF_USER, b"") for row, cells in emails.items()}
    owned = sorted({owner for owner in owners.values() if owner})
    users = dict(connection.table(USERS).rows(owned, columns=[b"account"])) if owned else {}
    for row, cells in emails.items():
        account = account_of(owners[row], users.get(owners[row], {}))
        ours = account is not None and account.id.encode() == _values(cells).get(tables.OF_ID)
        if account is not None and ours and account.email and email_row(secret, account.email) == row:
            continue
        newest = max(stamp for _, stamp in cells.values())
        if now_ms - newest > tables.GRACE_MS:
            yield Difference(Kind.STALE, EMAILS, row, b"", None, owners[row], newest)


def _values(cells: Stamped) -> dict[bytes, bytes]:
    return {column: value for column, (value, _) in cells.items()}
