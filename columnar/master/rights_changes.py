"""Grants, groups and accounts: changes of the catalogue's record, each by one write, and their publication.

A user may change the grants of a scope with A there, and the user's own password and tokens; all else needs A on
everything.  While rights are off everybody may, so that users can be set up before rights are turned on.

Invariants:
    G1. A change is in force on every living server when its caller has the answer.
    G2. A refused change has written nothing.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from columnar.errors import AccessDenied, IllegalArgument, NamespaceNotFound, TableNotFound, abbreviate
from columnar.master.catalogue import Catalogue
from columnar.master.schema_changes import SchemaChanges
from columnar.model.accounts import ACCOUNTS, TOKENS, Account, Token, checked_user_name
from columnar.model.rights import (
    ADMIN,
    EVERYTHING,
    GROUPS,
    MEMBERS,
    Grant,
    Rights,
    RightsRecord,
    Scope,
    checked_grantee,
    checked_scope,
    letters_of,
    with_grant,
    without_grant,
)

_audit: Final = logging.getLogger("columnar.audit")
_VERIFIER_BYTES: Final = 1_024
UNKNOWN_KEY_BYTES: Final = 32
NAMED: Final = 8  # triggers in the text of an error


class RightsChanges:
    def __init__(self, catalogue: Catalogue, changes: SchemaChanges, superusers: Iterable[str], *, is_on: bool) -> None:
        """Pass ``is_on`` if the store checks rights."""
        self._catalogue = catalogue
        self._changes = changes
        self._superusers = tuple(superusers)
        self._is_on = is_on

    async def start(self) -> None:
        """Give a store with accounts of an earlier version its key, before users are published."""
        if self._is_on and self._record.accounts and not self._record.unknown_key:
            async with self._changes.lock:
                await self._catalogue.rights.write_record(_with_key(self._record))

    # --- grants --------------------------------------------------------------------------------------

    async def grant(self, actor: str, grant: Grant) -> None:
        """Add rights at a scope.  Raises AccessDenied, IllegalArgument, TableNotFound or NamespaceNotFound."""
        checked_grantee(grant.grantee)
        checked_scope(grant.scope)
        async with self._changes.lock:
            self._check_admin(actor, grant.scope)
            self._check_there(grant.scope)
            await self._write(with_grant(self._record, grant))
        _note_grant("grant by=%s to=%s scope=%s rights=%s", actor, grant)

    async def revoke(self, actor: str, grant: Grant) -> None:
        """Take rights at this very scope.  Raises AccessDenied, or IllegalArgument if there is nothing to take."""
        async with self._changes.lock:
            self._check_admin(actor, grant.scope)
            left = without_grant(self._record, grant)
            if left is self._record:
                raise IllegalArgument(
                    f"{grant.grantee} has no such rights at {grant.scope}; columnar permissions shows where there are"
                )
            await self._write(left)
        _note_grant("revoke by=%s from=%s scope=%s rights=%s", actor, grant)

    def permissions(self, actor: str) -> list[Grant]:
        """Return the grants that the user may see: the user's own, and those of scopes with A."""
        rights = self._rights()
        if not self._is_on or rights.global_rights(actor) & ADMIN:
            return list(self._record.grants)
        own = rights.names_of(actor)
        return [
            one for one in self._record.grants if one.grantee in own or rights.scope_rights(actor, one.scope) & ADMIN
        ]

    # --- groups --------------------------------------------------------------------------------------

    async def change_group(self, actor: str, name: str, adds: Iterable[str], removes: Iterable[str]) -> None:
        """Add and remove members; a group without members does not exist."""
        checked_user_name(name)
        added, removed = [checked_user_name(one) for one in adds], set(removes)
        async with self._changes.lock:
            self._check_admin(actor, EVERYTHING)
            groups = dict(self._record.groups)
            members = sorted(({*groups.pop(name, ())} | {*added}) - removed)
            if len(members) > MEMBERS or len(groups) >= GROUPS:
                raise IllegalArgument(f"at most {GROUPS} groups of {MEMBERS} members")
            if members:
                groups[name] = tuple(members)
            await self._write(replace(self._record, groups=groups))
        _audit.info("group by=%s name=%s added=%s removed=%s", actor or "-", name, added, sorted(removed))

    # --- accounts ------------------------------------------------------------------------------------

    async def set_password(self, actor: str, name: str, password: str, scram: str) -> None:
        """Make an account, or give it another password: its verifiers, never the password itself."""
        checked_user_name(name)
        is_argon = password.startswith("$argon2id$") and len(password) <= _VERIFIER_BYTES
        if not is_argon or not scram.startswith("SCRAM-SHA-256$") or len(scram) > _VERIFIER_BYTES:
            raise IllegalArgument("send the Argon2id and SCRAM-SHA-256 verifiers, as 'columnar user password' does")
        async with self._changes.lock:
            self._check_account(actor, name)
            await self._put(replace(self._account(name), password=password, scram=scram))
        _audit.info("password by=%s of=%s", actor or "-", name)

    async def add_token(self, actor: str, name: str, token: Token) -> None:
        """Make an account, or give it a further token, by the token's hash."""
        checked_user_name(name)
        checked_user_name(token.label)
        if len(token.hash) != 64:
            raise IllegalArgument("a token has a label, and the hash of 64 hexadecimal digits")
        async with self._changes.lock:
            self._check_account(actor, name)
            account = self._account(name)
            left = [one for one in account.tokens if one.label != token.label]
            if len(left) >= TOKENS:
                raise IllegalArgument(f"{name} has {TOKENS} tokens; remove one first")
            await self._put(replace(account, tokens=(*left, token)))
        _audit.info("token by=%s of=%s label=%s", actor or "-", name, token.label)

    async def remove_token(self, actor: str, name: str, label: str) -> None:
        async with self._changes.lock:
            self._check_account(actor, name)
            account = self._known(name)
            left = tuple(one for one in account.tokens if one.label != label)
            if len(left) == len(account.tokens):
                raise IllegalArgument(f"{name} has no token '{label}'")
            await self._put(replace(account, tokens=left))
        _audit.info("token removed by=%s of=%s label=%s", actor or "-", name, label)

    async def drop_user(self, actor: str, name: str) -> None:
        """Drop the account, the user's grants, and the user from all groups.

        Raises IllegalArgument if the user owns triggers: they would act for a later user of the name.
        """
        triggers = self._changes.triggers
        async with triggers.lock, self._changes.lock:
            self._check_admin(actor, EVERYTHING)
            record = self._record
            accounts = {one: account for one, account in record.accounts.items() if one != name}
            groups = {group: tuple(one for one in of if one != name) for group, of in record.groups.items()}
            grants = tuple(one for one in record.grants if one.grantee != name)
            groups = {group: of for group, of in groups.items() if of}
            left = replace(record, grants=grants, groups=groups, accounts=accounts)
            if left == record:
                raise IllegalArgument(f"there is no user {name}")
            _check_no_triggers(
                name, [one.name for one in triggers.derivations.in_use() if one.registration.owner == name]
            )
            await self._write(left)
        _audit.info("user dropped by=%s name=%s", actor or "-", name)

    def accounts(self) -> dict[str, Account]:
        return dict(self._record.accounts)

    # --- parts ---------------------------------------------------------------------------------------

    @property
    def _record(self) -> RightsRecord:
        return self._catalogue.rights.record

    @property
    def groups(self) -> dict[str, tuple[str, ...]]:
        return dict(self._record.groups)

    def _rights(self) -> Rights:
        return Rights(self._record, self._superusers)

    async def _write(self, record: RightsRecord) -> None:
        await self._catalogue.rights.write_record(_with_key(record) if record.accounts else record)
        await self._changes.publish_rights()

    def _check_admin(self, actor: str, scope: Scope) -> None:
        if self._is_on and not self._rights().scope_rights(actor, scope) & ADMIN:
            place = _place_of(scope)
            _audit.warning("refused user=%s scope=%s action=ADMIN", actor or "-", place)
            raise AccessDenied(actor, "" if scope == EVERYTHING else place, "ADMIN")

    def _check_account(self, actor: str, name: str) -> None:
        if not actor or actor != name or name not in self._record.accounts:
            self._check_admin(actor, EVERYTHING)

    def _check_there(self, scope: Scope) -> None:
        """Raise TableNotFound, NamespaceNotFound or NoSuchColumnFamily."""
        if scope.namespace and scope.namespace not in self._catalogue.namespaces.names:
            raise NamespaceNotFound(f"{scope.namespace}; columnar namespace list shows those there are")
        if scope.table:
            swap = self._catalogue.derivations.views.swap_of(scope.table)  # of a view with generations
            entry = self._catalogue.tables.get(scope.table if swap is None else swap.live)
            if entry is None:
                raise TableNotFound(scope.table)
            if scope.family:
                entry.schema.family(scope.family.encode("latin-1"))

    def _account(self, name: str) -> Account:
        found = self._record.accounts.get(name)
        if found is None and len(self._record.accounts) >= ACCOUNTS:
            raise IllegalArgument(f"a store has at most {ACCOUNTS} accounts")
        return found or Account(name)

    def _known(self, name: str) -> Account:
        found = self._record.accounts.get(name)
        if found is None:
            raise IllegalArgument(f"there is no account {name}; columnar user list shows those there are")
        return found

    async def _put(self, account: Account) -> None:
        await self._write(replace(self._record, accounts={**self._record.accounts, account.name: account}))


def _with_key(record: RightsRecord) -> RightsRecord:
    """Return the record with a key, which it keeps: a stranger could see that salts of unknown users change."""
    return record if record.unknown_key else replace(record, unknown_key=secrets.token_hex(UNKNOWN_KEY_BYTES))


def _check_no_triggers(user: str, triggers: list[str]) -> None:
    if triggers:
        more = f" and {len(triggers) - NAMED} more" if len(triggers) > NAMED else ""
        raise IllegalArgument(
            f"{user} owns the triggers {', '.join(triggers[:NAMED])}{more}, which would act for a later user of this "
            "name: remove them (columnar trigger remove NAME), and add those again as another user that shall stay; "
            f"then drop {user}"
        )


def _place_of(scope: Scope) -> str:
    """Return the scope on one line, whatever bytes its names have."""
    return abbreviate(str(scope).encode("latin-1", errors="replace"))


def _note_grant(text: str, actor: str, grant: Grant) -> None:
    _audit.info(text, actor or "-", grant.grantee, _place_of(grant.scope), letters_of(grant.rights))
