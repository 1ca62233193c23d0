"""(pure) Rights as they are stored: the lists of a page, and the site's lists by prefix of names.

A page's row in ``pages`` has
    acl:read acl:write acl:comment_read acl:comment_post   the page's own lists; if one is absent the prefix's counts
    acl:owner      the owner, once rights were changed; if the cell is absent ``meta:owner`` has the owner
    acl:revision   "N:token" of the last change of these cells.  All these cells change in one step with it, and a save
                   of the page requires that it is unchanged

The row RULES_ROW of ``pages`` has the lists for prefixes of names; the empty prefix is the site's default.
    acl:<privilege>:<folded prefix>   the list
    acl:own                           present if some page may have its own lists; gets a new value whenever one changes
    acl:revision                      "N:token", as above
    acl:block:<id>                    a block (``rights.blocks``)
    acl:settings, acl:settings-revision   settings of the site (``site_settings``), which have nothing to do with rights
The row lies in ``pages``, so that one call can read it together with a page; no page has its key.

The list for a privilege is the page's own, else that of the longest prefix of its name, else DEFAULT_LIST.
Case and accents of names do not count.

Knows nothing of the store, and of the visitors whom lists admit (``acl``).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from wikka_port.limits import FORMER_RIGHTS_BYTES
from wikka_port.names import InvalidName, normalise
from wikka_port.rights.acl import AccessList, lets_all_in, read_list
from wikka_port.rights.blocks import Blocks
from wikka_port.schema import folded
from wikka_port.texts import _

FAMILY: Final = b"acl"
OWN_OWNER: Final = b"acl:owner"
REVISION: Final = b"acl:revision"
OWN_LISTS: Final = b"acl:own"
SETTINGS: Final = b"acl:settings"
SETTINGS_REVISION: Final = b"acl:settings-revision"
INHERITED: Final = b"\x00"  # in the place of a list: the prefix's list counts; all cells of a page are written together
RULES_ROW: Final = b"~acl"  # after the key of every page

PREFIXES_MAX: Final = 200
RULES_BYTES_MAX: Final = 64 * 1024  # of all lists together: each process reads them once a second at most
PREFIX_CHARS_MAX: Final = 255

DEFAULT_LIST: Final = "*"  # everybody, until an administrator changes it
PUBLIC: Final = "(Public)"  # an owner without an account: nobody can have this name or claim the page
NO_OWNERS: Final = frozenset({"", "(Nobody)"})  # the second comes with imports of WikkaWiki


class Privilege(StrEnum):
    READ = "read"
    WRITE = "write"
    COMMENT_READ = "comment_read"
    COMMENT_POST = "comment_post"
    CHANGE_RIGHTS = "change_rights"  # the lists and the owner of a page
    CLAIM = "claim"  # become the owner of a page that has none
    RENAME = "rename"
    DELETE = "delete"  # hide the whole page, and bring it back
    ADMINISTER = "administer"  # work on the whole site


LISTED: Final = (Privilege.READ, Privilege.WRITE, Privilege.COMMENT_READ, Privilege.COMMENT_POST)


def page_column(privilege: Privilege) -> bytes:
    return b"acl:" + privilege.encode()


def rule_column(privilege: Privilege, prefix: str) -> bytes:
    """Return the column of a list for the names that begin with ``prefix``, which must be folded."""
    return b"acl:%s:%s" % (privilege.encode(), prefix.encode())


_COLUMNS: Final = {page_column(privilege): privilege for privilege in LISTED}


# --- one page ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PageRights:
    owner: str = ""  # "": none
    lists: Mapping[Privilege, str] = field(default_factory=dict)  # its own
    revision: bytes = b""  # of the last change; b"": there was none


NO_RIGHTS: Final = PageRights()


def page_rights(cells: Mapping[bytes, bytes], owner: bytes) -> PageRights:
    """Return the rights in the cells of a page's row; ``owner`` is the value of ``meta:owner``."""
    revision = cells.get(REVISION)
    if revision is None:
        return PageRights(owner.decode(errors="replace")) if owner else NO_RIGHTS
    stored = [(privilege, cells.get(column, INHERITED)) for column, privilege in _COLUMNS.items()]
    lists = {privilege: text.decode(errors="replace") for privilege, text in stored if text != INHERITED}
    return PageRights(cells.get(OWN_OWNER, owner).decode(errors="replace"), lists, revision)


@dataclass(frozen=True, slots=True)
class RightsChange:
    """A change of the rights of a page; what is not named stays as it is."""

    owner: str | None = None  # None: unchanged
    lists: Mapping[Privilege, str | None] = field(default_factory=dict)  # None: the list is removed

    def onto(self, rights: PageRights) -> tuple[str, dict[Privilege, str]]:
        """Return the owner and the lists of a page of these ``rights`` after the change."""
        lists = {one: text for one, text in {**rights.lists, **self.lists}.items() if text is not None}
        return rights.owner if self.owner is None else self.owner, lists

    def pack(self) -> str:
        lists = {str(one): text for one, text in self.lists.items()}
        return json.dumps({"owner": self.owner, "lists": lists}, ensure_ascii=False)


def parse_rights_change(packed: str) -> RightsChange:
    """Parse ``RightsChange.pack``; raise ValueError or KeyError if it is none."""
    found = json.loads(packed)
    return RightsChange(found["owner"], {Privilege(one): text for one, text in found["lists"].items()})


def pack_former(rights: PageRights, revision: bytes) -> bytes:
    """Return rights and the revision that replaced them, without a blank; b"" if they take over FORMER_RIGHTS_BYTES."""
    change = RightsChange(rights.owner, {one: rights.lists.get(one) for one in LISTED})
    packed = pack_replaced(revision, change)
    return packed if len(packed) <= FORMER_RIGHTS_BYTES else b""


