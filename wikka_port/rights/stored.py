"""Rights in the store: read from the rows that they stand in, never from an index; changed in one step each.

A change of a page's rights depends on ``acl:revision``, which it raises: of two that change at once one gets
RightsChanged.  The first list of a page of this site is announced in the row of the rules before it is written, so
processes with "there is no rule" in memory learn of it within a second.

On a plain HBase the first cell decides (``accounts.rows``); the others follow in a call of their own.  A crash between
the two leaves a revision number without a change.

Each process keeps the rules of the site and members of groups in memory, and reads them again when they are
RIGHTS_AGE_S old, so a change counts within a second.  The rules come with the call that reads a page, where they are
due then (``pages.Wiki.stored_page``): a view costs no call of its own for them.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

from wikka_port.accounts.rows import Cells, Rows
from wikka_port.accounts.tables import ID, USERS, user_row
from wikka_port.accounts.tables import NAME as ACCOUNT_NAME
from wikka_port.limits import ROWS_PER_CALL
from wikka_port.names import InvalidName, page_key
from wikka_port.page_rows import is_stale, is_there
from wikka_port.rights.acl import BadList, checked, members_of
from wikka_port.rights.rules import (
    FAMILY,
    INHERITED,
    LISTED,
    NO_OWNERS,
    OWN_LISTS,
    OWN_OWNER,
    PREFIX_CHARS_MAX,
    PREFIXES_MAX,
    PUBLIC,
    REVISION,
    RULES_BYTES_MAX,
    RULES_ROW,
    PageRights,
    Privilege,
    Rules,
    next_revision,
    page_column,
    page_rights,
    rule_column,
)
from wikka_port.schema import (
    BODY,
    HEAD,
    OWNER,
    PAGES,
    REVISION_BODY,
    REVISIONS,
    VERSIONCOUNT,
    parse_head,
    revision_row,
)
from wikka_port.texts import N_, _, figure

RIGHTS_AGE_S: Final = 0.9  # the rest of the second is for the request
GROUPS_MAX: Final = 500  # kept at once; the longest unused goes first
_RIGHTS: Final = (FAMILY, OWNER)
_TOKEN_BYTES: Final = 8
_ATTEMPTS: Final = 5  # where the page is saved at the same moment


class RulesMemory:
    """Thread-safe: a value is replaced as a whole."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._cached: tuple[float, Rules] | None = None  # when it was read

    def young(self) -> Rules | None:
        """Return the rules if they are young enough; None: they have to be read.

        The answer is the rules themselves: another thread may ``forget`` between a check and a use, and no rules
        at all let everybody in.
        """
        cached = self._cached
        return cached[1] if cached is not None and 0 <= self._clock() - cached[0] < RIGHTS_AGE_S else None

    def asking(self) -> float | None:
        """When a reading that begins now begins; None: those in memory are young enough."""
        now = self._clock()
        return now if self.young() is None else None

    def take(self, cells: Mapping[bytes, bytes], begun: float) -> Rules:
        """``cells``: of the row, read since ``begun``."""
        cached = self._cached
        rules = cached[1] if cached is not None and cached[1].cells == cells else Rules(cells)
        self._cached = (begun, rules)
        return rules

    def forget(self) -> None:
        self._cached = None


@dataclass(frozen=True, slots=True)
class Group:
    head: bytes  # the revision of its page
    members: frozenset[str]


NO_GROUP: Final = Group(b"", frozenset())


