"""Texts of mails (pure).  Addresses in them are made of the wiki's public address, never of a request's host."""

from __future__ import annotations

from dataclasses import dataclass

from wikka_port.urls import site_path


@dataclass(frozen=True, slots=True)
class Letters:
    site_name: str
    base: str  # the wiki's public address, without a slash at its end

    def address(self, handler: str, token: str) -> str:
        return self.base + site_path(handler, token=token)

    def confirm(self, name: str, token: str) -> tuple[str, str]:
        return self._letter(
            "please confirm your mail address",
            f"""\
Somebody, most likely you, gave this address for the account "{name}".
To confirm it, open this page within 30 minutes:

    {self.address("confirm", token)}

If it was not you, nothing has to be done.""",
        )

    def has_account(self, name: str) -> tuple[str, str]:
        return self._letter(
            "you have an account already",
            f"""\
Somebody, most likely you, wanted to register with this address.
It belongs to the account "{name}" already. If the password is forgotten,
a new one can be set from this page:

    {self.base + site_path("reset")}

If it was not you, nothing has to be done.""",
        )

    def reset(self, name: str, token: str) -> tuple[str, str]:
        return self._letter(
            "a new password",
            f"""\
Somebody, most likely you, asked for a new password of the account "{name}".
To set one, open this page within 30 minutes:

    {self.address("reset", token)}

If it was not you, nothing has to be done; the old password stays.""",
        )

    def changed(self, name: str, what: str) -> tuple[str, str]:
        return self._letter(
            f"your {what} was changed",
            f"""\
The {what} of the account "{name}" was changed.

If it was not you, set a new password at once from this page, and
tell an administrator:

    {self.base + site_path("reset")}""",
        )

    def moved(self, name: str) -> tuple[str, str]:
        """For the address that an account had."""
        return self._letter(
            "your mail address was changed",
            f"""\
The account "{name}" has another mail address from now on, and mails
about it do not come here any more.

If it was not you, tell an administrator at once.""",
        )

    def _letter(self, subject: str, text: str) -> tuple[str, str]:
        return f"{self.site_name}: {subject}", f"{text}\n\n-- \n{self.site_name}, {self.base}/\n"
