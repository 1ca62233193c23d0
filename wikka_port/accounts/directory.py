"""All accounts: looked up, created, changed, listed.

The first write of ``account:id``, conditional on the cell's absence, takes a name; so of two concurrent registrations
of one name one wins.  An address is taken before its account is created, and released after the account gives it up
(``tables`` E1).

Knows passwords only as hashes, and knows nothing of rights.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from wikka_port.accounts import tables
from wikka_port.accounts.passwords import OldHashes
from wikka_port.accounts.records import Account, account_cells, account_of, flag
from wikka_port.accounts.rows import Rows
from wikka_port.accounts.settings import DEFAULT, Settings, settings_cells
from wikka_port.accounts.tables import EMAILS, USERS, email_row, user_row
from wikka_port.confusable_names import similar_names
from wikka_port.names import page_key
from wikka_port.rights.acl import members_of
from wikka_port.schema import BODY, NAMES, PAGES, name_of_row, name_prefix
from wikka_port.texts import N_, _
from wikka_port.visitors import Status

_ALL = (b"account", b"settings")
LEASE_MS: Final = 20_000
LAST: Final = N_(
    "This is the only administrator. Make somebody else one first; a wiki without one cannot be looked after."
)
LEASE_TAKEN: Final = N_("Somebody else ends an administrator at this moment. Please look again, and try again.")
_ADMINISTERS = (tables.ADMIN, tables.NAME, tables.STATUS)
_ALIKE_MAX = 20  # pages compared whose names differ only in case and accents


class NameTaken(Exception):
    """An account has this name, or a name that looks like it."""


class AddressTaken(Exception):
    """An account has this address; only the owner of the address may learn it."""


class LastAdministrator(Exception):
    """No other account administers the wiki; nothing was written.  ``str()`` is a sentence for the person."""

    def __init__(self) -> None:
        super().__init__(_(LAST))


class Administrators:
    """The rule that one administrator remains, whoever ends how many at once in whatever process.

    No write is conditional on the rows of all accounts.  So changes by which an administrator ends are made one at a
    time: each takes a lease before it looks for others, and gives it back after its write.  A process that dies in
    between keeps it for LEASE_MS.  A process that stops for longer than half of it in between writes nothing.
    """

    def __init__(self, rows: Rows, clock_ms: Callable[[], int]) -> None:
        self._rows = rows
        self._clock = clock_ms

    @contextmanager
    def end_one(self, row: bytes) -> Iterator[Callable[[], None]]:
        """Lease the change by which the account of ``row`` ends to administer, if it does.

        Yields a function to be called right before the write.  Raises LastAdministrator, LeaseTaken.
        """
        if not _administers(row, self._rows.row(USERS, row, _ADMINISTERS)):
            yield lambda: None
            return
        until = self._clock() + LEASE_MS
        mine = b"%d:%s" % (until, secrets.token_hex(8).encode())
        stored = self._rows.row(tables.SITE, tables.ADMINISTRATORS_ROW, [tables.LEASE]).get(tables.LEASE)
        if stored and int(stored.partition(b":")[0]) > self._clock():
            raise LeaseTaken
        if not self._rows.change(tables.SITE, tables.ADMINISTRATORS_ROW, {tables.LEASE: stored}, {tables.LEASE: mine}):
            raise LeaseTaken

        def check_time() -> None:
            if self._clock() > until - LEASE_MS // 2:
                raise LeaseTaken

        try:
            if all(one == row for one in self.rows_of_all()):
                raise LastAdministrator
            yield check_time
        finally:
            self._rows.change(tables.SITE, tables.ADMINISTRATORS_ROW, {tables.LEASE: mine}, {tables.LEASE: b""})

    def rows_of_all(self) -> Iterator[bytes]:
        """Yield the rows of all accounts that administer.  O(accounts)."""
        for row, cells in self._rows.scan(USERS, columns=_ADMINISTERS):
            if _administers(row, cells):
                yield row


def _administers(row: bytes, cells: Mapping[bytes, bytes]) -> bool:
    account = account_of(row, cells)
    return account is not None and account.admin and account.status == "active"


class LeaseTaken(Exception):
    """Another process ends an administrator at this moment; nothing was written."""

    def __init__(self) -> None:
        super().__init__(_(LEASE_TAKEN))


class HashKinds:
    """The kinds of old hashes that accounts may have, as a cell of ``site``."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def expected(self) -> OldHashes:
        found = self._rows.row(tables.SITE, tables.PASSWORDS_ROW, [tables.OLD_HASHES])
        return OldHashes.parse(found.get(tables.OLD_HASHES, b""))

    def expect(self, kinds: OldHashes) -> None:
        """Note that accounts get old hashes of these kinds.  Call it before the first of them is stored."""
        both = self.expected() | kinds
        self._rows.put(tables.SITE, tables.PASSWORDS_ROW, {tables.OLD_HASHES: both.pack()})


