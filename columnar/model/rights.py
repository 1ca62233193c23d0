"""(pure) Rights: what a user may do, as HBase's AccessController and AuthManager decide it.

    R  READ      reads
    W  WRITE     writes
    X  EXEC      triggers and views of a table; at global scope status, metrics and pages
    C  CREATE    makes, changes and drops tables
    A  ADMIN     administration; grants within its scope

A grant gives rights to a user, or to a group (``@name``), at a scope: everything, a namespace, a table, a family or a
column.  Rights at a wider scope hold in every narrower one, and rights do not imply each other.

Invariants (``tests/model/test_rights_model.py``: a second evaluator, 100,000 random grants):
    I1. A superuser, and ``ROOT``, have all rights everywhere.  The user "", nobody, has none.
    I2. The system's namespace is open only to users with A at global scope, who have all rights there.
    I3. Grants add rights, and no grant takes any away.

``Rights`` answers from indexes: an answer costs the grants of the user and the user's groups at one table.

Knows nothing of methods (``rights.method_rights``), sign-in and the catalogue.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from columnar.errors import IllegalArgument
from columnar.model.accounts import ROOT, Account, Token, checked_user_name
from columnar.model.schema import SYSTEM_NAMESPACE, namespace_of

READ: Final = 1
WRITE: Final = 2
EXEC: Final = 4
CREATE: Final = 8
ADMIN: Final = 16
ALL: Final = READ | WRITE | EXEC | CREATE | ADMIN
NAMES: Final = {READ: "READ", WRITE: "WRITE", EXEC: "EXEC", CREATE: "CREATE", ADMIN: "ADMIN"}
LETTERS: Final = "RWXCA"
GRANTS: Final = 20_000  # of a store: every server holds all of them
GRANTS_OF_TABLE: Final = 500  # so that the administrator of one table leaves room for other tables
QUALIFIER_BYTES: Final = 256  # of a grant
GROUPS: Final = 1_000
MEMBERS: Final = 10_000  # of a group
GROUP_MARK: Final = "@"


def rights_from(text: str) -> int:
    """Return the rights that the letters name.  Raises IllegalArgument."""
    if not text or any(letter not in LETTERS for letter in text.upper()):
        raise IllegalArgument(f"rights '{text[:40]}': use letters of {LETTERS}, for example RW")
    return sum({1 << LETTERS.index(letter) for letter in text.upper()})


def letters_of(rights: int) -> str:
    return "".join([letter for at, letter in enumerate(LETTERS) if rights & 1 << at])


def right_names(rights: int, joint: str = " or ") -> str:
    return joint.join([name for right, name in NAMES.items() if rights & right])


@dataclass(frozen=True, slots=True, order=True)
class Scope:
    """A scope of grants.  Empty fields are wider: no namespace and no table means everything.

    A table's scope has no namespace, for the table's name has it.  Bytes are written as latin-1.
    """

    namespace: str = ""
    table: str = ""
    family: str = ""
    qualifier: str | None = None  # None: the whole family

    def __str__(self) -> str:
        if self.table:
            column = f" {self.family}" if self.family else ""
            return f"{self.table}{column}{'' if self.qualifier is None else ':' + self.qualifier}"
        return GROUP_MARK + self.namespace if self.namespace else "everything"


EVERYTHING: Final = Scope()


@dataclass(frozen=True, slots=True, order=True)
class Grant:
    grantee: str  # a user, or a group with its mark
    scope: Scope
    rights: int


@dataclass(frozen=True, slots=True)
class RightsRecord:
    """All grants, groups and accounts of a store, as the catalogue keeps and every server holds them."""

    grants: tuple[Grant, ...] = ()  # at most one for a grantee and scope
    groups: dict[str, tuple[str, ...]] = field(default_factory=dict)  # name without its mark -> members
    accounts: dict[str, Account] = field(default_factory=dict)
    unknown_key: str = field(default="", repr=False)  # secret; salts of users that do not exist come from it

    def as_tuples(
        self,
    ) -> tuple[tuple[Grant, ...], tuple[tuple[str, tuple[str, ...]], ...], tuple[Account, ...], str]:
        """Return the fields as ``PublishRights`` carries them."""
        return self.grants, tuple(self.groups.items()), tuple(self.accounts.values()), self.unknown_key


def checked_grantee(name: str) -> str:
    """Return the name of a user, or of a group with its mark.  Raises IllegalArgument."""
    if name.startswith(GROUP_MARK):
        return GROUP_MARK + checked_user_name(name[1:])
    return checked_user_name(name)


def checked_scope(scope: Scope) -> Scope:
    """Return ``scope`` if rights can be granted there.  Raises IllegalArgument."""
    if scope.namespace == SYSTEM_NAMESPACE or namespace_of(scope.table) == SYSTEM_NAMESPACE:
        raise IllegalArgument(f"the namespace {SYSTEM_NAMESPACE} is the system's; A at global scope opens it")
    if (scope.family and not scope.table) or (scope.qualifier is not None and not scope.family):
        raise IllegalArgument("a family needs its table, and a qualifier its family")
    if scope.qualifier is not None and len(scope.qualifier) > QUALIFIER_BYTES:
        raise IllegalArgument(f"a grant's qualifier has at most {QUALIFIER_BYTES} bytes; grant on the family")
    if scope.qualifier == "":
        raise IllegalArgument("rights on the empty qualifier cannot be granted; grant them on the family")
    if scope.table and scope.namespace:
        raise IllegalArgument("name a namespace or a table, not both: the table's name has its namespace")
    return scope


# --- the evaluator -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ColumnRights:
    """The rights of a user below a table, by family and by column, without the rights at wider scopes."""

    families: Mapping[bytes, int]
    columns: Mapping[tuple[bytes, bytes], int]

    def of_family(self, family: bytes) -> int:
        return self.families.get(family, 0)

    def of_column(self, family: bytes, qualifier: bytes) -> int:
        return self.families.get(family, 0) | self.columns.get((family, qualifier), 0)


_NO_COLUMNS: Final = ColumnRights({}, {})


class Rights:
    """The rights of all users by a record.  Constant; making it costs the number of grants and members."""

    def __init__(self, record: RightsRecord, superusers: Iterable[str] = ()) -> None:
        """Pass the names of superusers; a group has its mark."""
        self.record = record
        self._superusers = frozenset([ROOT, *superusers])
        self._groups: dict[str, list[str]] = {}  # user -> groups, with their marks
        for name, members in record.groups.items():
            for member in members:
                self._groups.setdefault(member, []).append(GROUP_MARK + name)
        self._wide: dict[tuple[str, str], int] = {}  # (grantee, namespace or "" for everything) -> rights
        self._tables: dict[tuple[str, str], list[Grant]] = {}  # (grantee, table)
        self._within: set[tuple[str, str]] = set()  # (grantee, namespace) with grants of its tables
        for grant in record.grants:
            if grant.scope.table:
                self._within.add((grant.grantee, namespace_of(grant.scope.table)))
                self._tables.setdefault((grant.grantee, grant.scope.table), []).append(grant)
            else:
                key = grant.grantee, grant.scope.namespace
                self._wide[key] = self._wide.get(key, 0) | grant.rights

    def names_of(self, user: str) -> list[str]:
        """Return the grantees whose grants the user has: the user, and the user's groups."""
        return [user, *self._groups.get(user, ())] if user else []

    def groups_of(self, user: str) -> list[str]:
        """Return the names of the user's groups, without marks, ascending."""
        return sorted(name[1:] for name in self._groups.get(user, ()))

    def is_superuser(self, user: str) -> bool:
        return any(name in self._superusers for name in self.names_of(user))

    def global_rights(self, user: str) -> int:
        return ALL if self.is_superuser(user) else self._wide_rights(user, "")

    def namespace_rights(self, user: str, namespace: str) -> int:
        """Return the rights that hold in the whole namespace."""
        everywhere = self.global_rights(user)
        if namespace == SYSTEM_NAMESPACE:
            return ALL if everywhere & ADMIN else 0
        return everywhere | self._wide_rights(user, namespace)

    def table_rights(self, user: str, table: str) -> int:
        """Return the rights that hold in the whole table."""
        namespace = namespace_of(table)
        found = self.namespace_rights(user, namespace)
        if namespace == SYSTEM_NAMESPACE:
            return found
        for name in self.names_of(user):
            for grant in self._tables.get((name, table), ()):
                if not grant.scope.family:
                    found |= grant.rights
        return found

    def column_rights(self, user: str, table: str) -> ColumnRights:
        """Return the rights that grants for families and columns of the table add."""
        families: dict[bytes, int] = {}
        columns: dict[tuple[bytes, bytes], int] = {}
        if namespace_of(table) == SYSTEM_NAMESPACE:
            return _NO_COLUMNS
        for name in self.names_of(user):
            for grant in self._tables.get((name, table), ()):
                family = grant.scope.family.encode("latin-1")
                if grant.scope.qualifier is not None:
                    key = family, grant.scope.qualifier.encode("latin-1")
                    columns[key] = columns.get(key, 0) | grant.rights
                elif family:
                    families[family] = families.get(family, 0) | grant.rights
        return ColumnRights(families, columns) if families or columns else _NO_COLUMNS

    def any_rights(self, user: str, table: str) -> int:
        """Return the rights that the user has anywhere in the table."""
        found, below = self.table_rights(user, table), self.column_rights(user, table)
        for rights in (*below.families.values(), *below.columns.values()):
            found |= rights
        return found

    def sees_namespace(self, user: str, namespace: str) -> bool:
        """Return whether the user has any right in the namespace or one of its tables."""
        if self.namespace_rights(user, namespace):
            return True
        return namespace != SYSTEM_NAMESPACE and any((name, namespace) in self._within for name in self.names_of(user))

    def scope_rights(self, user: str, scope: Scope) -> int:
        """Return the rights that hold in the whole scope."""
        if not scope.table:
            return self.namespace_rights(user, scope.namespace) if scope.namespace else self.global_rights(user)
        found = self.table_rights(user, scope.table)
        if not scope.family:
            return found
        below, family = self.column_rights(user, scope.table), scope.family.encode("latin-1")
        if scope.qualifier is None:
            return found | below.of_family(family)
        return found | below.of_column(family, scope.qualifier.encode("latin-1"))

    def _wide_rights(self, user: str, namespace: str) -> int:
        found = 0
        for name in self.names_of(user):
            found |= self._wide.get((name, namespace), 0)
        return found


