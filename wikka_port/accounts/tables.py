"""Tables and cells of accounts (pure).

    table      row                               families                   holds
    users      folded name                       account settings           an account with all its sessions and keys
                                                 session key
    emails     HMAC of the folded address        of                         the account of an address
    tokens     sha256 of the token               t (31 days)                links for one use
    audit      salt, inverted ms (13), id (16)   a, n (90 days)             changes of accounts and rights
    networks   md5 of page, inverted number      n (90 days)                networks of authors without an account
    site       "antispam"                        settings                   see ``antispam.stored_policy``
               "settings history"                settings                   see ``site_settings``
               "accounts"                        secret                     the secret of the addresses' HMAC
               "format"                          secret                     the folder's format (``folder_format``)
               "served"                          secret                     the address of the wiki that started last
               "passwords"                       secret                     the kinds of old hashes (``passwords``)
               "administrators"                  secret                     a lease (``directory``)

Cells of ``users``:
    account:id         16 random hexadecimal digits: the cell that takes the name (absent before)
    account:name account:status account:admin account:email account:password account:created account:renamed
    account:edits                                accepted edits, until antispam trusts the account
    account:origin                               of an account that was moved here (``wikkawiki.account_move``)
    account:news account:seen                    the newest notice, and up to which notice all are read (``notices``)
    account:watches                              random; another one after each change of the account's watches
    settings:zone settings:theme ...             see ``settings``
    settings:visit                               see ``records``
    session:<sha256 of the token, hexadecimal>   see ``sessions``; the family ends 30 days after its last write
    key:<sha256 of the token, hexadecimal>       see ``api_keys``

Sessions lie in the account's row.  So a request needs one get for its session and the account's status and settings.
"Sign out everywhere" is one delete of the family.  A session can be put on the condition that the password is still
the verified one.  A table of sessions with an index by account would need two gets, and a ban could miss a sign-in
that the index does not have yet.

Invariant E1: a row of ``emails`` belongs to the account that names the address, or is younger than GRACE_MS.  The row
is put before the account's row and deleted after it; ``account_check`` finds the remains of a crash in between.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Any, Final

from wikka_port.schema import CHANGE_SALTS, TIME_MAX_MS, TableSpec, folded

USERS: Final = b"users"
EMAILS: Final = b"emails"
TOKENS: Final = b"tokens"
AUDIT: Final = b"audit"
NETWORKS: Final = b"networks"
SITE: Final = b"site"

_DAY_S: Final = 24 * 3600
SESSION_S: Final = 30 * _DAY_S  # without a request
SESSION_LONGEST_S: Final = 180 * _DAY_S  # even if it is used
TOKENS_S: Final = 31 * _DAY_S  # the longest lifetime of any kind of link, and a day
NETWORKS_S: Final = 90 * _DAY_S
UNCONFIRMED_MS: Final = _DAY_S * 1000  # an account without a confirmed address keeps its name for this time
GRACE_MS: Final = 10 * 60 * 1000  # a registration takes seconds; one that is incomplete for longer has crashed


def _family(ttl_s: int | None = None) -> dict[str, Any]:
    return {"max_versions": 1} if ttl_s is None else {"max_versions": 1, "time_to_live": ttl_s}


TABLES: Final = (
    TableSpec(
        USERS, {"account": _family(), "settings": _family(), "session": _family(SESSION_S), "key": _family()}, {}
    ),
    TableSpec(EMAILS, {"of": _family()}, {}),
    TableSpec(TOKENS, {"t": _family(TOKENS_S)}, {}),
    TableSpec(AUDIT, {"a": _family(), "n": _family(NETWORKS_S)}, {}),
    TableSpec(NETWORKS, {"n": _family(NETWORKS_S)}, {}),
    TableSpec(SITE, {"secret": _family(), "settings": _family()}, {}),
)

ID: Final = b"account:id"
NAME: Final = b"account:name"
STATUS: Final = b"account:status"
ADMIN: Final = b"account:admin"
EMAIL: Final = b"account:email"
PASSWORD: Final = b"account:password"
CREATED: Final = b"account:created"
EDITS: Final = b"account:edits"
ORIGIN: Final = b"account:origin"
NEWS: Final = b"account:news"  # time of the newest notice (``notices.notice_rows``)
SEEN: Final = b"account:seen"  # notices up to this time are read
WATCHES_STAMP: Final = b"account:watches"
RENAMED: Final = b"account:renamed"  # of a deleted account: all its edits have the neutral name
ALL_RENAMED: Final = b"3"  # its value; "1" is from before files had it, too, "2" from before jobs on rights had
SETTINGS: Final = b"settings:"
VISIT: Final = b"settings:visit"
SESSION: Final = b"session:"
KEY: Final = b"key:"
CREDENTIALS: Final = (b"session", b"key")  # families of what signs a request in; a new password ends them

OF_ID: Final = b"of:id"
OF_USER: Final = b"of:user"

SECRET: Final = b"secret:key"
SECRET_ROW: Final = b"accounts"
SERVED_ROW: Final = b"served"
PASSWORDS_ROW: Final = b"passwords"
ADMINISTRATORS_ROW: Final = b"administrators"
LEASE: Final = b"secret:lease"
OLD_HASHES: Final = b"secret:old"
ADDRESS: Final = b"secret:address"
NETWORK: Final = b"n:network"


def user_row(name: str) -> bytes:
    return folded(name).encode()


def folded_address(address: str) -> str:
    """Return the form in which addresses are compared: without case, as nearly every mail server does."""
    return address.strip().casefold()


def email_row(secret: bytes, address: str) -> bytes:
    return hmac.new(secret, folded_address(address).encode("utf-8", "replace"), "sha256").hexdigest().encode()


def token_row(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest().encode()


def audit_row(time_ms: int, entry: bytes) -> bytes:
    """Return the row of an entry in the audit; ``entry`` is 16 random hexadecimal digits."""
    salt = CHANGE_SALTS[int(entry[:2], 16) % len(CHANGE_SALTS)]
    return salt + b"%013d" % (TIME_MAX_MS - time_ms) + entry
