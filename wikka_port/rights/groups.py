"""Groups: the pages whose members access lists let in or keep out, found by their names in the lists.

A name in a list of the site, of a prefix, or of a page means a group unless it is a user's.  The lists of the site and
of prefixes are read whole; of the pages with lists of their own LISTS_SCANNED are, so a large wiki may have groups
that are not found here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from wikka_port.accounts.rows import Rows
from wikka_port.accounts.tables import NAME, USERS, user_row
from wikka_port.limits import GROUPS_LISTED, LISTS_SCANNED, MEMBERS_LISTED
from wikka_port.names import InvalidName, normalise
from wikka_port.rights.acl import read_list
from wikka_port.rights.rules import INHERITED, LISTED, RULES_ROW, page_column
from wikka_port.rights.stored import StoredRights
from wikka_port.schema import PAGES, folded


@dataclass(frozen=True, slots=True)
class Group:
    name: str
    members: tuple[str, ...]  # the first MEMBERS_LISTED, by name, as their accounts spell them
    count: int  # of all members; 0: there is no such page, or it names nobody
    strangers: frozenset[str]  # those of ``members`` without an account; their names are folded
    is_of_site: bool  # whether a list of the site or of a prefix has it


def all_groups(rows: Rows, stored: StoredRights) -> tuple[list[Group], bool]:
    """Return the groups by name, and whether there may be more.  Raises StoreUnavailable.

    Costs one scan of the pages' lists, and a few gets for the members.
    """
    names, of_site, more = _named(rows, stored)
    members = stored.members(names)
    return [_group(rows, name, members[name], name in of_site) for name in names], more


def groups_with(rows: Rows, stored: StoredRights, user: str) -> tuple[list[str], bool]:
    """Return the names of the groups that ``user`` is a member of, and whether there may be more."""
    names, _of_site, more = _named(rows, stored)
    return [name for name, members in stored.members(names).items() if folded(user) in members], more


def _named(rows: Rows, stored: StoredRights) -> tuple[list[str], Collection[str], bool]:
    columns, of_pages, scanned = [page_column(one) for one in LISTED], set[str](), 0
    for row, cells in rows.scan(PAGES, columns=columns, limit=LISTS_SCANNED):
        scanned += 1
        if row != RULES_ROW:
            texts = (cell.decode(errors="replace") for cell in cells.values() if cell != INHERITED)
            of_pages.update(_page_names(name for text in texts for name in read_list(text).names))
    of_site = stored.rules().named
    names = sorted(of_pages | of_site)
    users = stored.users(names)
    found = [name for name in names if name not in users]
    return found[:GROUPS_LISTED], of_site, scanned == LISTS_SCANNED or len(found) > GROUPS_LISTED


def _page_names(names: Iterable[str]) -> set[str]:
    found = set()
    for name in names:
        try:
            found.add(normalise(name))
        except InvalidName:
            continue  # no page can have this name
    return found


def _group(rows: Rows, name: str, members: Collection[str], is_of_site: bool) -> Group:
    listed = sorted(members)[:MEMBERS_LISTED]
    accounts = rows.rows(USERS, [user_row(one) for one in listed], [NAME])
    known = {one: accounts[user_row(one)][NAME].decode() for one in listed if user_row(one) in accounts}
    spelled = tuple(known.get(one, one) for one in listed)
    return Group(name, spelled, len(members), frozenset(listed) - known.keys(), is_of_site)
