"""Rights in the store: read from their own rows, never from an index; each change is one atomic step.

A change of a page's rights requires an unchanged ``acl:revision`` and raises it; so of two concurrent changes one
fails with RightsChanged.  The first page of a site that gets lists of its own is announced in the row of the rules
before the lists are written, so processes that remember "the site has no rule" learn of it within a second.

On a plain HBase the first cell decides (``accounts.rows``); a second call writes the other cells.  A crash between
the two calls leaves a new revision number without a change.

Each process keeps the site's rules and the members of groups in memory, and reads them again when they are
RIGHTS_AGE_S old; so a change counts within a second.  If the rules are due when a page is read, the same call reads
them (``pages.Wiki.stored_page``), so a view needs no extra call for them.
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
from wikka_port.rights.acl import BadList, members_of
from wikka_port.rights.blocks import (
    BLOCK,
    BLOCKS_MAX,
    BadBlock,
    Block,
    Blocks,
    block_column,
    is_block_id,
    pack_block,
)
from wikka_port.rights.rules import (
    FAMILY,
    INHERITED,
    LISTED,
    NO_OWNERS,
    NO_RULES,
    OWN_LISTS,
    OWN_OWNER,
    PREFIX_CHARS_MAX,
    PREFIXES_MAX,
    PUBLIC,
    REVISION,
    RULES_BYTES_MAX,
    RULES_ROW,
    SETTINGS,
    SETTINGS_REVISION,
    PageRights,
    Privilege,
    Rules,
    next_revision,
    page_column,
    page_rights,
    rule_column,
)
from wikka_port.rights.words import checked_list
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
GROUPS_MAX: Final = 500  # in memory at once; the longest unused is dropped first
_RIGHTS: Final = (FAMILY, OWNER)
_TOKEN_BYTES: Final = 8
_ATTEMPTS: Final = 5  # to change rights of a page that others save at the same time


def _clock_ms() -> int:
    return time.time_ns() // 1_000_000


class RulesMemory:
    """The site's rules in memory.  Thread-safe, since the value is replaced as a whole."""

    def __init__(self, clock: Callable[[], float], now_ms: Callable[[], int] = _clock_ms) -> None:
        """Take a ``clock`` in seconds, for ages, and the time of day, for the ends of blocks."""
        self._clock = clock
        self._now_ms = now_ms
        self._cached: tuple[float, Rules] | None = None  # when it was read
        self._last: Rules | None = None  # outlives ``forget``

    def young(self) -> Rules | None:
        """Return the rules if they are young enough, or None if they must be read.

        A single call both checks and returns the rules: another thread may ``forget`` between a check and a use, and an
        absence of rules would admit everybody.
        """
        cached = self._cached
        return cached[1] if cached is not None and 0 <= self._clock() - cached[0] < RIGHTS_AGE_S else None

    def asking(self) -> float | None:
        """Return the present time if the rules must be read, or None if the rules in memory are young enough."""
        now = self._clock()
        return now if self.young() is None else None

    def take(self, cells: Mapping[bytes, bytes], begun: float) -> Rules:
        """Remember and return the rules in the cells of RULES_ROW, whose reading began at ``begun``."""
        cached, now_ms = self._cached, self._now_ms()
        is_known = cached is not None and cached[1].cells == cells and now_ms < cached[1].blocks.end_ms
        rules = cached[1] if cached is not None and is_known else Rules(cells, now_ms)
        self._cached, self._last = (begun, rules), rules
        return rules

    def latest(self) -> Rules:
        """Return the rules as they were last read, of any age; for what is no right, such as the name of the site."""
        return NO_RULES if self._last is None else self._last

    def forget(self) -> None:
        self._cached = None


@dataclass(frozen=True, slots=True)
class Group:
    head: bytes  # the revision of its page
    members: frozenset[str]


NO_GROUP: Final = Group(b"", frozenset())


class GroupMemory:
    """The members of groups in memory.  Thread-safe."""

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
        """Return the group as it was last read, of any age, or NO_GROUP if it is not in memory."""
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
    """Somebody else changed the rights meanwhile; nothing was written."""


