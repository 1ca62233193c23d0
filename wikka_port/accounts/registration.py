"""Registration, confirmation of addresses, new passwords, and the states of an account.

    open          anybody registers                      approval  an administrator admits each account
    invitation    an administrator's link is needed      closed    only commands make accounts

    registered -> signed-up (mail is configured) -> [pending (approval)] -> active -> suspended, banned, deleted
    made by a command -> invited -> active, once a password is set from its link

An address is unique, and only its owner learns that it is taken.  If somebody registers with a taken address, the
account is made without it, cannot be confirmed, and expires like every unconfirmed account; the owner of the address
gets a mail.  Work and answer are the same as for a free address.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from wikka_port.accounts.audit import Audit
from wikka_port.accounts.directory import AddressTaken, Directory
from wikka_port.accounts.links import Link, Links
from wikka_port.accounts.mail import Letters, Mail, Outbox
from wikka_port.accounts.passwords import Passwords
from wikka_port.accounts.records import Account
from wikka_port.accounts.signing_in import Client, Refused
from wikka_port.accounts.user_names import Allowed, checked_address, checked_name, checked_password
from wikka_port.texts import N_, _
from wikka_port.visitors import Status

Policy = Literal["open", "approval", "invitation", "closed"]
CLOSED: Final = {
    "invitation": N_("Accounts here are by invitation: an administrator can send you a link."),
    "closed": N_("New accounts are made by the administrators of this wiki alone."),
}
OUTDATED: Final = N_("This link is not good any more: it is too old, or was used already. Please ask for another.")
TAKEN: Final = N_("Somebody has this name already, or one that looks like it. Please choose another.")


@dataclass(frozen=True, slots=True)
class RegistrationForm:
    """The fields of a registration form."""

    name: str
    password: str
    email: str = ""
    invitation: str = ""
    administrator: str = ""


@dataclass(frozen=True, slots=True)
class Registration:
    policy_of: Callable[[], Policy]
    names: Allowed
    directory: Directory
    links: Links
    passwords: Passwords
    audit: Audit
    outbox: Outbox
    letters: Letters

    @property
    def policy(self) -> Policy:
        """The site's present rule for new accounts."""
        return self.policy_of()

    @property
    def is_address_required(self) -> bool:
        """Whether the form requests an address; without mail an address would be useless."""
        return self.outbox.is_open

    # --- beginning ---------------------------------------------------------------------------------

    def refusal(self, form: RegistrationForm) -> str | None:
        """Return why registration is impossible, whatever is typed in the form, or None if it is possible."""
        if form.administrator:
            return None if self.links.find_link(form.administrator, "administrator") else _(OUTDATED)
        if form.invitation:
            return None if self.links.find_link(form.invitation, "invitation") else _(OUTDATED)
        closed = CLOSED.get(self.policy)
        return None if closed is None else _(closed)

    def register(self, form: RegistrationForm, client: Client) -> Account:
        """Make an account, whose status tells the next step.

        Raises Unsuitable, NameTaken, Refused, StoreUnavailable.
        """
        name = checked_name(form.name, self.names)
        email = checked_address(form.email) if self.is_address_required else ""
        password = checked_password(form.password, name=name, address=email)
        refusal = self.refusal(form)
        if refusal is not None:
            raise Refused(refusal)
        hashed = self.passwords.hashed(password)
        self.directory.check_free(name)
        if form.administrator or form.invitation:
            self._spend(form)
        status, after = self._statuses(form)
        admin = form.administrator != ""
        try:
            account = self.directory.make(name, status=status, password=hashed, email=email, admin=admin)
        except AddressTaken:
            account = self._make_unconfirmable(name, hashed, email)
        self.audit.note("register", user=name, network=client.network, note=describe_origin(form))
        if status == "signed-up":
            self._send_confirmation(account, email, after)
        return account

    def _statuses(self, form: RegistrationForm) -> tuple[Status, Status]:
        """Return the status of a new account, and its status after its address is confirmed."""
        waits = self.policy == "approval" and not form.invitation
        after: Status = "active" if form.administrator or not waits else "pending"
        return ("signed-up" if self.is_address_required and not form.administrator else after), after

    def _spend(self, form: RegistrationForm) -> None:
        token = form.administrator or form.invitation
        if self.links.spend(token, "administrator" if form.administrator else "invitation") is None:
            raise Refused(_(OUTDATED))

    def _make_unconfirmable(self, name: str, hashed: str, email: str) -> Account:
        """Make an account without its taken address, with as many writes as if the address were free."""
        account = self.directory.make(name, status="signed-up", password=hashed)
        self.audit.note("address is taken", user=name)
        self.outbox.post(lambda: self._letter_of_owner(email))
        return account

    def _letter_of_owner(self, email: str) -> Mail | None:
        owner = self.directory.by_address(email)
        return Mail(owner.email, *self.letters.has_account(owner)) if owner else None

    def _send_confirmation(self, account: Account, email: str, after: str) -> None:
        def letter() -> Mail | None:
            if account.email != email:
                return None  # the address belongs to somebody else
            return Mail(email, *self.letters.confirm(account, self._confirm_link(account, after, email)))

        self.outbox.post(letter)

    # --- links -------------------------------------------------------------------------------------

    def _confirm_link(self, account: Account, after: str, email: str) -> str:
        """Return the token of a link that is valid until the account's password or address changes.

        Otherwise a thief who had the password could keep a link to his own address, and take the account back
        after its owner has set a new password.
        """
        return self.links.issue("confirm", account.row, f"{_state_with_address(account)} {after} {email}")

    def confirm(self, token: str, client: Client) -> Account:
        """Confirm the address of a link.  Raises Refused, StoreUnavailable."""
        link = self.links.spend(token, "confirm")
        if link is None:
            raise Refused(_(OUTDATED))
        state, after, email = link.extra.split(" ", 2)
        account = self.directory.at(link.user)
        if account is None or _state_with_address(account) != state or account.status == "deleted":
            raise Refused(_(OUTDATED))
        if account.email != email:
            try:
                self.directory.set_email(account, email)
            except AddressTaken:
                raise Refused(_(OUTDATED)) from None
            if account.email:
                self.outbox.post(lambda: Mail(account.email, *self.letters.moved(account)))
        if account.status == "signed-up":
            self.directory.set_status(account, "pending" if after == "pending" else "active")
        self.audit.note("address confirmed", user=account.name, network=client.network)
        return self.directory.at(account.row) or account

    def request_address_change(self, account: Account, email: str) -> None:
        """Mail a link to the new address; the account gets the address when the link is used.  Raises Unsuitable."""
        address = checked_address(email)

        def letter() -> Mail | None:
            owner = self.directory.by_address(address)
            if owner is not None:
                return None if owner.id == account.id else Mail(address, *self.letters.has_account(owner))
            token = self._confirm_link(account, account.status, address)
            return Mail(address, *self.letters.confirm(account, token))

        self.outbox.post(letter)

    def request_reset(self, given: str) -> None:
        """Mail a link for a new password to the account's address, if any; the caller does not learn whether."""

        def letter() -> Mail | None:
            account = self.directory.by_address(given) if "@" in given else self.directory.account(given)
            if account is None or not account.email or account.status in ("deleted", "banned", "suspended"):
                return None
            return Mail(account.email, *self.letters.reset(account, self.reset_link(account)))

        self.outbox.post(letter)

    def reset_link(self, account: Account, life_s: int | None = None) -> str:
        """Return the token of a link that sets a new password; it is valid until the password changes."""
        return self.links.issue("reset", account.row, _state(account), life_s)

    def of_reset_link(self, link: Link) -> Account | None:
        account = self.directory.at(link.user)
        return account if account is not None and _state(account) == link.extra else None

    def reset(self, token: str, password: str, client: Client) -> Account:
        """Set a new password; all sessions end.  Raises Refused, StoreUnavailable.

        Raises Unsuitable before the link is used, so that the person can try another password.
        """
        link = self.links.find_link(token, "reset")
        account = self.of_reset_link(link) if link else None
        if account is None:
            raise Refused(_(OUTDATED))
        hashed = self.passwords.hashed(checked_password(password, name=account.name, address=account.email))
        if self.links.spend(token, "reset") is None:
            raise Refused(_(OUTDATED))
        self.set_password(account, hashed, client)
        if account.status in ("invited", "signed-up"):
            self.directory.set_status(account, "pending" if self._is_to_wait(account) else "active")
        return account

    def _is_to_wait(self, account: Account) -> bool:
        return account.status == "signed-up" and self.policy == "approval"

    def set_password(self, account: Account, hashed: str, client: Client) -> None:
        self.directory.set_password(account, hashed)
        self.audit.note("password", user=account.name, network=client.network)
        if account.email:
            self.outbox.post(lambda: Mail(account.email, *self.letters.changed_password(account)))

    def become_administrator(self, token: str, account: Account, client: Client) -> None:
        """Make the account an administrator by a link.  Raises Refused, StoreUnavailable."""
        if self.links.spend(token, "administrator") is None:
            raise Refused(_(OUTDATED))
        self.directory.set_administrator(account, True)
        self.audit.note("administrator", user=account.name, by="a link", network=client.network)


def describe_origin(form: RegistrationForm) -> str:
    if form.administrator:
        return "by the administrator's link"
    return "by invitation" if form.invitation else ""


def _state(account: Account, *more: str) -> str:
    """Return a digest that changes with each password and reveals nothing of it."""
    return hashlib.sha256("\n".join((account.id, account.password, *more)).encode()).hexdigest()[:32]


def _state_with_address(account: Account) -> str:
    return _state(account, account.email)
