"""(pure) Accounts: the names that sign in by a password or a token, and what verifies them.

An account has no secret: its password is kept as the encoded Argon2id hash and as the verifier of SCRAM-SHA-256
(RFC 5803), its tokens as SHA-256 hashes.  Users that sign in by a client certificate or a Unix socket need no account.

``ROOT`` is the superuser that the operating system vouches for: the user that runs the store, or uid 0, over a Unix
socket.  No certificate, password or token makes anybody ``root``.

Knows nothing of rights (``model.rights``), hashing and protocols.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from columnar.errors import IllegalArgument, abbreviate

ROOT: Final = "root"
USER_NAME_BYTES: Final = 128
ACCOUNTS: Final = 10_000  # of a store
TOKENS: Final = 16  # of an account
_NAME: Final = re.compile(r"[\w.+-][\w.+@-]{0,127}")


@dataclass(frozen=True, slots=True)
class Token:
    """A token of an account.  ``label`` tells a person which one it is; ``hash`` is the hex of its SHA-256."""

    label: str
    hash: str
    made_s: int = 0  # since 1970


@dataclass(frozen=True, slots=True)
class Account:
    name: str
    password: str = ""  # Argon2id as argon2-cffi encodes it; empty: no sign-in by a password in plain text
    scram: str = ""  # "SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey"; empty: no sign-in by SCRAM
    tokens: tuple[Token, ...] = ()


def checked_user_name(name: str) -> str:
    """Return ``name`` if a user may have it.  Raises IllegalArgument with the rule that is broken."""
    if not _NAME.fullmatch(name) or len(name.encode()) > USER_NAME_BYTES:
        raise IllegalArgument(
            f"user name '{abbreviate(name.encode())}': use letters, digits, '_', '.', '+', '-' and '@' (not first), "
            f"at most {USER_NAME_BYTES} bytes"
        )
    if name == ROOT:
        raise IllegalArgument(f"'{ROOT}' is the superuser that signs in over the Unix socket; choose another name")
    return name