def pack_replaced(revision: bytes, change: RightsChange) -> bytes:
    """Return the change that restores former rights, and the revision that replaced them, without a blank."""
    return base64.urlsafe_b64encode(revision + b"\n" + change.pack().encode())


def parse_former(former: bytes) -> tuple[bytes, RightsChange]:
    """Parse ``pack_former``; raise ValueError or KeyError if it is none."""
    revision, _newline, packed = base64.urlsafe_b64decode(former).partition(b"\n")
    return revision, parse_rights_change(packed.decode())


def number_of(revision: bytes) -> int:
    """Return how often the rights were changed."""
    number = revision.partition(b":")[0]
    return int(number) if number.isdigit() else 0


def next_revision(revision: bytes, token: str) -> bytes:
    return b"%d:%s" % (number_of(revision) + 1, token.encode())


# --- the site ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Source:
    """The origin of a list."""

    kind: str  # "page", "prefix", "site"
    prefix: str = ""

    def __str__(self) -> str:
        if self.kind == "page":
            return _("the page's own list")
        if self.kind == "prefix":
            return _("the list for names that begin with “{prefix}”", prefix=self.prefix)
        return _("the site's list")


OF_PAGE: Final = Source("page")
OF_SITE: Final = Source("site")


_BY_WORD: Final = {privilege.encode(): privilege for privilege in LISTED}


def _lists(cells: Mapping[bytes, bytes]) -> Iterator[tuple[tuple[Privilege, str], AccessList]]:
    for column, value in cells.items():
        word, colon, prefix = column.removeprefix(b"acl:").partition(b":")
        privilege = _BY_WORD.get(word)
        if colon and privilege is not None:
            yield (privilege, prefix.decode(errors="replace")), read_list(value.decode(errors="replace"))


def _page_names(lists: Iterable[AccessList]) -> Iterator[str]:
    for name in {name for access in lists for name in access.names}:
        try:
            yield normalise(name)
        except InvalidName:
            continue  # no page can have this name


class Rules:
    """The lists of the site by prefix, and its blocks.  Immutable."""

    def __init__(self, cells: Mapping[bytes, bytes] | None = None, now_ms: int = 0) -> None:
        """Parse the cells of RULES_ROW; blocks that are over at ``now_ms`` are left out."""
        self.cells: Final = dict(cells or {})
        self._now_ms: Final = now_ms
        self.lists: Final = dict(_lists(self.cells))
        self.has_own_lists: Final = OWN_LISTS in self.cells
        self.is_open: Final = not self.lists and not self.has_own_lists  # the site never had a rule
        self.blocks: Final = Blocks(self.cells, now_ms)
        self.revision: Final = self.cells.get(REVISION, b"")
        self.settings: Final = self.cells.get(SETTINGS, b"")
        self.named: Final = frozenset(_page_names(self.lists.values()))  # pages of these names are groups
        self._longest_first = {
            privilege: sorted((prefix for of, prefix in self.lists if of is privilege), key=len, reverse=True)
            for privilege in LISTED
        }

    @staticmethod
    def folded_prefix(prefix: str) -> str:
        """Return a prefix as it is stored and compared: without case and accents, but with a blank at its end."""
        return folded(prefix.replace("_", " "))

    def with_lists(self, prefix: str, lists: Mapping[Privilege, str | None]) -> Rules:
        """Return the rules with these lists for ``prefix``, which is folded here; a list given as None is removed."""
        begin = self.folded_prefix(prefix)
        cells = dict(self.cells)
        for privilege, text in lists.items():
            if text is None:
                cells.pop(rule_column(privilege, begin), None)
            else:
                cells[rule_column(privilege, begin)] = text.encode()
        return Rules(cells, self._now_ms)

    def lists_of(self, prefix: str) -> dict[Privilege, str]:
        """Return the lists of ``prefix`` itself, as texts."""
        begin = self.folded_prefix(prefix)
        return {one: self.lists[one, begin].text for one in LISTED if (one, begin) in self.lists}

    def prefixes(self) -> list[str]:
        """Return the folded prefixes that have lists; the empty prefix is the whole site's."""
        return sorted({prefix for _, prefix in self.lists})

    def list_for(self, name: str, privilege: Privilege) -> tuple[AccessList, Source]:
        """Return the list of the longest prefix of ``name``, and its origin."""
        of_privilege = self._longest_first[privilege]
        if of_privilege:
            begins = folded(name)
            for prefix in of_privilege:
                if begins.startswith(prefix):
                    source = Source("prefix", prefix) if prefix else OF_SITE
                    return self.lists[privilege, prefix], source
        return read_list(DEFAULT_LIST), OF_SITE


NO_RULES: Final = Rules()


def effective(name: str, rights: PageRights, rules: Rules, privilege: Privilege) -> tuple[AccessList, Source]:
    """Return the list that counts for a page, and its origin."""
    own = rights.lists.get(privilege)
    return rules.list_for(name, privilege) if own is None else (read_list(own), OF_PAGE)


def closed_lists(name: str, lists: Mapping[Privilege, str], theirs: Rules, here: Rules) -> dict[Privilege, str]:
    """Return the own lists of a page that comes from a wiki of other rules, ``theirs``.

    A list of ``theirs`` that closes the page becomes its own, if another one would count ``here``.  A page that
    ``theirs`` let everybody into has the list that counts here.
    """
    found = dict(lists)
    for privilege in LISTED:
        there = theirs.list_for(name, privilege)[0]
        if privilege in found or lets_all_in(there) or there.text == here.list_for(name, privilege)[0].text:
            continue
        found[privilege] = there.text
    return found
