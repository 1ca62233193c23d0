"""Hashes of passwords: Argon2id, also around the hashes that accounts of a WikkaWiki had.

    stored := argon2 | "md5:" form ":" salt ":" argon2 | "bcrypt:" form ":" salt ":" argon2
    form   := "plain" | "html"      the old wiki hashed the password as typed, or with HTML entities

    $argon2id$v=19$m=19456,t=2,p=1$...              the hash of the password
    md5:html:5f3a09c1:$argon2id$...                 the hash of hex(MD5(salt + password)), WikkaWiki 1.3 to 1.4.1
    md5:plain::$argon2id$...                        the same without a salt, until 1.2
    bcrypt:html:$2y$10$N9qo8uLOickgx2ZMRZoMye:$argon2id$...   the hash of the text that bcrypt gives, 1.4.2
    bcrypt:plain:...                                the same of a wiki that hashed passwords as typed

An old hash lies in the store only inside Argon2id, so that a thief of the store cannot try passwords against MD5.  The
next sign-in replaces it by the hash of the password (``is_outdated``).

The time of ``verify`` depends on the password and on the kinds of hashes in the whole wiki (OldHashes), never on the
account: where some account has bcrypt, each attempt computes one; where some has MD5, a password beyond ASCII is tried
in the two encodings that the old wiki may have had, for every account.
"""

from __future__ import annotations

import re
import secrets
import threading
from dataclasses import dataclass
from hashlib import md5
from typing import Final

import bcrypt
from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from wikka_port.accounts.user_names import usual_password

TIME_COST: Final = 2
MEMORY_KIB: Final = 19_456
PARALLELISM: Final = 1
HASHES_AT_ONCE: Final = 4  # in all processes of a wiki: 76 MiB
BCRYPT_COST_MAX: Final = 12  # about 0.25 s; with more an attempt to sign in would cost a server too much
_BCRYPT_BYTES: Final = 72  # of a password; bcrypt reads no further
_WRAPPED: Final = re.compile(r"(md5|bcrypt):(plain|html):([^:]{0,40}):(\$argon2id\$.+)")
_MD5: Final = re.compile(r"[0-9a-f]{32}")
_MD5_SALT: Final = re.compile(r"[0-9a-f]{0,8}")
_BCRYPT: Final = re.compile(r"(\$2[aby]\$([0-9]{2})\$[./A-Za-z0-9]{22})[./A-Za-z0-9]{31}")
_BCRYPT_SALT: Final = re.compile(r"\$2[aby]\$[0-9]{2}\$[./A-Za-z0-9]{22}")
_ARGON2: Final = re.compile(
    r"\$argon2id\$v=19\$m=([0-9]{1,7}),t=([0-9]{1,3}),p=([0-9]{1,3})\$[A-Za-z0-9+/]{8,100}\$[A-Za-z0-9+/]{16,200}"
)
_MEMORY_KIB_MAX: Final = 4 * MEMORY_KIB  # of a hash that another wiki made
_TIME_COST_MAX: Final = 4 * TIME_COST
_PARALLELISM_MAX: Final = 4
_ENTITY: Final = re.compile(r"&amp;([a-z]+|#[0-9]+|#x[0-9a-f]+)(?:;|(?=$|\n|&lt;))", re.IGNORECASE | re.ASCII)
_OLD_HASHES: Final = re.compile(r"(md5)?(?: ?bcrypt ([0-9]{1,2}))?")


class UnknownHash(ValueError):
    """The hash of another wiki is of no known kind."""


@dataclass(frozen=True, slots=True)
class OldHashes:
    """The kinds of old hashes that some account of the wiki may have."""

    md5: bool = False
    bcrypt_cost: int = 0  # 0: none has bcrypt

    def __or__(self, other: OldHashes) -> OldHashes:
        return OldHashes(self.md5 or other.md5, max(self.bcrypt_cost, other.bcrypt_cost))

    def pack(self) -> bytes:
        kinds = ["md5"] if self.md5 else []
        return " ".join([*kinds, *([f"bcrypt {self.bcrypt_cost}"] if self.bcrypt_cost else [])]).encode()

    @classmethod
    def parse(cls, value: bytes) -> OldHashes:
        found = _OLD_HASHES.fullmatch(value.decode("ascii", "replace"))
        return cls(bool(found[1]), int(found[2] or 0)) if found is not None else cls()


NO_OLD_HASHES: Final = OldHashes()


@dataclass(frozen=True, slots=True)
class OldHash:
    """The hash of a password in another wiki.  Never stored as it is."""

    kind: str  # "md5" or "bcrypt"
    form: str
    salt: str
    digest: str

    @classmethod
    def of_md5(cls, digest: str, salt: str, form: str) -> OldHash:
        """Raises UnknownHash."""
        if not _MD5.fullmatch(digest.lower()) or not _MD5_SALT.fullmatch(salt):
            raise UnknownHash("no MD5")
        return cls("md5", form, salt, digest.lower())

    @classmethod
    def of_bcrypt(cls, digest: str, form: str = "html") -> OldHash:
        """Raises UnknownHash."""
        found = _BCRYPT.fullmatch(digest)
        if found is None:
            raise UnknownHash("no bcrypt")
        if int(found[2]) > BCRYPT_COST_MAX:
            raise UnknownHash(f"bcrypt of the cost {found[2]}; {BCRYPT_COST_MAX} is the most")
        return cls("bcrypt", form, found[1], digest)

    @property
    def begin(self) -> str:
        """The beginning of the stored value; another one means that the password was changed in the other wiki."""
        return f"{self.kind}:{self.form}:{self.salt}:"

    @property
    def kinds(self) -> OldHashes:
        return OldHashes(md5=True) if self.kind == "md5" else OldHashes(bcrypt_cost=int(self.salt[4:6]))


