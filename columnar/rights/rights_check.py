"""The check of each call of a client against the rights of its user, and the rights that a process holds.

``RightsHolder`` has the rights of all users, which the master publishes; the checks of all services of a process share
it.  Before the first publication no call is answered.

Invariants:
    K1. A call passes only if its user has the rights of ``method_rights``; a method without a rule is refused.
    K2. A narrowed read names at least one column, because a read without columns reads everything.
    K3. A refused call has had no effect, and the audit log has a line of it.
    K4. An allowed call that changes a definition has a line that names it (``audited_calls``).

The check of a call whose user has the rights on the whole table costs two look-ups, some 0.3 us compiled.  Owned by the
loop.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any, Final

from columnar.errors import AccessDenied, ColumnarError, RequestTooBig, RetryLater, abbreviate
from columnar.limits import COLUMNS_PER_CALL
from columnar.model.rights import READ, WRITE, ColumnRights, Losses, Rights, RightsRecord, right_names
from columnar.model.schema import table_name_text
from columnar.rights.audited_calls import audited_calls
from columnar.rights.method_rights import (
    LIST_FILTERS,
    METHOD_RIGHTS,
    SCHEMA,
    AnyRightRule,
    GlobalRule,
    IncrementsRule,
    MakerRule,
    NamespaceRule,
    OpenRule,
    PartsRule,
    QueueRule,
    ReadRule,
    RegionsRule,
    ScannerRule,
    SignedInRule,
    TableRule,
)
from columnar.rights.named_columns import Column, Part, increments
from columnar.security.sign_in import SignIn
from columnar.wire.codec import Request
from columnar.wire.service import CallContext, Keep

audit: Final = logging.getLogger("columnar.audit")
# Clients who have not signed in could fill the log; lines of this logger are counted (``runtime.log_rate``).
_strangers: Final = logging.getLogger("columnar.wire.audit")

CACHED_RIGHTS: Final = 65_536  # rights on whole tables, by user and table
CACHED_NAME_BYTES: Final = 512  # of a table, with its namespace
_GENERATION: Final = "@"  # in the name of a view's generation, before its number

FamiliesOf = Callable[[bytes], Collection[bytes] | None]  # of a table by the client's name; None: no such table
TableOfRegion = Callable[[bytes], str | None]  # by a region's name


class RightsHolder:
    """The rights of all users in this process."""

    def __init__(self, superusers: Iterable[str] = (), sign_in: SignIn | None = None) -> None:
        """Pass None as ``sign_in`` in a process without clients."""
        self.sign_in = sign_in  # constant
        self._superusers = tuple(superusers)  # constant
        self._rights: Rights | None = None  # None: the master has not published any yet
        self._cached: dict[str, dict[bytes, int]] = {}  # user -> table -> rights
        self._cached_count = 0
        self.end_scanners: Callable[[Callable[[str], bool]], object] = _no_scanners  # of users that lost a right

    def take_record(self, record: RightsRecord) -> None:
        """Decide by this record from the next call on."""
        before, self._rights = self._rights, Rights(record, self._superusers)
        self._forget_cached()
        if before is not None:
            self.end_scanners(Losses(before, self._rights).has_lost)
        if self.sign_in is not None:
            self.sign_in.take_accounts(record.accounts, record.unknown_key)

    def rights(self) -> Rights:
        """Return the present rights.  Raises RetryLater before the first publication."""
        if self._rights is None:
            raise RetryLater("this server has not got the rights of users yet; try again")
        return self._rights

    def table_rights(self, user: str, table: bytes) -> int:
        """Return the rights on the whole table, by the client's name of it."""
        of_user = self._cached.get(user)
        found = of_user.get(table) if of_user is not None else None
        return found if found is not None else self._decide(user, table)

    def check_parts(self, user: str, table: bytes, parts: Iterable[Part]) -> None:
        """Raise AccessDenied unless the user has every right on its column."""
        whole = self.table_rights(user, table)
        below: ColumnRights | None = None
        is_empty = True
        for right, family, qualifier in parts:
            is_empty = False
            if whole & right:
                continue
            if below is None:
                below = self.rights().column_rights(user, table_text(table))
            if family is None or not _rights_of(below, (family, qualifier)) & right:
                raise AccessDenied(user, _scope_text(table, family, qualifier), right_names(right))
        if is_empty and not self.rights().any_rights(user, table_text(table)):
            raise AccessDenied(user, _scope_text(table, None, None), "any")  # its error would tell of the table

    def check_everything(self, user: str, rights: Iterable[int]) -> None:
        """Raise AccessDenied unless the user has each of the rights on everything."""
        found = self.rights().global_rights(user)
        for right in rights:
            _require(user, found, right, "")

    def _decide(self, user: str, table: bytes) -> int:
        found = self.rights().table_rights(user, table_text(table))
        if len(table) > CACHED_NAME_BYTES:
            return found  # no table has such a name
        if self._cached_count >= CACHED_RIGHTS:
            self._forget_cached()
        self._cached_count += 1
        self._cached.setdefault(user, {})[table] = found
        return found

    def _forget_cached(self) -> None:
        self._cached.clear()
        self._cached_count = 0


