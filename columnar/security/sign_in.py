"""Sign-in: which user a certificate, a Unix socket, a password, a token or SCRAM makes of a client.

    certificate   its subject's one common name, if that is a user's name
    Unix socket   ROOT for uid 0 and for the user that runs this process, else the operating system's name of the uid
    the others    an account, which ``take_accounts`` gives and takes away while the server serves

"" is nobody.  A certificate or a socket that names nobody refuses nothing: the client may still send credentials.

Invariants:
    I1. Only a Unix socket makes anybody ROOT.
    I2. A refusal takes the same work and has the same text, whether the user is unknown or the secret is wrong.
    I3. A verified password is remembered only as a keyed hash, and holds while its account is what it was.
    I4. No secret is in a log line or in the text of an error.

Bounds: VERIFIED passwords are remembered; an origin and a user from there have so many failures (``FailedAttempts``).
Owned by the loop.
"""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import logging
import math
import os
import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import partial
from time import gmtime, monotonic, strftime
from typing import Final, NoReturn

from columnar.errors import IllegalArgument, SignInBusy, SignInRefused, abbreviate
from columnar.model.accounts import ACCOUNTS, ROOT, Account, Token, checked_user_name
from columnar.security.credentials import Credentials, hash_of
from columnar.security.passwords import Passwords
from columnar.security.scram import WRONG, Verifier

VERIFIED: Final = 4_096  # passwords: HTTP clients send theirs with each request
KEYS: Final = 10_000  # of origins, and of users there, whose failures are remembered
OS_USERS: Final = 1_000  # whose names are remembered
_log = logging.getLogger("columnar.audit")


class FailedAttempts:
    """A bound on failed sign-ins: each key may fail ``burst`` times at once, then once in ``refill_s``.

    Each attempt is counted when it begins and taken back when it succeeds, so that parallel guesses are bounded too.
    The longest unused of more than ``keys`` keys is forgotten.
    """

    def __init__(self, burst: int, refill_s: float, keys: int = KEYS) -> None:
        self._allowed_s = burst * refill_s
        self._refill_s = refill_s
        self._keys = keys
        self._paid_s: OrderedDict[str, float] = OrderedDict()  # when all attempts of the key are forgotten

    def begin_attempt(self, key: str, now_s: float) -> float:
        """Count an attempt; returns 0, or the seconds to wait if there were too many, and then counts none."""
        paid_s = max(self._paid_s.get(key, now_s), now_s) + self._refill_s
        wait_s = paid_s - now_s - self._allowed_s
        if wait_s > 0:
            return wait_s
        self._paid_s[key] = paid_s
        self._paid_s.move_to_end(key)
        if len(self._paid_s) > self._keys:
            self._paid_s.popitem(last=False)
        return 0.0

    def forgive(self, key: str, now_s: float) -> None:
        """Take back an attempt that has succeeded."""
        paid_s = self._paid_s.get(key, now_s) - self._refill_s
        if paid_s > now_s:
            self._paid_s[key] = paid_s
        else:
            self._paid_s.pop(key, None)


