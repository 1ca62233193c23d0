"""The users of a DokuWiki, ``conf/users.auth.php``, as accounts.

    login:hash:Real Name:mail@example.org:group,group         a colon in a value is written ``\\:``

A password whose hash is MD5 or bcrypt comes along within Argon2id.  Hashes of other kinds (DokuWiki's usual ones were
salted MD5 of many rounds and SHA-1) cannot be checked here, so that these users get a link: they are named.  The real
name does not come, for accounts here have none.  Users of the groups that the setting ``superuser`` names are
administrators.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Final

from wikka_port.accounts.passwords import OldHash, UnknownHash
from wikka_port.accounts.records import Account
from wikka_port.accounts.settings import settings_of
from wikka_port.accounts.tables import user_row
from wikka_port.accounts.user_names import Unsuitable, checked_address, checked_name
from wikka_port.imports.dokuwiki_acl import DokuUser, TooManyLines
from wikka_port.wikkawiki.account_move import AccountReport, MovedAccount

_LINES_MAX: Final = 100_000
_VALUE: Final = re.compile(r"(?:[^:\\]|\\.)*")
_KINDS: Final = (
    (re.compile(r"\$1\$"), "smd5"),
    (re.compile(r"\$apr1\$"), "apr1"),
    (re.compile(r"\$[56]\$"), "crypt of SHA-2"),
    (re.compile(r"\$argon2"), "Argon2"),
    (re.compile(r"\$[PHS]\$"), "that of phpass"),
    (re.compile(r"\{SSHA\}"), "ssha"),
    (re.compile(r"[0-9a-f]{40}\Z"), "sha1"),
)


class DokuWikiUsers:
    """The users of a file, as they are there and as accounts here."""

    def __init__(self, text: str, superusers: str | None, report: AccountReport) -> None:
        """Take the value of the setting ``superuser``: names of users, and of groups with ``@``, with commas.

        If it is None the settings do not name administrators.  Raises TooManyLines.
        """
        self.rows = tuple(_rows(text))
        self._names_administrators = superusers is not None
        self._superusers = {one.strip().lower() for one in (superusers or "").split(",") if one.strip()}
        self._report = report

    def users(self) -> list[DokuUser]:
        return [DokuUser(login, groups) for login, _, _, groups in self.rows]

    def __iter__(self) -> Iterator[MovedAccount]:
        for login, digest, address, groups in self.rows:
            try:
                name = checked_name(login)
            except Unsuitable as unsuitable:
                self._report.refused.append(f"{login}: {unsuitable}")
                continue
            account = Account(
                row=user_row(name),
                id=secrets.token_hex(8),
                name=name,
                status="active",
                admin=not self._superusers.isdisjoint({login.lower(), *(f"@{one}" for one in groups)}),
                email=self._address(name, address),
                password="",
                created_ms=0,
                settings=settings_of({}),
            )
            try:
                moved = MovedAccount(account, _hash(digest), "")
            except UnknownHash as unknown:
                moved = MovedAccount(account, None, str(unknown))
            yield replace(moved, names_administrators=self._names_administrators)

    def _address(self, name: str, address: str) -> str:
        if not address:
            return ""
        try:
            return checked_address(address)
        except Unsuitable:
            self._report.without_address.append(f"{name}: {address!a} is no mail address")
            return ""


def _rows(text: str) -> Iterator[tuple[str, str, str, frozenset[str]]]:
    """Yield login, hash, address and groups of each user; the first of a login counts.  Raises TooManyLines."""
    seen: set[str] = set()
    lines = text.splitlines()
    if len(lines) > _LINES_MAX:
        raise TooManyLines("users.auth.php", _LINES_MAX)
    for line in lines:
        if line.lstrip().startswith("#") or ":" not in line:
            continue
        values = [_unescaped(one) for one in _split(line)]
        if len(values) >= 4 and values[0] and values[0] not in seen:
            seen.add(values[0])
            groups = values[4].split(",") if len(values) > 4 else []
            yield (
                values[0],
                values[1],
                values[3].strip(),
                frozenset(one.strip().lower() for one in groups if one.strip()),
            )


def _split(line: str) -> list[str]:
    values, at = [], 0
    while at <= len(line):
        found = _VALUE.match(line, at)
        end = found.end() if found is not None else len(line)
        values.append(line[at:end])
        at = end + 1
    return values


def _unescaped(value: str) -> str:
    return re.sub(r"\\(.)", r"\1", value)


def _hash(digest: str) -> OldHash:
    """Raises UnknownHash."""
    if digest.startswith("$2"):
        return OldHash.of_bcrypt(digest, "plain")
    kind = next((name for pattern, name in _KINDS if pattern.match(digest)), "")
    if kind:
        raise UnknownHash(f"its password has a hash of the kind {kind}, which cannot be checked here")
    return OldHash.of_md5(digest, "", "plain")


def logins_moved(users: Collection[DokuUser], names: Collection[str]) -> set[str]:
    """Return the logins of those users that are accounts here under exactly their names."""
    return {one.login for one in users} & set(names)
