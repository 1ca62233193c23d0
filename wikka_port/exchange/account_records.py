"""The accounts of a wiki as lines of its exact form, and into another wiki.

    {"kind":"account","name":"Ada","status":"active","admin":true,"email":"ada@example.org","settings":{"zone":"..."}}

A line has the hash of a password only if the export was told so; it is a stored value of ``accounts.passwords``, which
an import takes as it is.  Sessions, keys of programs and links in mails never leave the wiki.  Groups are pages, and so
are no matter of this module.

An import goes through ``wikkawiki.account_move``: an account that is here already and was changed here stays, a name
that belongs to somebody else here is reported, and a second import brings what is newer.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from wikka_port.accounts.directory import Directory
from wikka_port.accounts.passwords import Passwords, UnknownHash, kinds_of_stored
from wikka_port.accounts.records import STATUSES, Account
from wikka_port.accounts.settings import DEFAULT, FLAGS, settings_of
from wikka_port.accounts.tables import user_row
from wikka_port.accounts.user_names import Unsuitable, checked_address, checked_name
from wikka_port.schema import TIME_MAX_MS
from wikka_port.wikkawiki.account_move import AccountMove, AccountReport, MovedAccount, compare_accounts
from wikka_port.wikkawiki.comparison import Compared

ORIGIN: Final = "export"  # as the source of accounts (``account_move``)


@dataclass(frozen=True, slots=True)
class AccountRecord:
    name: str
    status: str = "active"
    admin: bool = False
    email: str = ""
    created_ms: int = 0
    settings: Mapping[str, str] = field(default_factory=dict)  # those that are not at their default
    password: str = ""  # its stored value; "": none, or the export has no hashes


def account_records(accounts: Iterable[Account], *, with_hashes: bool) -> Iterator[AccountRecord]:
    for one in accounts:
        settings, usual = _words(asdict(one.settings)), _words(asdict(DEFAULT))
        changed = {key: value for key, value in settings.items() if value != usual[key]}
        password = one.password if with_hashes else ""
        yield AccountRecord(one.name, one.status, one.admin, one.email, one.created_ms, changed, password)


def _words(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return settings as a form has them."""
    return {key: ("1" if value else "") if key in FLAGS else str(value) for key, value in settings.items()}


def checked_account(record: AccountRecord, damaged: Callable[[str], Exception]) -> AccountRecord:
    """Raise what ``damaged`` makes if the record can be none of a wiki."""
    if record.status not in STATUSES:
        raise damaged(f"an account has no status {record.status!r}: was it written by a newer version?")
    if record.created_ms > TIME_MAX_MS:
        raise damaged("the time of the account is too late")
    if not all(isinstance(value, str) for value in record.settings.values()):
        raise damaged("a setting of an account has a value of another type")
    if record.password:
        try:
            kinds_of_stored(record.password)
        except UnknownHash as unknown:
            raise damaged(f"the password of {record.name}: {unknown}") from None
    return record


class AccountImport:
    """Brings accounts into a wiki.  Raises StoreUnavailable."""

    def __init__(self, directory: Directory, passwords: Passwords) -> None:
        self.report = AccountReport()
        self._directory = directory
        self._passwords = passwords

    def run(self, records: Callable[[], Iterable[AccountRecord]]) -> Compared:
        """Bring in all accounts; return the comparison of both sides.

        ``records`` is called several times; what it raises for a damaged record it raises before anything is written.
        """
        for _checked in records():
            pass
        move = AccountMove(self._directory, self._passwords, self.report, source=ORIGIN)
        for moved in self._moved(records()):
            move.move(moved)
        return compare_accounts(self._directory, self._moved(records()), self.report)

    def _moved(self, records: Iterable[AccountRecord]) -> Iterator[MovedAccount]:
        for one in records:
            try:
                name = checked_name(one.name)
                email = checked_address(one.email) if one.email else ""
            except Unsuitable as unsuitable:
                line = f"{one.name}: {unsuitable}"
                if line not in self.report.refused:
                    self.report.refused.append(line)
                continue
            account = Account(
                row=user_row(name),
                id=secrets.token_hex(8),
                name=name,
                status=one.status,  # type: ignore[arg-type]  # of STATUSES: ``checked_account``
                admin=one.admin,
                email=email,
                password="",
                created_ms=one.created_ms,
                settings=settings_of(one.settings),
            )
            yield MovedAccount(account, None, "", one.password)