class StoredRights:
    """The rights of pages and of the site.  Thread-safe.  Every method may raise StoreUnavailable."""

    def __init__(
        self,
        rows: Rows,
        clock: Callable[[], float] = time.monotonic,
        finish: Callable[[bytes], object] = lambda move: None,
        now_ms: Callable[[], int] = _clock_ms,
    ) -> None:
        """Take a ``clock`` in seconds, and ``finish``, which completes an interrupted move by its id.

        ``now_ms`` is the time of day, by which blocks end.
        """
        self._finish = finish
        self._rows = rows
        self._clock = clock
        self._now_ms = now_ms
        self.memory = RulesMemory(clock, now_ms)
        self._groups = GroupMemory(clock)

    # --- reading -----------------------------------------------------------------------------------

    def rules(self) -> Rules:
        """Return the site's rules, at most a second old."""
        young = self.memory.young()
        if young is not None:
            return young
        begun = self._clock()
        return self.memory.take(self._rows.row(PAGES, RULES_ROW, [FAMILY]), begun)

    def present_rules(self) -> Rules:
        """Return the site's rules as they are stored now."""
        self.memory.forget()
        return self.rules()

    def of(self, names: Collection[str]) -> dict[str, PageRights]:
        """Return the rights of each of ``names`` (empty if it is no page), with a call for each ROWS_PER_CALL names."""
        keys = {name: page_key(name) for name in names}
        cells = dict(self._in_steps(PAGES, set(keys.values()), _RIGHTS))
        return {name: _rights_in(cells.get(key, {})) for name, key in keys.items()}

    def of_pages(self, names: Collection[str]) -> dict[str, PageRights]:
        """Return by name the rights of those ``names`` that are pages, and of no others, at the cost of ``of``."""
        keys = {name: page_key(name) for name in names}
        cells = dict(self._in_steps(PAGES, set(keys.values()), (*_RIGHTS, VERSIONCOUNT)))
        return {name: _rights_in(cells[key]) for name, key in keys.items() if is_there(cells.get(key, {}))}

    def members(self, names: Collection[str]) -> dict[str, frozenset[str]]:
        """Return the members of group pages, at most a second old; the name of a user is no group."""
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
        """Return whether a list of the site or of a prefix has the name and no user has it.

        A page of that name is then a group page.
        """
        return name in self.rules().named and name not in self.users([name])

    def _read_groups(self, names: Collection[str]) -> dict[str, Group]:
        users = self.users(names)
        keys = {}
        for name in names:
            try:
                keys[page_key(name)] = name
            except InvalidName:
                continue  # no page can have this name
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

    def change(
        self, name: str, before: PageRights, owner: str, lists: Mapping[Privilege, str], *, token: str = ""
    ) -> PageRights:
        """Give a page these lists and this owner, if its rights are still as in ``before``.

        A list that is the same as in ``before`` is neither checked nor written: it keeps its mistakes, byte for byte.
        An import gives a ``token``, by which it recognises its own change; its lists keep their mistakes and meaning.
        Raises RightsChanged or BadList; the page's rights are then unchanged.
        """
        kept = dict(lists) if token else _changes_checked(lists, before.lists)
        token = token or secrets.token_hex(_TOKEN_BYTES)
        if kept and not self.rules().has_own_lists:
            self._announce(token)
        revision = next_revision(before.revision, token)
        changed = [one for one in LISTED if not before.revision or kept.get(one) != before.lists.get(one)]
        texts = {page_column(one): kept[one].encode() if one in kept else INHERITED for one in changed}
        owner = self._as_registered(owner)
        puts = {REVISION: revision, OWN_OWNER: owner.encode(), **texts}
        self._change_page(name, before, puts)
        if kept or before.lists:
            self._announce(token)
        return PageRights(owner, kept, revision)

    def _as_registered(self, owner: str) -> str:
        """Return the owner's name as the account spells it, since lists of owned pages compare it exactly."""
        if owner in NO_OWNERS or owner == PUBLIC:
            return owner
        account = self._rows.row(USERS, user_row(owner), [ACCOUNT_NAME])
        return account[ACCOUNT_NAME].decode() if ACCOUNT_NAME in account else owner

    def _change_page(self, name: str, before: PageRights, puts: Mapping[bytes, bytes]) -> None:
        """Write the rights.  Raises RightsChanged if they changed, or if a move has marked the page.

        A move may already have read the rights for the page's new row.  It is finished first, so that the next attempt
        finds the page under its new name.
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
                break  # a different page may have the name by now, also without a revision of its rights
            if self._rows.change(PAGES, key, {REVISION: before.revision or None, VERSIONCOUNT: newest}, puts):
                return
        raise RightsChanged(name)

    def announce_lists(self, token: str) -> None:
        """Announce that pages will have own lists, before the first of them is written."""
        if not self.rules().has_own_lists:
            self._announce(token)

    def add(self, name: str, owner: str, lists: Mapping[Privilege, str], token: str) -> bool:
        """Write the rights of a page that is about to be imported; return False if the page is here already.

        Its first revision then comes under these rights.  Call ``announce_lists`` before.
        """
        puts = self.imported_cells(owner, lists, token)
        return self._rows.change(PAGES, page_key(name), {VERSIONCOUNT: None}, puts)

    def imported_cells(self, owner: str, lists: Mapping[Privilege, str], token: str) -> dict[bytes, bytes]:
        """Return the cells of the rights of a page that is imported."""
        texts = {page_column(one): lists[one].encode() if one in lists else INHERITED for one in LISTED}
        return {REVISION: next_revision(b"", token), OWN_OWNER: self._as_registered(owner).encode(), **texts}

    def drop(self, name: str) -> None:
        """Remove what ``add`` wrote, if the page did not come."""
        gone = [REVISION, *map(page_column, LISTED)]
        self._rows.change(PAGES, page_key(name), {VERSIONCOUNT: None}, {OWN_OWNER: b""}, gone)

    def _announce(self, token: str) -> None:
        """Announce in RULES_ROW that pages have own lists, and that one of these changed, so that old counts expire."""
        self._rows.put(PAGES, RULES_ROW, {OWN_LISTS: token.encode()})
        self.memory.forget()

    def change_rules(
        self, prefix: str, lists: Mapping[Privilege, str | None], before: Rules, *, imported: bool = False
    ) -> Rules:
        """Set lists for names that begin with ``prefix`` ("" for all names); a list given as None is removed.

        A list that is the same as in ``before`` is neither checked nor written.  Lists that are ``imported`` keep their
        mistakes and meaning: to leave one out would open the pages that it hides.
        Raises RightsChanged.  Raises BadList if a text is no list, or the site would have too many lists.
        """
        if len(prefix) > PREFIX_CHARS_MAX:
            said = N_("The prefix has {size} characters and {most} are the most.")
            raise BadList(None, _(said, size=len(prefix), most=PREFIX_CHARS_MAX))
        present = before.lists_of(prefix)
        given = {privilege: text for privilege, text in lists.items() if text is not None}
        checked = given if imported else _changes_checked(given, present)
        kept: dict[Privilege, str | None] = {**dict.fromkeys(lists), **checked}
        revision = next_revision(before.revision, secrets.token_hex(_TOKEN_BYTES))
        after = Rules({**before.with_lists(prefix, kept).cells, REVISION: revision})
        _check_size(after)
        begin = before.folded_prefix(prefix)
        gone = [rule_column(one, begin) for one, text in kept.items() if text is None]
        puts = {REVISION: revision}
        changed = {one: text for one, text in kept.items() if text is not None and text != present.get(one)}
        puts |= {rule_column(one, begin): text.encode() for one, text in changed.items()}
        if not self._rows.change(PAGES, RULES_ROW, {REVISION: before.revision or None}, puts, gone):
            raise RightsChanged(prefix)
        self.memory.forget()
        return after

    # --- blocks ------------------------------------------------------------------------------------

    def blocks(self) -> Blocks:
        """Return the blocks in force, as they are stored now."""
        return Blocks(self._rows.row(PAGES, RULES_ROW, [FAMILY]), self._now_ms())

    def add_block(self, block: Block) -> None:
        """Store a block; blocks that are over go.  Raises BadBlock if there are BLOCKS_MAX."""
        cells = self._rows.row(PAGES, RULES_ROW, [FAMILY])
        stored = [column for column in cells if column.startswith(BLOCK)]
        in_force = {block_column(one.id) for one in Blocks(cells, self._now_ms()).all}
        if len(in_force) >= BLOCKS_MAX:
            raise BadBlock(_("There are {most} blocks, and that is the most: lift some first.", most=BLOCKS_MAX))
        over = [column for column in stored if column not in in_force]
        if over:
            self._rows.delete(PAGES, RULES_ROW, over)
        self._rows.put(PAGES, RULES_ROW, {block_column(block.id): pack_block(block)})
        self.memory.forget()

    def remove_block(self, block_id: str) -> None:
        if is_block_id(block_id):
            self._rows.delete(PAGES, RULES_ROW, [block_column(block_id)])
            self.memory.forget()


def _rights_in(cells: Cells) -> PageRights:
    return page_rights(cells, cells.get(OWNER, b""))


def _changes_checked(lists: Mapping[Privilege, str], present: Mapping[Privilege, str]) -> dict[Privilege, str]:
    """Return the lists as they are stored: checked, except for those that are ``present``.  Raises BadList."""
    return {one: text if text == present.get(one) else checked_list(one, text) for one, text in lists.items()}


def _check_size(rules: Rules) -> None:
    if len(rules.prefixes()) > PREFIXES_MAX:
        raise BadList(None, _("There can be lists for {most} prefixes at most.", most=PREFIXES_MAX))
    others = (SETTINGS, SETTINGS_REVISION)
    lists = {
        column: value for column, value in rules.cells.items() if not column.startswith(BLOCK) and column not in others
    }
    size = sum(len(column) + len(value) for column, value in lists.items())
    if size > RULES_BYTES_MAX:
        said = N_("The lists for prefixes would take {size} bytes and {most} are the most.")
        raise BadList(None, _(said, size=figure(size), most=figure(RULES_BYTES_MAX)))
