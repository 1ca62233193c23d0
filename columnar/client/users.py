"""Users and rights over a ``columnar.client.Connection``: grants, groups, and who the caller is."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from columnar.client.cluster import StoreCaller, record_of
from columnar.client.errors import wrong_arguments
from columnar.security.credentials import hash_of, new_token
from columnar.security.passwords import Passwords
from columnar.security.scram import SALT_BYTES, Verifier
from columnar.wire.idl import columnar


@dataclass(frozen=True, slots=True)
class Permission:
    """Rights of a user, or of a group as ``@name``, at a scope; empty fields are wider."""

    grantee: str
    rights: str  # letters of RWXCA
    namespace_name: str = ""
    table: str = ""
    family: bytes = b""
    qualifier: bytes | None = None


@dataclass(frozen=True, slots=True)
class UserRecord:
    name: str
    has_password: bool
    tokens: tuple[str, ...]  # their labels
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WhoAmI:
    user: str  # empty: nobody has signed in
    groups: tuple[str, ...]
    rights: str  # on everything
    superuser: bool
    rights_on: bool  # whether the store checks rights


class UserAdmin:
    def __init__(self, connection: StoreCaller) -> None:
        self._connection = connection

    def who_am_i(self) -> WhoAmI:
        return record_of(WhoAmI, self._connection.call("columnarWhoAmI"))

    def grant(self, permission: Permission) -> None:
        """Add rights; they are in force on every server when this returns."""
        self._connection.call("columnarGrant", _sent(permission))

    def revoke(self, permission: Permission) -> None:
        """Take rights at this very scope; rights at wider and narrower scopes stay."""
        self._connection.call("columnarRevoke", _sent(permission))

    def permissions(self) -> list[Permission]:
        """Return the grants that the caller may see, by grantee and scope."""
        return [record_of(Permission, one) for one in self._connection.call("columnarPermissions")]

    def users(self) -> list[UserRecord]:
        return [record_of(UserRecord, one) for one in self._connection.call("columnarUsers")]

    def change_group(self, name: str, adds: Sequence[str] = (), removes: Sequence[str] = ()) -> None:
        self._connection.call("columnarSetGroup", name, list(adds), list(removes))

    def drop_user(self, name: str) -> None:
        """Drop the user's account, grants and memberships.  Raises StoreIllegalArgument if triggers are the user's."""
        self._connection.call("columnarDropUser", name)

    def set_password(self, name: str, password: str) -> None:
        """Make an account, or give it another password.  Sends verifiers alone; blocks for some 30 ms to make them.

        Raises WrongArgument if the text can be no password.
        """
        with wrong_arguments():
            hashed = Passwords().hashed(password)
            verifier = Verifier.of_password(password, secrets.token_bytes(SALT_BYTES))
        self._connection.call("columnarSetPassword", name, hashed, verifier.encoded)

    def add_token(self, name: str, label: str) -> str:
        """Make an account, or give it a further token, and return the token, which nobody can read later.

        A token of the same label ends.  Sends the token's hash alone.
        """
        token = new_token(secrets.token_urlsafe)
        self._connection.call("columnarAddToken", name, label, hash_of(token))
        return token

    def remove_token(self, name: str, label: str) -> None:
        self._connection.call("columnarRemoveToken", name, label)


def _sent(permission: Permission) -> Any:
    return columnar.RightsGrant(
        grantee=permission.grantee,
        rights=permission.rights,
        namespaceName=permission.namespace_name,
        table=permission.table.encode(),
        family=permission.family,
        qualifier=permission.qualifier,
    )