def kinds_of_stored(stored: str) -> OldHashes:
    """Return the kinds of old hashes in a stored value of another wiki like this one.

    Raises UnknownHash if it is none, or if an attempt to sign in with it would cost too much.
    """
    found = _WRAPPED.fullmatch(stored)
    kind, _form, salt, inner = found.groups() if found is not None else ("", "", "", stored)
    costs = _ARGON2.fullmatch(inner)
    if costs is None:
        raise UnknownHash("it is no hash of Argon2id")
    if int(costs[1]) > _MEMORY_KIB_MAX or int(costs[2]) > _TIME_COST_MAX or int(costs[3]) > _PARALLELISM_MAX:
        raise UnknownHash("its hash would cost more memory or time than is taken")
    if kind != "bcrypt":
        return OldHashes(md5=kind == "md5")
    if not _BCRYPT_SALT.fullmatch(salt) or int(salt[4:6]) > BCRYPT_COST_MAX:
        raise UnknownHash(f"it has no salt of bcrypt, or a cost over {BCRYPT_COST_MAX}")
    return OldHashes(bcrypt_cost=int(salt[4:6]))


class Passwords:
    """Hashes and verifies passwords, a bounded number at once.  Thread-safe."""

    def __init__(self, at_once: int = HASHES_AT_ONCE, *, memory_kib: int = MEMORY_KIB) -> None:
        """Compute up to ``at_once`` hashes at once, this process's share of HASHES_AT_ONCE."""
        self._hasher = PasswordHasher(time_cost=TIME_COST, memory_cost=memory_kib, parallelism=PARALLELISM)
        self._hash_slots = threading.BoundedSemaphore(max(1, at_once))
        self._lock = threading.Lock()
        self._nobodys = ""  # the hash of a random password; guarded by _lock, made at the first need

    def hashed(self, password: str) -> str:
        with self._hash_slots:
            return self._hasher.hash(password)

    def wrapped(self, old: OldHash) -> str:
        """Return the value that is stored for the hash of another wiki."""
        return old.begin + self.hashed(old.digest)

    def is_wrapped(self, stored: str, old: OldHash) -> bool:
        """Return whether ``stored`` is made of ``old``.  Costs a hash."""
        found = _WRAPPED.fullmatch(stored)
        if found is None or not stored.startswith(old.begin):
            return False
        with self._hash_slots:
            return self._is_hash_of(found[4], old.digest)

    def verify(self, stored: str, password: str, old: OldHashes = NO_OLD_HASHES) -> bool:
        """Return whether ``password``, as typed, has the hash ``stored``; with "" return False after the same time.

        ``old`` names the kinds of old hashes in this wiki.
        """
        nobodys = self._of_nobody()
        found = _WRAPPED.fullmatch(stored)
        kind, form, salt, inner = found.groups() if found is not None else ("", "", "", stored or nobodys)
        cost = int(salt[4:6]) if kind == "bcrypt" else old.bcrypt_cost
        with self._hash_slots:
            typed = password if (kind, form) == ("bcrypt", "plain") else with_entities(password)
            by_bcrypt = _bcrypted(typed, salt if kind == "bcrypt" else f"$2y${cost:02}$" + "." * 22) if cost else ""
            tried = _md5s(password, form, salt) if kind == "md5" else [by_bcrypt or usual_password(password)]
            if kind == "":
                tried = [usual_password(password)]
            right = [self._is_hash_of(inner, digest) for digest in tried]
            for _ in range(len(tried), 2 if old.md5 and not password.isascii() else 1):
                self._is_hash_of(nobodys, password)
        return any(right) and stored != ""

    def _is_hash_of(self, inner: str, text: str) -> bool:
        try:
            return self._hasher.verify(inner, text)
        except (VerificationError, InvalidHashError):
            return False

    def is_outdated(self, stored: str) -> bool:
        """Return whether the hash is another wiki's, or was made with other parameters than today's."""
        return _WRAPPED.fullmatch(stored) is not None or self._hasher.check_needs_rehash(stored)

    def _of_nobody(self) -> str:
        with self._lock:
            if not self._nobodys:
                self._nobodys = self._hasher.hash(secrets.token_hex(16))
            return self._nobodys


def _md5s(password: str, form: str, salt: str) -> list[str]:
    """Return the digests that an old wiki may have for a password.

    Wikis without salts had pages in Latin-1, in which browsers sent passwords too, or in UTF-8.
    """
    typed = with_entities(password) if form == "html" else password
    encodings = ["utf-8"] if salt or typed.isascii() else ["utf-8", "cp1252"]
    data = [salt.encode() + typed.encode(encoding, "replace") for encoding in encodings]
    return [md5(one, usedforsecurity=False).hexdigest() for one in data]


def _bcrypted(typed: str, salt: str) -> str:
    data = typed.encode("utf-8", "replace")[:_BCRYPT_BYTES]
    try:
        return bcrypt.hashpw(data, salt.encode()).decode("ascii")
    except ValueError:  # a null character
        return ""


def with_entities(text: str) -> str:
    """Return a text as forms of WikkaWiki since 1.3 took it: with HTML entities, but for what is one already."""
    escaped = text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
    return _ENTITY.sub(r"&\1;", escaped)
