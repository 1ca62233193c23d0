"""The methods of users and rights: grants, groups, accounts, and who the caller is."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from columnar.errors import IllegalArgument
from columnar.model.accounts import Token
from columnar.model.rights import Grant, Rights, Scope, letters_of, rights_from
from columnar.model.schema import table_name_text
from columnar.wire.idl import columnar

if TYPE_CHECKING:  # a server of a cluster has no master within
    from columnar.master.rights_changes import RightsChanges


class RightsMethods:
    """The methods that the master answers."""

    def __init__(self, changes: RightsChanges, local_user: str = "") -> None:
        """``local_user``: the user of callers who have not signed in, because a private socket says who they are."""
        self._changes = changes
        self._local_user = local_user

    def columnarGrant(self, ctx: Any, sent: Any) -> Any:
        return self._changes.grant(ctx.user or self._local_user, _grant_from(sent))

    def columnarRevoke(self, ctx: Any, sent: Any) -> Any:
        return self._changes.revoke(ctx.user or self._local_user, _grant_from(sent))

    def columnarPermissions(self, ctx: Any) -> list[Any]:
        return [_grant_to_wire(grant) for grant in self._changes.permissions(ctx.user or self._local_user)]

    def columnarSetGroup(self, ctx: Any, name: str | None, adds: Any, removes: Any) -> Any:
        return self._changes.change_group(ctx.user or self._local_user, name or "", adds or (), removes or ())

    def columnarUsers(self, _ctx: Any) -> list[Any]:
        groups = self._changes.groups
        accounts = self._changes.accounts()
        names = sorted({*accounts, *(member for members in groups.values() for member in members)})
        return [
            columnar.UserInfo(
                name=name,
                hasPassword=name in accounts and bool(accounts[name].password),
                tokens=[one.label for one in accounts[name].tokens] if name in accounts else [],
                groups=sorted(group for group, members in groups.items() if name in members),
            )
            for name in names
        ]

    def columnarSetPassword(self, ctx: Any, name: str | None, password: str | None, scram: str | None) -> Any:
        return self._changes.set_password(ctx.user or self._local_user, name or "", password or "", scram or "")

    def columnarAddToken(self, ctx: Any, name: str | None, label: str | None, digest: str | None) -> Any:
        token = Token(label or "", digest or "", int(time.time()))
        return self._changes.add_token(ctx.user or self._local_user, name or "", token)

    def columnarRemoveToken(self, ctx: Any, name: str | None, label: str | None) -> Any:
        return self._changes.remove_token(ctx.user or self._local_user, name or "", label or "")

    def columnarDropUser(self, ctx: Any, name: str | None) -> Any:
        return self._changes.drop_user(ctx.user or self._local_user, name or "")


class WhoAmIMethods:
    """The method that every server answers itself."""

    def __init__(self, rights: Callable[[], Rights | None]) -> None:
        """Pass ``rights``, which returns None if the store checks no rights."""
        self._rights = rights

    def columnarWhoAmI(self, ctx: Any) -> Any:
        rights, user = self._rights(), ctx.user
        if rights is None:
            return columnar.WhoAmI(user=user, groups=[], rights="", superuser=False, rightsOn=False)
        return columnar.WhoAmI(
            user=user,
            groups=rights.groups_of(user),
            rights=letters_of(rights.global_rights(user)),
            superuser=rights.is_superuser(user),
            rightsOn=True,
        )


def _grant_from(sent: Any) -> Grant:
    if sent is None:
        raise IllegalArgument("name a user, rights and a scope")
    table = table_name_text(sent.table) if sent.table else ""
    qualifier = None if sent.qualifier is None else sent.qualifier.decode("latin-1")
    scope = Scope(sent.namespaceName or "", table, (sent.family or b"").decode("latin-1"), qualifier)
    return Grant(sent.grantee or "", scope, rights_from(sent.rights or ""))


def _grant_to_wire(grant: Grant) -> Any:
    scope = grant.scope
    return columnar.RightsGrant(
        grantee=grant.grantee,
        rights=letters_of(grant.rights),
        namespaceName=scope.namespace,
        table=scope.table.encode(),
        family=scope.family.encode("latin-1"),
        qualifier=None if scope.qualifier is None else scope.qualifier.encode("latin-1"),
    )
