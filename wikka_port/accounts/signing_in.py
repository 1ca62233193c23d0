"""Signing in with a name and a password.

A wrong password and an unknown name get the same answer after the same work: three gets, the
same hashes, one entry in the audit.  Only a person who knows an account's password learns the account's state.

Attempts are limited by network and by account, so that guesses from many networks at one account are slow together.
Attempts from a network with a session of the account are counted separately, so that guesses from other networks do
not lock the owner out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from wikka_port.accounts.audit import Audit
from wikka_port.accounts.directory import Directory
from wikka_port.accounts.passwords import Passwords
from wikka_port.accounts.records import Account
from wikka_port.accounts.sessions import Sessions
from wikka_port.accounts.tables import user_row
from wikka_port.accounts.user_names import ADDRESS_CHARS_MAX, TYPED_CHARS_MAX, usual_password
from wikka_port.security import RateLimiter, network_of
from wikka_port.texts import N_, _

WRONG: Final = N_("The name or the password is not right.")
WRONG_PASSWORD: Final = N_("The password is not right.")
NOT_ACTIVE: Final = {
    "signed-up": N_("Please confirm your mail address first: follow the link that was sent to you."),
    "invited": N_("This account has no password yet: follow the link that you were given."),
    "pending": N_("This account waits for an administrator's approval."),
    "suspended": N_("This account is suspended. Please ask an administrator."),
    "banned": N_("This account is banned."),
    "deleted": WRONG,
}


class Refused(Exception):
    """The request is refused; ``str()`` is a sentence for the person."""

    def __init__(self, message: str, status: int = 403, wait_s: int = 0) -> None:
        super().__init__(message)
        self.status = status
        self.wait_s = wait_s


@dataclass(frozen=True, slots=True)
class Client:
    """The address and the browser that sent a request."""

    address: str
    agent: str

    @property
    def network(self) -> str:
        return network_of(self.address)


@dataclass(frozen=True, slots=True)
class SigningIn:
    directory: Directory
    sessions: Sessions
    passwords: Passwords
    audit: Audit
    by_network: RateLimiter
    by_account: RateLimiter

    def sign_in(self, name: str, password: str, client: Client) -> tuple[Account, str]:
        """Return the account and the cookie of its new session.  Raises Refused, StoreUnavailable."""
        self.check_rate(client)
        name = name[:ADDRESS_CHARS_MAX]
        account = self._named(name)
        self._check(self.by_account, self._counted_as(account.row if account else user_row(name), client))
        if not self.is_password(account, password):
            self.audit.note("sign-in refused", user=account.name if account else "", network=client.network)
            raise Refused(_(WRONG))
        assert account is not None, "a password is somebody's"
        if account.status != "active":
            raise Refused(_(NOT_ACTIVE[account.status]))
        if self.passwords.is_outdated(account.password):
            renewed = self.passwords.hashed(usual_password(password[:TYPED_CHARS_MAX]))
            account = self.directory.renew_hash(account, renewed)
        cookie = self.sessions.begin(account, network=client.network, agent=client.agent)
        if cookie is None:  # a new password was set while the old one was verified
            raise Refused(_(WRONG))
        self.audit.note("sign-in", user=account.name, network=client.network)
        return account, cookie

    def is_password(self, account: Account | None, password: str) -> bool:
        """Return whether it is the account's password; False for None, after the same work."""
        stored = account.password if account is not None and account.status != "deleted" else ""
        return self.passwords.verify(stored, password[:TYPED_CHARS_MAX], self.directory.hash_kinds.expected())

    def check_rate(self, client: Client) -> None:
        """Count an attempt of the client's network.  Raises Refused if there were too many."""
        self._check(self.by_network, client.address)

    def _counted_as(self, row: bytes, client: Client) -> str:
        is_known = any(one.session.network == client.network for one in self.sessions.of(row))
        return f"{row.hex()} {client.network}" if is_known else row.hex()

    def _check(self, limiter: RateLimiter, key: str) -> None:
        wait_s = math.ceil(limiter.wait_s(key))
        if wait_s > 0:
            said = _("These were many attempts in a short time. Please wait {wait_s} s.", wait_s=wait_s)
            raise Refused(said, 429, wait_s)

    def _named(self, name: str) -> Account | None:
        return self.directory.by_address(name) if "@" in name else self.directory.account(name.strip())
