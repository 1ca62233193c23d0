"""Explanations of a page's rights, in words and for one visitor: for the form of rights and for ``wikka acl``.

Reads from the store whether names in the lists are users or groups.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from wikka_port.rights.acl import AccessList, lets_all_in, read_list
from wikka_port.rights.judging import Decision, Guarded, group_names, may
from wikka_port.rights.rules import LISTED, PageRights, Privilege, Rules, Source, effective
from wikka_port.rights.stored import StoredRights
from wikka_port.rights.words import TITLES, Joiners, Named, Words, in_words
from wikka_port.texts import _
from wikka_port.visitors import Visitor

Readable = Callable[[Collection[str]], Collection[str]]
_JOINERS_MAX = 20  # group pages of one list whose own rights are read


@dataclass(frozen=True, slots=True)
class Explained:
    privilege: Privilege
    title: str
    source: Source
    access: AccessList
    words: Words


def explained(
    stored: StoredRights,
    name: str,
    rights: PageRights,
    readable: Readable = lambda names: names,
    rules: Rules | None = None,
) -> list[Explained]:
    """Return the list that counts for each privilege, explained.  Raises StoreUnavailable.

    ``readable`` selects the group pages that the reader of the explanation may read; members of other groups are not
    counted.  ``rules`` are proposed ones, in the place of the site's.
    """
    rules = stored.rules() if rules is None else rules
    lists = {privilege: effective(name, rights, rules, privilege) for privilege in LISTED}
    named = _named(stored, rules, {one for access, _ in lists.values() for one in access.names}, readable)
    return [
        Explained(privilege, _(TITLES[privilege]), source, access, in_words(access, named.__getitem__))
        for privilege, (access, source) in lists.items()
    ]


def words_of(stored: StoredRights, text: str) -> Words:
    """Explain one list.  Raises StoreUnavailable."""
    access = read_list(text)
    return in_words(access, _named(stored, stored.rules(), set(access.names)).__getitem__)


def decisions(stored: StoredRights, visitor: Visitor, page: Guarded) -> Mapping[Privilege, Decision]:
    """Return the decision on each privilege, after reading the groups that count.  Raises StoreUnavailable."""
    groups = stored.members(group_names(visitor, [(page.name, page.rights)], page.rules))
    full = Guarded(page.name, page.rights, page.exists, page.rules, groups)
    return {privilege: may(visitor, full, privilege) for privilege in (*LISTED, Privilege.CHANGE_RIGHTS)}


def _named(
    stored: StoredRights, rules: Rules, names: Iterable[str], readable: Readable = lambda names: names
) -> dict[str, Named]:
    wanted = sorted(names)
    users = stored.users(wanted)
    members = stored.members([name for name in wanted if name not in users])
    groups = [name for name in wanted if members.get(name)]
    rights = stored.of(groups[:_JOINERS_MAX])
    found = {name: Named("user") if name in users else Named("nobody") for name in wanted}
    counted = set(readable(groups))
    for name in groups:
        joined_by = _joined_by(effective(name, rights[name], rules, Privilege.WRITE)[0]) if name in rights else ""
        found[name] = Named("group", len(members[name]) if name in counted else 0, joined_by)
    return found


def _joined_by(writers: AccessList) -> Joiners:
    if lets_all_in(writers):
        return "everybody"
    first = writers.entries[0] if writers.entries else None
    return "registered" if first and first.kind == "registered" and not first.negated else ""
