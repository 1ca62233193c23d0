"""Accounts as an administrator lists and changes them, in the browser or by ``wikka user``; the audit has each change.

``by`` is who makes the change, as the audit names it, and ``network`` where the person is.  The caller has checked that
the person administers the site.

The entry of the audit follows its change.  A crash in between leaves a change that the audit lacks.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final

from wikka_port.accounts.deactivation import Edits, leave, neutral_name
from wikka_port.accounts.directory import AddressTaken, LastAdministrator, LeaseTaken, NameTaken
from wikka_port.accounts.factory import Accounts
from wikka_port.accounts.records import Account, account_of
from wikka_port.accounts.rows import Rows
from wikka_port.accounts.tables import USERS, user_row
from wikka_port.accounts.user_names import Unsuitable, checked_address, checked_name
from wikka_port.limits import ACCOUNTS_LISTED, ACCOUNTS_SCANNED
from wikka_port.store import StoreUnavailable
from wikka_port.texts import N_, _
from wikka_port.visitors import Status

log = logging.getLogger(__name__)

# The other states belong to accounts that have not begun; the name of one that is "signed-up" for long becomes free.
SETTABLE: Final[tuple[Status, ...]] = ("active", "pending", "suspended", "banned", "deleted")
ADMINISTRATORS: Final = "administrator"  # in the place of a status: those that administer
_COLUMNS: Final = (b"account", b"settings")
ERASED: Final = N_("The account “{name}” is erased, and does not come back; its name stays taken.")
NAME_TAKEN: Final = N_("“{name}” is taken, or looks like a name that is.")
NO_MAIL: Final = N_("No mail is sent: the account has no address, or is not active, or the wiki has no mail.")
ADDRESS_TAKEN: Final = N_("Another account has this address.")


class NotChanged(Exception):
    """Nothing was changed; ``str()`` is a sentence for the administrator."""


@dataclass(frozen=True, slots=True)
class AccountChanges:
    """Every method may raise StoreUnavailable."""

    wiki: Edits
    accounts: Accounts
    by: str
    network: str = ""

    def add(self, name: str, *, email: str = "", admin: bool = False) -> Account:
        """Make an account whose owner sets the password by a link.  Raises NotChanged."""
        try:
            address = checked_address(email) if email.strip() else ""
            known = checked_name(name, self.accounts.registration.names)
            account = self.accounts.directory.make(known, status="invited", email=address, admin=admin)
        except Unsuitable as unsuitable:
            raise NotChanged(str(unsuitable)) from None
        except NameTaken:
            raise NotChanged(_(NAME_TAKEN, name=name.strip())) from None
        except AddressTaken:
            raise NotChanged(_(ADDRESS_TAKEN)) from None
        self._note("register", account.name)
        return account

    def set_status(self, account: Account, status: Status) -> Account:
        """Set a status of SETTABLE; return the account as it is then.

        ``deleted`` erases the account, and takes a time that grows with the number of all edits.  Raises NotChanged.
        """
        _require_alive(account, but=status == "deleted")
        try:
            if status == "deleted":
                leave(self.wiki, self.accounts.directory, account)
            else:
                self.accounts.directory.set_status(account, status)
        except (LastAdministrator, LeaseTaken) as refused:
            raise NotChanged(str(refused)) from None
        if status == "deleted":
            self._note("delete", neutral_name(account))
        else:
            self._note("status", account.name, status)
        return self._present(account)

    def set_administrator(self, account: Account, admin: bool) -> Account:
        """Give the right to administer, or take it.  Raises NotChanged."""
        _require_alive(account)
        try:
            self.accounts.directory.set_administrator(account, admin)
        except (LastAdministrator, LeaseTaken) as refused:
            raise NotChanged(str(refused)) from None
        self._note("administrator", account.name, "yes" if admin else "no")
        return self._present(account)

    def set_email(self, account: Account, email: str) -> Account:
        """Set the address without a confirmation, or remove it by "".  Raises NotChanged."""
        _require_alive(account)
        try:
            self.accounts.directory.set_email(account, checked_address(email) if email.strip() else "")
        except Unsuitable as unsuitable:
            raise NotChanged(str(unsuitable)) from None
        except AddressTaken:
            raise NotChanged(_(ADDRESS_TAKEN)) from None
        self._note("email", account.name)
        return self._present(account)

    def reset_token(self, account: Account, life_s: int | None = None) -> str:
        """Return the token of a link that sets a password; the present one is valid until then.  Raises NotChanged."""
        _require_alive(account)
        token = self.accounts.registration.reset_link(account, life_s)
        self._note("reset link", account.name)
        return token

    def mail_reset(self, account: Account) -> None:
        """Mail such a link to the account's address.  Raises NotChanged if no mail would be sent."""
        _require_alive(account)
        has_mail = self.accounts.registration.is_address_required
        if not has_mail or not account.email or account.status in ("banned", "suspended"):
            raise NotChanged(_(NO_MAIL))
        self.accounts.registration.request_reset(account.name)
        self._note("reset link", account.name, "by mail")

    def invitation(self) -> str:
        """Return the token of a link with which somebody registers, whatever the site's registration is."""
        token = self.accounts.registration.links.issue("invitation")
        self._note("invitation", "")
        return token

    def end_sessions(self, account: Account) -> None:
        self.accounts.sessions.end_all(account.row)
        self._note("sessions ended", account.name, "all")

    def end_keys(self, account: Account) -> None:
        self.accounts.keys.end_all(account.row)
        self._note("key ended", account.name, "all")

    def _present(self, account: Account) -> Account:
        return self.accounts.directory.at(account.row) or account

    def _note(self, what: str, user: str, note: str = "") -> None:
        try:
            self.accounts.audit.note(what, user=user, by=self.by, note=note, network=self.network)
        except StoreUnavailable as away:
            log.warning("%s, of %s by %s, is not in the audit: %s", what, user, self.by, away)


def _require_alive(account: Account, *, but: bool = False) -> None:
    if account.status == "deleted" and not but:
        raise NotChanged(_(ERASED, name=account.name))


def account_part(
    rows: Rows, *, begins: str = "", state: str = "", start: bytes = b"", limit: int = ACCOUNTS_LISTED
) -> tuple[list[Account], bytes]:
    """Return up to ``limit`` accounts by name from the row ``start`` on, and the row to go on from, b"" at the end.

    ``begins`` is the beginning of the name, without case and accents; ``state`` a status, or ADMINISTRATORS.
    ACCOUNTS_SCANNED rows are read at most, so a part may be short though others follow.  Raises StoreUnavailable.
    """
    prefix, found = user_row(begins), list[Account]()
    read = rows.scan(USERS, max(start, prefix), columns=_COLUMNS, limit=ACCOUNTS_SCANNED + 1)
    for number, (row, cells) in enumerate(read):
        if not row.startswith(prefix):
            return found, b""
        if len(found) == limit or number == ACCOUNTS_SCANNED:
            return found, row
        account = account_of(row, cells)
        if account is not None and _is_in(account, state):
            found.append(account)
    return found, b""


def _is_in(account: Account, state: str) -> bool:
    if state == ADMINISTRATORS:
        return account.admin and account.status == "active"
    return state in ("", account.status)