def _no_scanners(_has_lost: Callable[[str], bool]) -> None:
    """End nothing: the process has no scanners."""


def table_text(table: bytes) -> str:
    """Return the name by which rights on the table are granted: all generations of a view have the view's."""
    return table_name_text(table).partition(_GENERATION)[0]


def _unknown(_region: bytes) -> None:
    return None


class RightsCheck:
    """The check of one service's calls."""

    def __init__(
        self,
        service: int,
        holder: RightsHolder,
        families_of: FamiliesOf,
        table_of_region: TableOfRegion = _unknown,
    ) -> None:
        self._holder = holder
        self.sign_in = holder.sign_in  # constant
        self._families_of = families_of
        self._table_of_region = table_of_region
        self._rules = METHOD_RIGHTS[service]
        self._filters = LIST_FILTERS[service]
        rows = (ReadRule, PartsRule)
        self._senders = {
            name: rule.sends
            for name, rule in self._rules.items()
            if isinstance(rule, PartsRule) and rule.sends is not None
        }
        self._audited = {
            name: subject
            for name, subject in audited_calls(service).items()
            if not isinstance(self._rules[name], SignedInRule)  # grants, accounts: ``master.rights_changes`` notes them
        }
        self._needs = {
            name: rule.need
            for name, rule in self._rules.items()
            if isinstance(rule, rows) and name not in self._audited  # these are checked closely, and noted
        }

    def check(self, ctx: CallContext, request: Request) -> Keep | None:
        """Raise AccessDenied if the user may not make the call; the arguments of a read may be narrowed.

        Returns what the answer must pass, if anything.
        """
        method = request.method
        assert method is not None, "a call of a known method"
        name = method.name
        need = self._needs.get(name)
        if need is not None:
            args = request.args
            table = args[0]
            if type(table) is not bytes:
                table = getattr(table, "table", None) or b""  # of TIncrement and TAppend
            if self._holder.table_rights(ctx.user, table) & need == need:
                sends = self._senders.get(name)
                if sends is None or not sends(args):
                    return None
        try:
            return self._check_closely(ctx, request, name)
        except AccessDenied as denied:
            (audit if ctx.user else _strangers).warning(
                "refused user=%s peer=%s method=%s scope=%s action=%s",
                ctx.user or "-",
                ctx.peer,
                name,
                abbreviate(denied.scope.encode(errors="replace")) or "GLOBAL",
                denied.action,
            )
            raise

    def list_filter(self, ctx: CallContext, method: str) -> Keep | None:
        """Return what the answer of the method must pass before the user sees it; None for most methods."""
        keep = self._filters.get(method)
        if keep is None:
            return None
        rights, user = self._holder.rights(), ctx.user
        return lambda found: keep(
            found,
            lambda table: rights.any_rights(user, table.partition(_GENERATION)[0]) != 0,
            lambda table: rights.table_rights(user, table) & SCHEMA != 0,
            lambda namespace: rights.sees_namespace(user, namespace),
        )

    # --- the rules -----------------------------------------------------------------------------------

    def _check_closely(self, ctx: CallContext, request: Request, name: str) -> Keep | None:
        rule, user, args = self._rules.get(name), ctx.user, request.args
        if isinstance(rule, OpenRule):
            return None
        if not user:
            raise AccessDenied("", "", "sign in")
        if isinstance(rule, ReadRule):
            table = args[0] if type(args[0]) is bytes else b""
            if self._holder.table_rights(user, table) & rule.need != rule.need:
                self._narrow(ctx, request, rule)
        elif isinstance(rule, PartsRule):
            table = args[0] if type(args[0]) is bytes else getattr(args[0], "table", None) or b""
            self._holder.check_parts(user, table, rule.parts(args))
            if rule.sends is not None and rule.sends(args):
                _require(user, self._holder.rights().global_rights(user), WRITE, "")
        elif isinstance(rule, QueueRule):
            self._holder.check_everything(user, rule.rights)
        elif isinstance(rule, IncrementsRule):
            for table, parts in increments(args).items():
                self._holder.check_parts(user, table, parts)
        elif isinstance(rule, MakerRule):
            _require(user, self._holder.rights().global_rights(user), rule.any_of, "")
            if rule.also is not None:
                self._holder.check_everything(user, rule.also(args))
            for table, reads in rule.reads(args).items():
                self._holder.check_parts(user, table, reads)
        elif isinstance(rule, ScannerRule | SignedInRule):
            pass
        else:
            self._check_scope(user, rule, args)
        subject = self._audited[name](args) if name in self._audited else ""
        if subject:
            audit.info("allowed user=%s peer=%s method=%s of=%s", user, ctx.peer, name, subject)
        return self.list_filter(ctx, name)

    def _check_scope(self, user: str, rule: object, args: list[Any]) -> None:
        rights = self._holder.rights()
        if isinstance(rule, TableRule):
            table = self._table_of(rule, args)
            found = rights.table_rights(user, table) if table else rights.global_rights(user)
            _require(user, found, rule.any_of, table)
        elif isinstance(rule, RegionsRule):
            for region in args[: rule.count]:
                table = self._table_of_region(region or b"") or ""
                found = rights.table_rights(user, table) if table else rights.global_rights(user)
                _require(user, found, rule.any_of, table)
        elif isinstance(rule, NamespaceRule):
            namespace = rule.namespace_of(args)
            _require(user, rights.namespace_rights(user, namespace), rule.any_of, "@" + namespace)
        elif isinstance(rule, GlobalRule):
            _require(user, rights.global_rights(user), rule.any_of, "")
        elif isinstance(rule, AnyRightRule):
            table = rule.table_of(args).partition(_GENERATION)[0]
            if not rights.any_rights(user, table):
                raise AccessDenied(user, table, "any")
        else:
            raise AccessDenied(user, "", "a method without a rule")

    def _table_of(self, rule: TableRule, args: list[Any]) -> str:
        """Return the table that the call is about; "" if there is none of the name."""
        table = rule.table_of(args).partition(_GENERATION)[0]
        if not rule.is_region or self._families_of(table.encode()) is not None:
            return table
        return self._table_of_region(args[0] or b"") or ""

    def _narrow(self, ctx: CallContext, request: Request, rule: ReadRule) -> None:
        """Take from each selection the columns that the user may not read; raise AccessDenied if none is left."""
        table = request.args[0] if type(request.args[0]) is bytes else b""
        below = self._holder.rights().column_rights(ctx.user, table_text(table))
        families = self._families_of(table)
        whole_row: list[Column] = [(family, None) for family in sorted(families or ())]
        readable: dict[tuple[Column, ...], list[Column]] = {}  # most selections of a call are the same
        is_changed = False
        for columns, replace in rule.selections(request.args):
            if len(columns) > COLUMNS_PER_CALL:
                raise RequestTooBig(f"{len(columns)} columns in one call, at most {COLUMNS_PER_CALL} are allowed")
            key = tuple(columns)
            left = readable.get(key)
            if left is None:
                left = readable[key] = _readable(list(dict.fromkeys(columns)) or whole_row, below)
            if not left:
                raise AccessDenied(ctx.user, _scope_text(table, *(columns[0] if columns else (None, None))), "READ")
            if left != columns:
                replace(left)
                is_changed = True
        if not is_changed and not below.families and not below.columns:
            raise AccessDenied(ctx.user, _scope_text(table, None, None), "READ")  # a call that selects nothing
        if is_changed and request.method is not None and request.buffer:
            request.replace_message(request.method.call_message(ctx.protocol, request.seqid, request.args))


