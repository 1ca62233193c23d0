"""All objects of accounts in one value, made from a store's rows and the wiki's configuration; and sign-on by a proxy.

A proxy identifies a person, by OpenID Connect or otherwise, and names the person in a header.  The header is believed
only from the addresses in the configuration; they are compared with the address of the connection, not with one that
``X-Forwarded-For`` claims.  The proxy must remove the header from requests of visitors.  A name without an account
gets one, without a password.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from werkzeug.wrappers import Request

from wikka_port.accounts import tables
from wikka_port.accounts.api_keys import ApiKeys
from wikka_port.accounts.audit import Audit
from wikka_port.accounts.directory import Directory, NameTaken
from wikka_port.accounts.links import Links
from wikka_port.accounts.mail import Letters, Outbox, deliver_by
from wikka_port.accounts.passwords import HASHES_AT_ONCE, Passwords
from wikka_port.accounts.records import Account
from wikka_port.accounts.registration import Policy, Registration
from wikka_port.accounts.rows import Rows
from wikka_port.accounts.sessions import Sessions, visitor_of
from wikka_port.accounts.signing_in import SigningIn
from wikka_port.accounts.user_names import Allowed, Unsuitable, checked_name
from wikka_port.config import WikiConfig
from wikka_port.edit_buckets import EditBuckets
from wikka_port.security import RateLimiter
from wikka_port.texts.catalogue import ENGLISH, Catalogue, Languages
from wikka_port.visitors import Visitor

# Attempts of one network to sign in, to register, to request a mail.  A class behind one address comes at once.
NETWORK_PER_MINUTE: Final = 12
NETWORK_BURST: Final = 30
# Attempts at one account, from all networks: a few do not lock its owner out, and 1,440 guesses a day find no password.
ACCOUNT_PER_MINUTE: Final = 1
ACCOUNT_BURST: Final = 50
# Mails to one account or address.
MAIL_PER_MINUTE: Final = 1 / 20
MAIL_BURST: Final = 3
_EVERYWHERE: Final = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - compared, not bound


@dataclass(frozen=True, slots=True)
class SignOn:
    header: str  # "": no sign-on by a proxy
    proxies: frozenset[str]
    policy_of: Callable[[], Policy]
    names: Allowed
    directory: Directory
    audit: Audit
    clock_ms: Callable[[], int]

    def name(self, request: Request) -> str:
        """Return the name in the header, or "" if there is none or the request does not come from a trusted proxy."""
        if not self.header:
            return ""
        original = request.environ.get("werkzeug.proxy_fix.orig", {})
        connected = original.get("REMOTE_ADDR") or request.environ.get("REMOTE_ADDR", "")
        return request.headers.get(self.header, "").strip() if connected in self.proxies else ""

    def visitor(self, name: str, network_hash: str) -> Visitor | None:
        """Return the visitor of an account, which is created if it is missing.  Raises StoreUnavailable.

        Returns None if the account is deleted, or if none of this name can be created.
        """
        try:
            account = self.directory.account(name) or self._made(checked_name(name, self.names))
        except (Unsuitable, NameTaken):
            return None
        if account is None or account.status == "deleted":
            return None
        now = self.clock_ms()
        if account.visit.is_to_be_noted(now):
            self.directory.renew(account, {tables.VISIT: account.visit.at(now).pack()})
        visitor = visitor_of(account, network_hash, f"proxy:{account.id}".encode())
        return replace(visitor, new_after_ms=account.visit.new_after_ms(now))

    def _made(self, name: str) -> Account | None:
        policy = self.policy_of()
        if policy in ("closed", "invitation"):
            return None
        account = self.directory.make(name, status="pending" if policy == "approval" else "active")
        self.audit.note("register", user=name, note="by the proxy's sign-on")
        return account


@dataclass(frozen=True, slots=True)
class Accounts:
    rows: Rows
    directory: Directory
    sessions: Sessions
    keys: ApiKeys
    registration: Registration
    signing_in: SigningIn
    audit: Audit
    sign_on: SignOn
    by_recipient: RateLimiter  # of mails
    clock_ms: Callable[[], int]


def make_accounts(
    rows: Rows,
    config: WikiConfig,
    clock: Callable[[], float],
    buckets: EditBuckets,
    languages: Languages | None = None,
    *,
    policy_of: Callable[[], Policy] | None = None,
    site_name_of: Callable[[], str] | None = None,
) -> Accounts:
    """Make all objects of accounts; mails are written in one of ``languages``, or in English if it is None.

    ``policy_of`` and ``site_name_of`` return what counts at the moment; without them the configuration does.
    """
    policy = policy_of or (lambda: config.registration or "open")

    def language_of(code: str) -> Catalogue:
        return ENGLISH if languages is None else languages.catalogue(code or config.language)

    def clock_ms() -> int:
        return int(clock() * 1_000)

    def limiter(purpose: str, per_minute: float, burst: int) -> RateLimiter:
        return RateLimiter(per_minute, burst, buckets, clock, purpose)

    directory, sessions, audit = Directory(rows, clock_ms), Sessions(rows, clock_ms), Audit(rows, clock_ms)
    passwords = Passwords(HASHES_AT_ONCE // config.workers, memory_kib=config.password_memory_kib)
    registration = Registration(
        policy_of=policy,
        names=config.user_names,
        directory=directory,
        links=Links(rows, clock_ms),
        passwords=passwords,
        audit=audit,
        outbox=Outbox(deliver_by(config.mail) if config.mail else None),
        letters=Letters(site_name_of or (lambda: config.site_name or "Wiki"), public_address(config), language_of),
    )
    signing_in = SigningIn(
        directory=directory,
        sessions=sessions,
        passwords=passwords,
        audit=audit,
        by_network=limiter("sign-in ", NETWORK_PER_MINUTE, NETWORK_BURST),
        by_account=limiter("account ", ACCOUNT_PER_MINUTE, ACCOUNT_BURST),
    )
    by_recipient = limiter("mail ", MAIL_PER_MINUTE, MAIL_BURST)
    proxies = frozenset(config.sign_on.proxies)
    sign_on = SignOn(config.sign_on.header, proxies, policy, config.user_names, directory, audit, clock_ms)
    keys = ApiKeys(rows, clock_ms)
    return Accounts(rows, directory, sessions, keys, registration, signing_in, audit, sign_on, by_recipient, clock_ms)


def public_address(config: WikiConfig) -> str:
    """Return the wiki's address for people, without a slash at the end.

    If no address is configured and the wiki listens on all addresses, it contains this machine's name.
    """
    host = socket.gethostname() if config.host in _EVERYWHERE else config.host
    host = f"[{host}]" if ":" in host else host
    return (config.public_url or f"http://{host}:{config.port}").rstrip("/")
