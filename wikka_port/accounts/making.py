"""All of accounts in one value, made of the rows of a store and the wiki's configuration."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from wikka_port.accounts.audit import Audit
from wikka_port.accounts.directory import Directory
from wikka_port.accounts.letters import Letters
from wikka_port.accounts.links import Links
from wikka_port.accounts.mail import Outbox, deliver_by
from wikka_port.accounts.passwords import HASHES_AT_ONCE, Passwords
from wikka_port.accounts.registration import Registration
from wikka_port.accounts.rows import Rows
from wikka_port.accounts.session_store import Sessions
from wikka_port.accounts.sign_on import SignOn
from wikka_port.accounts.signing_in import SigningIn
from wikka_port.config import WikiConfig
from wikka_port.edit_buckets import EditBuckets
from wikka_port.security import RateLimiter
from wikka_port.texts.catalogue import ENGLISH, Catalogue, Languages

# Attempts of one network to sign in, to register, to have a mail sent.  A class behind one address comes at once.
NETWORK_PER_MINUTE: Final = 12
NETWORK_BURST: Final = 30
# Attempts at one account, from wherever: a person is not kept out by a few, and 1,440 guesses a day find no password.
ACCOUNT_PER_MINUTE: Final = 1
ACCOUNT_BURST: Final = 50
# Mails to one account or address.
MAIL_PER_MINUTE: Final = 1 / 20
MAIL_BURST: Final = 3
_EVERYWHERE: Final = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - compared, not bound


@dataclass(frozen=True, slots=True)
class Accounts:
    rows: Rows
    directory: Directory
    sessions: Sessions
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
) -> Accounts:
    """``languages``: those that mails are written in; None: English alone."""

    def language_of(code: str) -> Catalogue:
        return ENGLISH if languages is None else languages.catalogue(code or config.language)

    def clock_ms() -> int:
        return int(clock() * 1_000)

    def limiter(purpose: str, per_minute: float, burst: int) -> RateLimiter:
        return RateLimiter(per_minute, burst, buckets, clock, purpose)

    directory, sessions, audit = Directory(rows, clock_ms), Sessions(rows, clock_ms), Audit(rows, clock_ms)
    passwords = Passwords(HASHES_AT_ONCE // config.workers, memory_kib=config.password_memory_kib)
    registration = Registration(
        policy=config.registration,
        names=config.user_names,
        directory=directory,
        links=Links(rows, clock_ms),
        passwords=passwords,
        audit=audit,
        outbox=Outbox(deliver_by(config.mail) if config.mail else None),
        letters=Letters(config.site_name, public_address(config), language_of),
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
    proxies = frozenset(config.sign_on_from)
    sign_on = SignOn(config.sign_on_header, proxies, config.registration, config.user_names, directory, audit)
    return Accounts(rows, directory, sessions, registration, signing_in, audit, sign_on, by_recipient, clock_ms)


def public_address(config: WikiConfig) -> str:
    """The wiki's address for people, without a slash at the end; a name of this machine if it listens on all."""
    host = socket.gethostname() if config.host in _EVERYWHERE else config.host
    host = f"[{host}]" if ":" in host else host
    return (config.public_url or f"http://{host}:{config.port}").rstrip("/")