class GroupMemory:
    """Thread-safe."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._cached: OrderedDict[str, tuple[float, Group]] = OrderedDict()  # guarded by _lock

    def young(self, names: Collection[str]) -> dict[str, Group]:
        """Return the groups among ``names`` that are in memory and young enough."""
        now = self._clock()
        with self._lock:
            found = {name: self._cached[name] for name in names if name in self._cached}
            for name in found:
                self._cached.move_to_end(name)
        return {name: group for name, (begun, group) in found.items() if 0 <= now - begun < RIGHTS_AGE_S}

    def old(self, name: str) -> Group:
        """As it was when it was last read; NO_GROUP: it is not in memory."""
        with self._lock:
            found = self._cached.get(name)
            return NO_GROUP if found is None else found[1]

    def keep(self, groups: Mapping[str, Group], begun: float) -> None:
        with self._lock:
            for name, group in groups.items():
                self._cached[name] = (begun, group)
                self._cached.move_to_end(name)
            while len(self._cached) > GROUPS_MAX:
                self._cached.popitem(last=False)


class RightsChanged(Exception):
    """Somebody else changed them meanwhile: nothing was written."""


class StoredRights:
    """Thread-safe.  Everything may raise StoreUnavailable."""

    def __init__(
        self,
        rows: Rows,
        clock: Callable[[], float] = time.monotonic,
        finish: Callable[[bytes], object] = lambda move: None,
    ) -> None:
        """``clock``: in seconds, of this process; ``finish`` continues a move that was cut off, by its id."""
        self._finish = finish
        self._rows = rows
        self._clock = clock
        self.memory = RulesMemory(clock)
        self._groups = GroupMemory(clock)

    # --- reading -----------------------------------------------------------------------------------

    def rules(self) -> Rules:
        """At most a second old."""
        young = self.memory.young()
        if young is not None:
            return young
        begun = self._clock()
        return self.memory.take(self._rows.row(PAGES, RULES_ROW, [FAMILY]), begun)

    def of(self, names: Collection[str]) -> dict[str, PageRights]:
        """Return the rights of each of ``names``; a name that is no page has none.  ROWS_PER_CALL of them in a call."""
        keys = {name: page_key(name) for name in names}
        cells = dict(self._in_steps(PAGES, set(keys.values()), _RIGHTS))
        return {name: _rights_in(cells.get(key, {})) for name, key in keys.items()}

    def of_pages(self, names: Collection[str]) -> dict[str, PageRights]:
        """As ``of``, of those names alone at which a page is."""
        keys = {name: page_key(name) for name in names}
        cells = dict(self._in_steps(PAGES, set(keys.values()), (*_RIGHTS, VERSIONCOUNT)))
        return {name: _rights_in(cells[key]) for name, key in keys.items() if is_there(cells.get(key, {}))}

    def members(self, names: Collection[str]) -> dict[str, frozenset[str]]:
        """Return the members of group pages; a name that is a user's is no group.  At most a second old."""
        if not names:
            return {}
        found = self._groups.young(names)
        missing = [name for name in names if name not in found]
        if missing:
            begun = self._clock()
            read = self._read_groups(missing)
            self._groups.keep(read, begun)
            found.update(read)
        return {name: group.members for name, group in found.items()}

    def users(self, names: Iterable[str]) -> set[str]:
        """Return the registered users among ``names``."""
        rows = {user_row(name): name for name in names if name}
        return {rows[row] for row, _ in self._in_steps(USERS, rows, (ID,))}

    def means_group(self, name: str) -> bool:
        """A list of the site or of a prefix has the name, and no user has it: a page of that name is a group."""
        return name in self.rules().named and name not in self.users([name])

    def _read_groups(self, names: Collection[str]) -> dict[str, Group]:
        users = self.users(names)
        keys = {}
        for name in names:
            try:
                keys[page_key(name)] = name
            except InvalidName:
                continue  # no page can be called so
        groups = dict.fromkeys(names, NO_GROUP)
        changed = {}
        for key, cells in self._in_steps(PAGES, keys, (VERSIONCOUNT,)):
            name, head = keys[key], cells[VERSIONCOUNT]
            cached = self._groups.old(name)
            if name in users:
                continue
            if not is_there(cells):
                continue
            if cached.head == head:
                groups[name] = cached
            else:
                changed[key] = name
        for key, cells in self._in_steps(PAGES, changed, (VERSIONCOUNT, HEAD, BODY)):
            body = self._body(key, cells).decode(errors="replace")
            groups[changed[key]] = Group(cells.get(VERSIONCOUNT, b""), members_of(body))
        return groups

    def _body(self, key: bytes, cells: Cells) -> bytes:
        if not is_stale(cells):
            return cells.get(BODY, b"")
        newest = revision_row(key, parse_head(cells.get(VERSIONCOUNT)))
        return self._rows.row(REVISIONS, newest, [REVISION_BODY]).get(REVISION_BODY, b"")

    def _in_steps(
        self, table: bytes, keys: Iterable[bytes], columns: tuple[bytes, ...]
    ) -> Iterable[tuple[bytes, Cells]]:
        left = iter(keys)
        while step := list(islice(left, ROWS_PER_CALL)):
            yield from self._rows.rows(table, step, columns).items()

    # --- changes -----------------------------------------------------------------------------------

    def change(self, name: str, before: PageRights, owner: str, lists: Mapping[Privilege, str]) -> PageRights:
        """Give a page these lists and this owner, if its rights are still as in ``before``.

        Raises RightsChanged; BadList before anything is written.
        """
        kept = {privilege: checked(text) for privilege, text in lists.items()}
        token = secrets.token_hex(_TOKEN_BYTES)
        if kept and not self.rules().has_own_lists:
            self._announce(token)
        revision = next_revision(before.revision, token)
        texts = {page_column(one): kept[one].encode() if one in kept else INHERITED for one in LISTED}
        owner = self._as_registered(owner)
        puts = {REVISION: revision, OWN_OWNER: owner.encode(), **texts}
        self._change_page(name, before, puts)
        if kept or before.lists:
            self._announce(token)
        return PageRights(owner, kept, revision)

    def _as_registered(self, owner: str) -> str:
        """Return the name as its account has it: pages are found by their owner to the letter."""
        if owner in NO_OWNERS or owner == PUBLIC:
            return owner
        account = self._rows.row(USERS, user_row(owner), [ACCOUNT_NAME])
        return account[ACCOUNT_NAME].decode() if ACCOUNT_NAME in account else owner

    def _change_page(self, name: str, before: PageRights, puts: Mapping[bytes, bytes]) -> None:
        """Not while a move has marked the page: its rights may have been read for its new row.  RightsChanged.

        The move is finished first, so the next attempt meets the page where it is then.
        """
        key = page_key(name)
        for _attempt in range(_ATTEMPTS):
            stored = self._rows.row(PAGES, key, [*_RIGHTS, VERSIONCOUNT])
            newest = stored.get(VERSIONCOUNT)
            mark = parse_head(newest).mark
            if mark:
                self._finish(mark)
            rights = _rights_in(stored)
            if mark or (rights.owner, rights.revision) != (before.owner, before.revision) or not is_there(stored):
                break  # another page may have the name by now, and the same revision: none
            if self._rows.change(PAGES, key, {REVISION: before.revision or None, VERSIONCOUNT: newest}, puts):
                return
        raise RightsChanged(name)

    def _announce(self, token: str) -> None:
        """That there are lists of pages, and that one was changed: what was counted before is counted anew."""
        self._rows.put(PAGES, RULES_ROW, {OWN_LISTS: token.encode()})
        self.memory.forget()

    def change_rules(self, prefix: str, lists: Mapping[Privilege, str | None], before: Rules) -> Rules:
        """Set lists for names that begin with ``prefix`` ("": all), or remove them (None).

        Raises RightsChanged; BadList where one is no list, or where there would be too many.
        """
        if len(prefix) > PREFIX_CHARS_MAX:
            said = N_("The prefix has {size} characters and {most} are the most.")
            raise BadList(None, _(said, size=len(prefix), most=PREFIX_CHARS_MAX))
        begin = before.folded_prefix(prefix)
        puts = {rule_column(one, begin): checked(text).encode() for one, text in lists.items() if text is not None}
        gone = [rule_column(one, begin) for one, text in lists.items() if text is None]
        cells = {column: value for column, value in {**before.cells, **puts}.items() if column not in gone}
        cells[REVISION] = next_revision(before.revision, secrets.token_hex(_TOKEN_BYTES))
        after = Rules(cells)
        _check_size(after)
        puts = {REVISION: cells[REVISION], **puts}
        if not self._rows.change(PAGES, RULES_ROW, {REVISION: before.revision or None}, puts, gone):
            raise RightsChanged(prefix)
        self.memory.forget()
        return after


def _rights_in(cells: Cells) -> PageRights:
    return page_rights(cells, cells.get(OWNER, b""))


def _check_size(rules: Rules) -> None:
    if len(rules.prefixes()) > PREFIXES_MAX:
        raise BadList(None, _("There can be lists for {most} prefixes at most.", most=PREFIXES_MAX))
    size = sum(len(column) + len(value) for column, value in rules.cells.items())
    if size > RULES_BYTES_MAX:
        said = N_("The lists for prefixes would take {size} bytes and {most} are the most.")
        raise BadList(None, _(said, size=figure(size), most=figure(RULES_BYTES_MAX)))
