"""Texts of mails (pure), in the language of who gets them.

Addresses in them are made of the wiki's public address, never of a request's host.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from wikka_port.accounts.records import Account
from wikka_port.texts import N_
from wikka_port.texts.catalogue import Catalogue
from wikka_port.urls import site_path


@dataclass(frozen=True, slots=True)
class Letters:
    site_name: str
    base: str  # the wiki's public address, without a slash at its end
    language_of: Callable[[str], Catalogue]  # by the code in an account's settings; "": the wiki's

    def address(self, handler: str, token: str) -> str:
        return self.base + site_path(handler, token=token)

    def confirm(self, account: Account, token: str) -> tuple[str, str]:
        return self._letter(
            account,
            N_("please confirm your mail address"),
            N_("""\
Somebody, most likely you, gave this address for the account "{name}".
To confirm it, open this page within 30 minutes:

    {address}

If it was not you, nothing has to be done."""),
            self.address("confirm", token),
        )

    def has_account(self, account: Account) -> tuple[str, str]:
        return self._letter(
            account,
            N_("you have an account already"),
            N_("""\
Somebody, most likely you, wanted to register with this address.
It belongs to the account "{name}" already. If the password is forgotten,
a new one can be set from this page:

    {address}

If it was not you, nothing has to be done."""),
            self.base + site_path("reset"),
        )

    def reset(self, account: Account, token: str) -> tuple[str, str]:
        return self._letter(
            account,
            N_("a new password"),
            N_("""\
Somebody, most likely you, asked for a new password of the account "{name}".
To set one, open this page within 30 minutes:

    {address}

If it was not you, nothing has to be done; the old password stays."""),
            self.address("reset", token),
        )

    def changed_password(self, account: Account) -> tuple[str, str]:
        return self._letter(
            account,
            N_("your password was changed"),
            N_("""\
The password of the account "{name}" was changed.

If it was not you, set a new password at once from this page, and
tell an administrator:

    {address}"""),
            self.base + site_path("reset"),
        )

    def moved(self, account: Account) -> tuple[str, str]:
        """For the address that an account had."""
        return self._letter(
            account,
            N_("your mail address was changed"),
            N_("""\
The account "{name}" has another mail address from now on, and mails
about it do not come here any more.

If it was not you, tell an administrator at once."""),
        )

    def _letter(self, account: Account, subject: str, text: str, address: str = "") -> tuple[str, str]:
        said = self.language_of(account.settings.language)
        body = said.gettext(text).format(name=account.name, address=address)
        return f"{self.site_name}: {said.gettext(subject)}", f"{body}\n\n-- \n{self.site_name}, {self.base}/\n"