class SignIn:
    def __init__(
        self,
        passwords: Passwords | None = None,
        *,
        now: Callable[[], float] = monotonic,
        own_uid: int | None = None,
    ) -> None:
        self._passwords = passwords or Passwords()
        self._unknown_key = secrets.token_bytes(32)  # until the store has one
        self._now = now
        self._own_uid = own_uid  # None: of this process
        self._accounts: Mapping[str, Account] = {}
        self._tokens: dict[str, tuple[Account, Token]] = {}  # by hash
        self._key = secrets.token_bytes(32)  # of the keys of the next two
        self._verified: OrderedDict[bytes, Account] = OrderedDict()
        self._verifying: dict[bytes, asyncio.Task[Account | None]] = {}  # bounded by the hashes under way
        self._of_origins = FailedAttempts(100, 0.1)  # one user's failures do not lock out others behind its address
        self._of_users = FailedAttempts(10, 2.0)
        self._os_users: dict[int, str] = {}

    def take_accounts(self, accounts: Mapping[str, Account], unknown_key: str = "") -> None:
        """Replace all accounts, by name.  Connections keep their user; HTTP requests are judged by the new ones.

        ``unknown_key`` is a secret of the whole store.  SCRAM derives the salts of unknown users from it: if servers or
        starts showed others, a stranger would see which users there are.
        """
        if unknown_key:
            self._unknown_key = unknown_key.encode()
        known = {name: account for name, account in accounts.items() if name == account.name and _is_name(name)}
        if len(known) != len(accounts) or len(known) > ACCOUNTS:
            _log.error("%d accounts of %d are usable, the bound is %d", len(known), len(accounts), ACCOUNTS)
        if known != self._accounts:
            self._accounts = known
            self._tokens = {one.hash: (account, one) for account in known.values() for one in account.tokens}

    # --- certificates and Unix sockets -------------------------------------------------------------------

    def by_certificate(self, der: bytes, peer: str) -> str:
        """Return the user whom a verified certificate names; "" if it names none."""
        from asn1crypto.x509 import Certificate  # a port without clients' certificates never loads it

        try:
            names = [
                pair["value"].native
                for part in Certificate.load(der).subject.chosen
                for pair in part
                if pair["type"].native == "common_name"
            ]
            (name,) = names
            user = checked_user_name(str(name))
        except IllegalArgument as error:
            _log.warning("%s: its certificate names nobody: %s", peer, error.text)
        except (ValueError, TypeError):
            _log.warning("%s: its certificate names nobody: its subject must have one common name", peer)
        else:
            _log.info("%s: signed in as %s by certificate", peer, user)
            return user
        return ""

    def known_uid(self, uid: int) -> str | None:
        """Return the user of a uid whose name is known already, else None: then ``by_uid`` must ask the system."""
        own = os.getuid() if self._own_uid is None else self._own_uid
        return ROOT if uid in (0, own) else self._os_users.get(uid)

    async def by_uid(self, uid: int, peer: str) -> str:
        """Return the user of a client of the Unix socket; "" if the operating system has no usable name for it."""
        known = self.known_uid(uid)
        if known is not None:
            return known
        try:  # in a thread: the name may come from a directory service
            user = checked_user_name(await asyncio.to_thread(_os_name, uid))
        except (KeyError, OSError, IllegalArgument):
            _log.warning("%s: uid %d has no name that a user may have; it is nobody", peer, uid)
            return ""
        if len(self._os_users) < OS_USERS:
            self._os_users[uid] = user
        _log.info("%s: signed in as %s by the Unix socket", peer, user)
        return user

    # --- passwords and tokens ----------------------------------------------------------------------------

    def remembered(self, credentials: Credentials) -> str:
        """Return the user whom these credentials make without a hash: a token, or a verified password; else ""."""
        account, _ = self._of_token(credentials)
        if account is not None:
            return account.name
        key = self._digest(credentials)
        account = self._verified.get(key)
        if account is None:
            return ""
        if self._accounts.get(account.name) != account:
            del self._verified[key]
            return ""
        self._verified.move_to_end(key)
        return account.name

    async def verify(self, credentials: Credentials, origin: str, peer: str) -> str:
        """Return the user whom these credentials make.  Raises SignInRefused, SignInBusy.

        ``origin`` is what failures are counted by (``origin_of``), ``peer`` the client in log lines.
        """
        self.begin_attempt(credentials.user, origin, peer)
        account, token = self._of_token(credentials)
        if account is None and credentials.user:
            account = await self._of_password(credentials)
        if account is None:
            self.refuse(credentials.user, "token or password" if credentials.user else "token", peer)
        how = "password" if token is None else f"token '{token.label}' of {strftime('%Y-%m-%d', gmtime(token.made_s))}"
        self.succeeded(account.name, credentials.user, origin, peer, how)
        return account.name

    def begin_attempt(self, user: str, origin: str, peer: str) -> None:
        """Count an attempt to sign in.  Raises SignInBusy if there were too many that failed."""
        now = self._now()
        wait_s = self._of_users.begin_attempt(_key(user, origin), now)
        if wait_s <= 0:
            wait_s = self._of_origins.begin_attempt(origin, now)
            if wait_s > 0:
                self._of_users.forgive(_key(user, origin), now)
        if wait_s > 0:
            _log.warning("%s: sign-in as '%s' not tried: too many failed", peer, _printed(user))
            raise SignInBusy("too many sign-ins from here have failed", math.ceil(wait_s))

    def succeeded(self, user: str, named: str, origin: str, peer: str, how: str) -> None:
        """Take back the attempt, which named its user as ``named``, and log whose it was."""
        now = self._now()
        self._of_users.forgive(_key(named, origin), now)
        self._of_origins.forgive(origin, now)
        _log.info("%s: signed in as %s by %s", peer, user, how)

    def refuse(self, user: str, how: str, peer: str) -> NoReturn:
        _log.warning("%s: sign-in as '%s' by %s refused", peer, _printed(user), how)
        raise SignInRefused(WRONG)

    def _of_token(self, credentials: Credentials) -> tuple[Account, Token] | tuple[None, None]:
        found = self._tokens.get(hash_of(credentials.secret))
        if found is None or credentials.user not in ("", found[0].name):
            return None, None
        return found

    async def _of_password(self, credentials: Credentials) -> Account | None:
        key = self._digest(credentials)
        task = self._verifying.get(key)
        if task is None:  # else many connections of a client begin at once: one hash is enough
            task = self._verifying[key] = asyncio.ensure_future(self._verify_password(key, credentials))
            task.add_done_callback(partial(self._was_verified, key))
        return await asyncio.shield(task)

    async def _verify_password(self, key: bytes, credentials: Credentials) -> Account | None:
        account = self._accounts.get(credentials.user)
        stored = account.password if account is not None else ""
        is_right = await self._passwords.verify(stored, credentials.secret)
        if not is_right or account is None or self._accounts.get(credentials.user) != account:
            return None  # or the account was changed meanwhile
        self._verified[key] = account
        if len(self._verified) > VERIFIED:
            self._verified.popitem(last=False)
        return account

    def _was_verified(self, key: bytes, task: asyncio.Task[Account | None]) -> None:
        del self._verifying[key]
        if not task.cancelled():
            task.exception()  # seen, even if all that waited have gone

    def _digest(self, credentials: Credentials) -> bytes:
        text = f"{len(credentials.user)}:{credentials.user}{credentials.secret}"
        return hashlib.blake2b(text.encode(errors="surrogatepass"), key=self._key, digest_size=32).digest()

    # --- SCRAM ---------------------------------------------------------------------------------------------

    def scram_verifier(self, user: str) -> Verifier:
        """Return the verifier of the user's password; for a user without one a verifier that no password fits."""
        account = self._accounts.get(user)
        if account is not None and account.scram:
            try:
                return Verifier.of_text(account.scram)
            except ValueError:
                _log.error("the SCRAM verifier of %s is damaged: set the password again", user)
        return Verifier.of_nobody(self._unknown_key, user)

    def close(self) -> None:
        self._passwords.close()


def origin_of(host: str) -> str:
    """Return the network whose failures are counted together: an IPv4 address, or 64 bits of an IPv6 address."""
    try:
        ip = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(ip, ipaddress.IPv4Address):
        return str(ip)
    return str(ip.ipv4_mapped or ipaddress.ip_network((ip, 64), strict=False))


def _key(user: str, origin: str) -> str:
    return f"{user[:128]} {origin}"


def _printed(user: str) -> str:
    return abbreviate(user.encode(errors="replace"))


def _is_name(name: str) -> bool:
    try:
        return checked_user_name(name) == name
    except IllegalArgument:
        return False


def _os_name(uid: int) -> str:
    import pwd  # of Unix alone

    return pwd.getpwuid(uid).pw_name