class Losses:
    """The users that lose a right from one state of rights to the next.  O(grants and members)."""

    def __init__(self, before: Rights, after: Rights) -> None:
        self._before = before
        self._after = after
        left = {(one.grantee, one.scope): one.rights for one in after.record.grants}
        self._grantees = {
            one.grantee for one in before.record.grants if one.rights & ~left.get((one.grantee, one.scope), 0)
        }

    def has_lost(self, user: str) -> bool:
        names = self._before.names_of(user)
        if self._before.is_superuser(user):
            return not self._after.is_superuser(user)
        return not self._grantees.isdisjoint(names) or not set(names) <= set(self._after.names_of(user))


# --- changes of the record ---------------------------------------------------------------------------


def with_grant(record: RightsRecord, grant: Grant) -> RightsRecord:
    """Add rights to what the grantee has at the scope.  Raises IllegalArgument over GRANTS."""
    before = [one for one in record.grants if (one.grantee, one.scope) == (grant.grantee, grant.scope)]
    rights = grant.rights | (before[0].rights if before else 0)
    left = [one for one in record.grants if one not in before]
    if len(left) >= GRANTS:
        raise IllegalArgument(f"a store has at most {GRANTS} grants; grant to groups, or revoke some")
    table = grant.scope.table
    if table and not before and sum(one.scope.table == table for one in left) >= GRANTS_OF_TABLE:
        raise IllegalArgument(f"a table has at most {GRANTS_OF_TABLE} grants; grant to groups, or revoke some")
    return _with_grants(record, [*left, Grant(grant.grantee, grant.scope, rights)])