class Directory:
    """The table of accounts.  Thread-safe.  Every method may raise StoreUnavailable."""

    def __init__(self, rows: Rows, clock_ms: Callable[[], int]) -> None:
        self.hash_kinds = HashKinds(rows)
        self.administrators = Administrators(rows, clock_ms)
        self._rows = rows
        self._clock = clock_ms
        self._lock = threading.Lock()
        self._secret = b""  # guarded by _lock; never changes once it is known

    @property
    def secret(self) -> bytes:
        """The key of the HMAC of addresses; one for all processes and commands, made by the first that needs it."""
        with self._lock:
            if not self._secret:
                self._rows.change(
                    tables.SITE, tables.SECRET_ROW, {tables.SECRET: None}, {tables.SECRET: secrets.token_bytes(32)}
                )
                self._secret = self._rows.row(tables.SITE, tables.SECRET_ROW)[tables.SECRET]
            return self._secret

    # --- looking up --------------------------------------------------------------------------------

    def account(self, name: str) -> Account | None:
        return self.at(user_row(name)) if name else None

    def at(self, row: bytes) -> Account | None:
        return account_of(row, self._rows.row(USERS, row, _ALL)) if row else None

    def by_address(self, address: str) -> Account | None:
        found = self._rows.row(EMAILS, email_row(self.secret, address)).get(tables.OF_USER)
        account = self.at(found) if found else None
        ours = account is not None and tables.folded_address(account.email) == tables.folded_address(address)
        return account if ours else None

    def all(self) -> Iterator[Account]:
        for row, cells in self._rows.scan(USERS, columns=_ALL):
            account = account_of(row, cells)
            if account is not None:
                yield account

    def has_administrator(self) -> bool:
        return next(self.administrators.rows_of_all(), None) is not None

    def origin(self, account: Account) -> str:
        """Return what ``wikkawiki.account_move`` noted of an account that it moved here, "" for others."""
        found = self._rows.row(USERS, account.row, [tables.ORIGIN])
        return found.get(tables.ORIGIN, b"").decode(errors="replace")

    def renew(self, account: Account, cells: Mapping[bytes, bytes]) -> None:
        """Write cells of the account that was looked up, but never of a different account of the same name."""
        self._change(account, dict(cells))

    # --- changes -----------------------------------------------------------------------------------

    def make(self, name: str, *, status: Status, password: str = "", email: str = "", admin: bool = False) -> Account:
        """Create an account from a checked ``name`` and ``email``, and the hash of a ``password``.

        Raises AddressTaken, with nothing written, or NameTaken; then the address is released again.
        """
        account = Account(
            row=user_row(name),
            id=secrets.token_hex(8),
            name=name,
            status=status,
            admin=admin,
            email=email,
            password=password,
            created_ms=self._clock(),
            settings=DEFAULT,
        )
        self.add(account)
        return account

    def add(self, account: Account, further: Mapping[bytes, bytes] | None = None) -> None:
        """Write a new account, with ``further`` cells.

        Raises AddressTaken, with nothing written, or NameTaken; then the address is released again.
        """
        before = self.at(account.row)
        given_up = before is not None and self._is_given_up(before)
        if not given_up and self.is_taken(account.name):
            raise NameTaken(account.name)
        if account.email and not self._take_address(account):
            raise AddressTaken(account.email)
        expected = before.id.encode() if before is not None and given_up else None
        cells = {**account_cells(account), **(further or {})}
        cells = {**dict.fromkeys((tables.ID, tables.ADMIN, tables.EMAIL, tables.PASSWORD), b""), **cells}
        if not self._rows.change(USERS, account.row, {tables.ID: expected}, cells, [b"settings", *tables.CREDENTIALS]):
            if account.email:
                self._release_address(account)
            raise NameTaken(account.name)
        if before is not None and before.email:
            self._release_address(before)

    def check_free(self, name: str) -> None:
        """Raise NameTaken if the name is taken now.  Only ``make`` decides for certain."""
        if self.is_taken(name):
            raise NameTaken(name)

    def set_status(self, account: Account, status: Status) -> None:
        """Set the status; the sessions and keys of an account that is not active end.

        Raises LastAdministrator, LeaseTaken.
        """
        if status == "active":
            self._change(account, {tables.STATUS: b"active"})
            return
        with self.administrators.end_one(account.row) as check_time:
            check_time()
            self._change(account, {tables.STATUS: status.encode()}, [*tables.CREDENTIALS])

    def set_administrator(self, account: Account, admin: bool) -> None:
        """Give the right, or take it.  Raises LastAdministrator, LeaseTaken."""
        if admin:
            self._change(account, {tables.ADMIN: flag(True)})
            return
        with self.administrators.end_one(account.row) as check_time:
            check_time()
            self._change(account, {tables.ADMIN: flag(False)})

    def set_password(self, account: Account, password: str) -> None:
        """Set a new ``password``, given as a hash; all sessions and keys end."""
        self._change(account, {tables.PASSWORD: password.encode()}, [*tables.CREDENTIALS])

    def renew_hash(self, account: Account, password: str) -> Account:
        """Store a new hash of the same password, unless the password was changed meanwhile; return the account."""
        expected = {tables.PASSWORD: account.password.encode()}
        if self._rows.change(USERS, account.row, expected, {tables.PASSWORD: password.encode()}):
            return replace(account, password=password)
        return account

    def set_settings(self, account: Account, settings: Settings) -> None:
        self._change(account, settings_cells(settings))

    def set_email(self, account: Account, email: str) -> None:
        """Set the address, or remove it if ``email`` is "".  Raises AddressTaken."""
        changed = replace(account, email=email)
        if email and not self._take_address(changed):
            raise AddressTaken(email)
        self._change(account, {tables.EMAIL: email.encode()})
        if account.email and tables.folded_address(account.email) != tables.folded_address(email):
            self._release_address(account)

    def erase(self, account: Account) -> None:
        """Erase all data of the account; the name stays taken, so no other account can have it.

        Raises LastAdministrator, LeaseTaken.
        """
        gone = [tables.PASSWORD, tables.EMAIL, tables.ADMIN, tables.NEWS, tables.SEEN, b"settings", *tables.CREDENTIALS]
        with self.administrators.end_one(account.row) as check_time:
            check_time()
            self._change(account, {tables.STATUS: b"deleted"}, gone)
        if account.email:
            self._release_address(account)

    def _change(self, account: Account, puts: dict[bytes, bytes], deletes: list[bytes] | None = None) -> None:
        """Change the account that was looked up, but never a different account of the same name."""
        self._rows.change(USERS, account.row, {tables.ID: account.id.encode()}, puts, deletes or [])

    def is_taken(self, name: str) -> bool:
        """Return whether the name, or one that looks like it, belongs to an account or a group.

        An account with the name of a group would have the group's rights.
        """
        if self._is_group(name):
            return True
        rows = [user_row(one) for one in (name, *similar_names(name))]
        found = (account_of(row, cells) for row, cells in self._rows.rows(USERS, rows).items())
        return any(account is None or not self._is_given_up(account) for account in found)

    def _is_group(self, name: str) -> bool:
        """Return whether a page of this name, in any case, lists members, so that access lists may mean a group."""
        begin = name_prefix(name) + b"\x00"
        alike = [row for row, _ in self._rows.scan(NAMES, begin, limit=_ALIKE_MAX) if row.startswith(begin)]
        keys = [page_key(one) for one in (name, *map(name_of_row, alike))]
        pages = self._rows.rows(PAGES, keys, [BODY]).values()
        return any(members_of(cells[BODY].decode(errors="replace")) for cells in pages)

    def _is_given_up(self, account: Account) -> bool:
        """Return whether the account's address was not confirmed in time, so that its name is free again."""
        return account.status == "signed-up" and self._clock() - account.created_ms > tables.UNCONFIRMED_MS

    def _take_address(self, account: Account) -> bool:
        cells = {
            tables.OF_ID: account.id.encode(),
            tables.OF_USER: account.row,
        }
        row = email_row(self.secret, account.email)
        return self._rows.change(EMAILS, row, {tables.OF_ID: None}, cells) or (
            self._rows.row(EMAILS, row).get(tables.OF_ID) == account.id.encode()
        )

    def _release_address(self, account: Account) -> None:
        row = email_row(self.secret, account.email)
        if self._rows.row(EMAILS, row).get(tables.OF_ID) == account.id.encode():
            self._rows.delete(EMAILS, row)