def _readable(columns: list[Column], below: ColumnRights) -> list[Column]:
    """Return the columns among these that may be read; a family may become its readable columns."""
    by_family: dict[bytes, list[Column]] = {}
    for one in sorted(column for column, rights in below.columns.items() if rights & READ):
        by_family.setdefault(one[0], []).append(one)
    left: list[Column] = []
    for family, qualifier in columns:
        if _rights_of(below, (family, qualifier)) & READ:
            left.append((family, qualifier))
        elif qualifier is None:
            left += by_family.get(family, ())
    return left


def _rights_of(below: ColumnRights, column: tuple[bytes, bytes | None]) -> int:
    family, qualifier = column
    return below.of_family(family) if qualifier is None else below.of_column(family, qualifier)


def _require(user: str, found: int, any_of: int, scope: str) -> None:
    if not found & any_of:
        raise AccessDenied(user, scope, right_names(any_of))


def _scope_text(table: bytes, family: bytes | None, qualifier: bytes | None) -> str:
    text = table_name_text(table)
    if family is not None:
        text += f", family={abbreviate(family)}" + ("" if qualifier is None else f":{abbreviate(qualifier)}")
    return text


def check_of_tables(
    service: int, holder: RightsHolder, meant: Callable[[bytes], Any], region_named: Callable[[bytes], Any]
) -> RightsCheck:
    """Return the check of a service over tables: ``meant`` and ``region_named`` of ``operations.descriptions``."""
    return RightsCheck(service, holder, partial(_families, meant), partial(_of_region, region_named))


def _families(meant: Callable[[bytes], Any], table: bytes) -> Collection[bytes] | None:
    served = meant(table)
    return None if served is None else [family.bytes_name for family in served.schema.families]


def _of_region(region_named: Callable[[bytes], Any], region: bytes) -> str | None:
    try:
        name: str = region_named(region)[0].schema.name
    except ColumnarError:
        return None
    return name


def rules_of(service: int) -> Mapping[str, object]:
    """Return the rules of a service by method."""
    return METHOD_RIGHTS[service]