def without_grant(record: RightsRecord, grant: Grant) -> RightsRecord:
    """Take rights from what the grantee has at this very scope; rights at other scopes stay."""
    left = []
    for one in record.grants:
        rights = one.rights & ~grant.rights if (one.grantee, one.scope) == (grant.grantee, grant.scope) else one.rights
        if rights:
            left.append(Grant(one.grantee, one.scope, rights))
    return _with_grants(record, left)


def with_creator(record: RightsRecord, creator: str, table: str) -> RightsRecord:
    """Give the creator of a table all rights on it, as HBase does; ROOT and nobody get no grant."""
    if not creator or creator == ROOT:
        return record
    return with_grant(record, Grant(creator, Scope(table=table), ALL))


def without_table(record: RightsRecord, table: str) -> RightsRecord:
    """Drop the grants of a dropped table, so that a later table of the name is closed."""
    return _with_grants(record, [one for one in record.grants if one.scope.table != table])


def without_families(record: RightsRecord, table: str, left: Iterable[str]) -> RightsRecord:
    """Drop the grants of the table's families except those that are ``left``."""
    stay = {"", *left}
    return _with_grants(record, [one for one in record.grants if one.scope.table != table or one.scope.family in stay])


def without_namespace(record: RightsRecord, namespace: str) -> RightsRecord:
    return _with_grants(record, [one for one in record.grants if one.scope.namespace != namespace])


def _with_grants(record: RightsRecord, grants: list[Grant]) -> RightsRecord:
    if len(grants) == len(record.grants) and set(grants) == set(record.grants):
        return record
    return replace(record, grants=tuple(sorted(grants, key=_place)))


def _place(grant: Grant) -> tuple[str, ...]:
    scope = grant.scope
    return grant.grantee, scope.namespace, scope.table, scope.family, scope.qualifier or "", str(grant.rights)


# --- JSON of the catalogue's cells -------------------------------------------------------------------


def account_to_json(account: Account) -> bytes:
    tokens = [[one.label, one.hash, one.made_s] for one in account.tokens]
    return json.dumps({"password": account.password, "scram": account.scram, "tokens": tokens}).encode()


def account_from_json(name: str, data: bytes) -> Account:
    """Raises ValueError, KeyError or TypeError if the bytes are none of ours."""
    found = json.loads(data)
    tokens = tuple(Token(str(label), str(digest), int(made_s)) for label, digest, made_s in found["tokens"])
    return Account(name, str(found["password"]), str(found["scram"]), tokens)


def grants_to_json(grants: Iterable[Grant]) -> bytes:
    """Return the JSON of one grantee's grants."""
    rows = [
        [one.scope.namespace, one.scope.table, one.scope.family, one.scope.qualifier, letters_of(one.rights)]
        for one in grants
    ]
    return json.dumps(rows).encode()


def grants_from_json(grantee: str, data: bytes) -> list[Grant]:
    """Raises ValueError or TypeError if the bytes are none of ours."""
    return [
        Grant(grantee, Scope(namespace, table, family, qualifier), rights_from(letters))
        for namespace, table, family, qualifier, letters in json.loads(data)
    ]
