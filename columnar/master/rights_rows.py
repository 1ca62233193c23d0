"""(pure, except ``StoredRights.write_record``) Rows of the catalogue that hold users and rights.

    row ``u/g/GRANTEE``  info:grants = JSON ``[[namespace, table, family, qualifier | null, letters], ...]``
    row ``u/m/GROUP``    info:members = JSON ``[user, ...]``
    row ``u/a/USER``     info:account = JSON ``{"password", "scram", "tokens": [[label, hash, made_s], ...]}``
    row ``u/k``          info:key = random text, secret: salts of users that do not exist are made of it

A program without rights refuses a catalogue with such rows, because it would open the store to everybody.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from typing import Final

from columnar.master.catalogue_rows import Cells, changes
from columnar.model.mutation import RowMutation
from columnar.model.rights import (
    Grant,
    RightsRecord,
    account_from_json,
    account_to_json,
    grants_from_json,
    grants_to_json,
)

PREFIX: Final = b"u/"
_GRANTS: Final = b"u/g/"
_MEMBERS: Final = b"u/m/"
_ACCOUNT: Final = b"u/a/"
_KEY: Final = b"u/k"


def record_from(rows: Iterable[tuple[bytes, Cells]]) -> RightsRecord:
    """Return the record of all rows with PREFIX.  Raises ValueError, KeyError or TypeError for rows not of ours."""
    grants: list[Grant] = []
    groups, accounts, unknown_key = {}, {}, ""
    for row, cells in rows:
        name = row[len(_GRANTS) :].decode()
        if row.startswith(_GRANTS):
            grants += grants_from_json(name, cells[b"info:grants"])
        elif row.startswith(_MEMBERS):
            groups[name] = tuple(map(str, json.loads(cells[b"info:members"])))
        elif row.startswith(_ACCOUNT):
            accounts[name] = account_from_json(name, cells[b"info:account"])
        elif row == _KEY:
            unknown_key = cells[b"info:key"].decode()
        else:
            raise ValueError("it holds no grants, group, account or key")
    return RightsRecord(tuple(grants), groups, accounts, unknown_key)


def rows_of(record: RightsRecord) -> dict[bytes, dict[bytes, bytes]]:
    grants = _by_grantee(record)
    rows = {_GRANTS + name.encode(): {b"info:grants": grants_to_json(of)} for name, of in grants.items()}
    for group, members in record.groups.items():
        rows[_MEMBERS + group.encode()] = {b"info:members": json.dumps(list(members)).encode()}
    for name, account in record.accounts.items():
        rows[_ACCOUNT + name.encode()] = {b"info:account": account_to_json(account)}
    if record.unknown_key:
        rows[_KEY] = {b"info:key": record.unknown_key.encode()}
    return rows


def _by_grantee(record: RightsRecord) -> dict[str, list[Grant]]:
    found: dict[str, list[Grant]] = {}
    for grant in record.grants:
        found.setdefault(grant.grantee, []).append(grant)
    return found


def _part(record: RightsRecord, grants: dict[str, list[Grant]], names: set[str]) -> RightsRecord:
    """Return the record with the grants of these grantees alone."""
    return replace(record, grants=tuple(one for name in names for one in grants.get(name, ())))


class StoredRights:
    """The record on disk.  Writers hold the lock of the catalogue's changes."""

    def __init__(self, write: Callable[[list[RowMutation]], Awaitable[None]]) -> None:
        self._write = write
        self.record = RightsRecord()

    def load(self, rows: Iterable[tuple[bytes, Cells]]) -> None:
        self.record = record_from(rows)

    def stored_rows(self) -> dict[bytes, dict[bytes, bytes]]:
        return rows_of(self.record)

    def changes_to(self, record: RightsRecord) -> list[RowMutation]:
        """Return the mutations by which the record follows; only rows that differ are encoded."""
        before, after = self.record, record
        if after is before:
            return []
        of_before, of_after = _by_grantee(before), _by_grantee(after)
        names = {name for name in of_before.keys() | of_after.keys() if of_before.get(name) != of_after.get(name)}
        return changes(rows_of(_part(before, of_before, names)), rows_of(_part(after, of_after, names)))

    def take_written(self, record: RightsRecord) -> None:
        self.record = record

    async def write_record(self, record: RightsRecord) -> None:
        mutations = self.changes_to(record)
        if mutations:
            await self._write(mutations)
        self.record = record
