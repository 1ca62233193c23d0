"""The accounts of a WikkaWiki, moved here with their passwords, addresses, settings and states.

``account:origin`` of a moved account is ``wikkawiki DIGEST``, the digest of the values that were moved.  By it a later
run tells three cases apart:

    the account has the values that were moved      it gets the source's, if these are newer
    the account was changed here                    it stays as it is
    there is no origin                              somebody else has the name here: nothing is moved, and it is named

The password is compared by the beginning of its stored value (kind and salt), and if it has no salt, by a hash.  A
password that was set or renewed here stays.

A source that does not name its administrators changes none here.  The last administrator stays one, whatever the source
says (``accounts.directory.Administrators``).

The states of WikkaWiki: deleted accounts become banned ones, without password and address, so that their edits keep
their names; "invited" and "signed-up", which could sign in there, become active.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from typing import Final

from wikka_port.accounts import tables
from wikka_port.accounts.directory import AddressTaken, Directory, LastAdministrator, LeaseTaken, NameTaken
from wikka_port.accounts.passwords import NO_OLD_HASHES, OldHash, Passwords, UnknownHash, kinds_of_stored
from wikka_port.accounts.records import Account, flag
from wikka_port.accounts.settings import settings_cells, settings_of
from wikka_port.accounts.tables import user_row
from wikka_port.accounts.user_names import Unsuitable, checked_address, checked_name
from wikka_port.comments.threads import NEWEST, OLDEST, THREADED
from wikka_port.schema import folded
from wikka_port.visitors import Status
from wikka_port.wikkawiki.comparison import Compared, record_digest
from wikka_port.wikkawiki.source_database import Source
from wikka_port.wikkawiki.source_pages import local_time_ms
from wikka_port.wikkawiki.stored_text import unescaped

_COLUMNS: Final = (
    *("name", "password", "email", "revisioncount", "changescount", "doubleclickedit", "signuptime", "status"),
    *("md5_password", "challenge", "force_password_reset", "show_comments", "default_comment_display"),
)
_STATUSES: Final[Mapping[str, Status]] = {
    "suspended": "suspended",
    "banned": "banned",
    "deleted": "banned",
    "pending": "pending",
}
_ORDERS: Final = {"1": OLDEST, "2": NEWEST, "3": THREADED}


@dataclass(slots=True)
class AccountReport:
    """Outcome of a move of accounts; each entry of a list is a line for a person."""

    outcomes: Counter[str] = field(default_factory=Counter)  # "made", "updated", "unchanged"
    names: set[str] = field(default_factory=set)  # of all moved accounts, as they are written here
    refused: list[str] = field(default_factory=list)
    taken: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)  # changed in this wiki, so they stay
    without_address: list[str] = field(default_factory=list)
    without_password: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)  # administrators who end in the source, and stay here


@dataclass(frozen=True, slots=True)
class MovedAccount:
    account: Account  # without its password
    old: OldHash | None  # None: it gets no password
    problem: str  # why it gets no password; "" if it has none to get
    stored: str = ""  # its password as a wiki like this one stores it; then ``old`` is None
    names_administrators: bool = True  # False: the source does not say who is one

    @property
    def digest(self) -> str:
        return digest_of(self.account).hex()


def digest_of(account: Account) -> bytes:
    """Return the digest of the values that are moved, without the password."""
    settings = account.settings
    shown = (settings.changes, settings.revisions, settings.dblclick)
    return record_digest(account.name, account.status, account.email, account.admin, account.created_ms, *shown)


class AccountSource:
    """Accounts of the source, by name."""

    def __init__(
        self, source: Source, zone: tzinfo, administrators: Collection[str] | None, report: AccountReport
    ) -> None:
        """Take the names of the ``administrators``, None if they are not known."""
        self._source = source
        self._zone = zone
        self._names_administrators = administrators is not None
        self._administrators = {folded(name) for name in administrators or ()}
        self._report = report
        self._has_salts = source.has("users", "challenge")

    def __iter__(self) -> Iterator[MovedAccount]:
        for row in self._source.rows("users", _COLUMNS, "name"):
            values = dict(zip(_COLUMNS, row, strict=True))
            name = unescaped(values["name"]) if self._source.escapes_html else values["name"]
            try:
                name = checked_name(name)
            except Unsuitable as unsuitable:
                self._report.refused.append(f"{name}: {unsuitable}")
                continue
            yield replace(self._account(name, values), names_administrators=self._names_administrators)

    def _account(self, name: str, values: Mapping[str, str]) -> MovedAccount:
        settings = {
            "changes": values["changescount"],
            "revisions": values["revisioncount"],
            "dblclick": "1" if values["doubleclickedit"] == "Y" else "",
            "comments": _ORDERS.get(values["default_comment_display"], OLDEST)
            if values["show_comments"] == "Y"
            else "",
        }
        is_deleted = values["status"] == "deleted"
        account = Account(
            row=user_row(name),
            id=secrets.token_hex(8),
            name=name,
            status=_STATUSES.get(values["status"], "active"),
            admin=folded(name) in self._administrators,
            email="" if is_deleted else self._address(name, values["email"]),
            password="",
            created_ms=local_time_ms(values["signuptime"], self._zone) or 0,
            settings=settings_of(settings),
        )
        if is_deleted:
            return MovedAccount(account, None, "")
        if values["force_password_reset"] not in ("", "0"):
            return MovedAccount(account, None, "had to set a new password there")
        try:
            return MovedAccount(account, self._hash(values), "")
        except UnknownHash as unknown:
            return MovedAccount(account, None, str(unknown))

    def _address(self, name: str, address: str) -> str:
        if not address:
            return ""
        try:
            return checked_address(unescaped(address) if self._source.escapes_html else address)
        except Unsuitable:
            self._report.without_address.append(f"{name}: {address!a} is no mail address")
            return ""

    def _hash(self, values: Mapping[str, str]) -> OldHash:
        """Raises UnknownHash."""
        password = values["password"]
        if password.startswith("$2"):
            return OldHash.of_bcrypt(password)
        digest = password or values["md5_password"]
        return OldHash.of_md5(digest, values["challenge"], "html" if self._has_salts else "plain")


class AccountMove:
    """Moves accounts into the directory; calling it again changes nothing that is here already."""

    def __init__(
        self, directory: Directory, passwords: Passwords, report: AccountReport, *, source: str = "wikkawiki"
    ) -> None:
        """Take the kind of wiki from which the accounts come, a word."""
        self.report = report
        self._origin = f"{source} "
        self._directory = directory
        self._passwords = passwords
        self._expected = NO_OLD_HASHES

    def move(self, moved: MovedAccount) -> None:
        """Move one account.  Raises StoreUnavailable."""
        there = self._directory.account(moved.account.name)
        if there is None:
            self._make(moved)
        else:
            self._renew(there, moved)

    def _make(self, moved: MovedAccount) -> None:
        account = replace(moved.account, password=self._wrapped(moved))
        cells = {tables.ORIGIN: f"{self._origin}{moved.digest}".encode(), **settings_cells(account.settings)}
        try:
            try:
                self._directory.add(account, cells)
            except AddressTaken:
                self.report.without_address.append(f"{account.name}: another account has {account.email}")
                account = replace(account, email="")
                cells[tables.ORIGIN] = f"{self._origin}{digest_of(account).hex()}".encode()
                self._directory.add(account, cells)
        except NameTaken:
            self.report.taken.append(
                f"{account.name}: an account or a group here has the name, or one that looks like it"
            )
            return
        self.report.outcomes["made"] += 1
        self._note(moved)

    def _wrapped(self, moved: MovedAccount) -> str:
        if moved.old is None and not moved.stored:
            return ""
        kinds = self._expected | (moved.old.kinds if moved.old is not None else kinds_of_stored(moved.stored))
        if kinds != self._expected:
            self._directory.hash_kinds.expect(kinds)
            self._expected = kinds
        return self._passwords.wrapped(moved.old) if moved.old is not None else moved.stored

    def _renew(self, there: Account, moved: MovedAccount) -> None:
        """Give an account that was moved before what is newer in the source."""
        origin = self._directory.origin(there)
        if not origin.startswith(self._origin) and moved.old is None and digest_of(there) == digest_of(moved.account):
            self.report.outcomes["unchanged"] += 1  # an export that came back to its own wiki
            self._note(moved)
            return
        if not origin.startswith(self._origin):
            self.report.taken.append(f"{there.name}: an account here has this name")
            return
        self._note(moved)
        cells: dict[bytes, bytes] = {}
        wanted = replace(moved.account, email=there.email)  # an address changes by a mail to it alone
        if not moved.names_administrators:
            wanted = replace(wanted, admin=there.admin)
        if digest_of(there).hex() != origin.removeprefix(self._origin):
            self.report.changed.append(f"{there.name}: changed here, stays as it is")
        else:
            if moved.account.email != there.email:
                self.report.without_address.append(f"{there.name}: has the address {moved.account.email!r} there")
            if digest_of(wanted) != digest_of(there):
                cells = _newer_cells(wanted, self._origin)
        if moved.old is not None and self._is_changed(there.password, moved.old):
            cells[tables.PASSWORD] = self._wrapped(moved).encode()
        if cells and self._is_renewed(there, wanted, cells):
            self.report.outcomes["updated"] += 1
        else:
            self.report.outcomes["unchanged"] += 1

    def _is_renewed(self, there: Account, wanted: Account, cells: dict[bytes, bytes]) -> bool:
        """Write ``cells``, but the last administrator stays one; return False if there is nothing else to write."""
        if tables.ADMIN not in cells or (wanted.admin and wanted.status == "active"):
            self._directory.renew(there, cells)
            return True
        try:
            with self._directory.administrators.end_one(there.row) as check_time:
                check_time()
                self._directory.renew(there, cells)
        except (LastAdministrator, LeaseTaken) as problem:
            self.report.kept.append(f"{there.name}: {problem}")
            stays = replace(wanted, admin=there.admin, status=there.status)
            if digest_of(stays) == digest_of(there) and tables.PASSWORD not in cells:
                return False
            self._directory.renew(there, {**cells, **_newer_cells(stays, self._origin)})
        return True

    def _is_changed(self, stored: str, old: OldHash) -> bool:
        """Return whether the password was changed in the source since it was moved."""
        if stored.startswith("$") or not stored:
            return False  # set here
        return not stored.startswith(old.begin) or (not old.salt and not self._passwords.is_wrapped(stored, old))

    def _note(self, moved: MovedAccount) -> None:
        self.report.names.add(moved.account.name)
        if moved.problem:
            self.report.without_password.append(f"{moved.account.name}: {moved.problem}")


def compare_accounts(directory: Directory, source: Iterable[MovedAccount], report: AccountReport) -> Compared:
    """Compare the moved values of all accounts; those that were changed here, or were not moved, are left out."""
    compared = Compared("accounts")
    changed = _names(report.changed)
    addressless, kept = _names(report.without_address), _names(report.kept)
    for moved in source:
        name = moved.account.name
        there = directory.account(name)
        if name not in report.names or (there is not None and there.name in changed):
            compared.leave_out(1)
            continue
        wanted = moved.account
        if there is not None and name in addressless:
            wanted = replace(wanted, email=there.email)
        if there is not None and not moved.names_administrators:
            wanted = replace(wanted, admin=there.admin)
        if there is not None and name in kept:
            wanted = replace(wanted, admin=there.admin, status=there.status)
        compared.add(name, [digest_of(wanted)], [] if there is None else [digest_of(there)])
    return compared


def _newer_cells(account: Account, origin: str) -> dict[bytes, bytes]:
    return {
        tables.STATUS: account.status.encode(),
        tables.ADMIN: flag(account.admin),
        tables.CREATED: b"%d" % account.created_ms,
        tables.ORIGIN: f"{origin}{digest_of(account).hex()}".encode(),
        **settings_cells(account.settings),
    }


def _names(lines: list[str]) -> set[str]:
    return {line.partition(":")[0] for line in lines}
