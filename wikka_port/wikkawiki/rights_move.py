"""The rights of a WikkaWiki's pages: lists and owners, moved here.

A page that is not here yet gets its rights before its first revision, and one that came by an earlier move gets its
newer rights before its newer revisions, so no reader sees a text that its list refuses him.  A page that everybody may
read from now on waits until the end, since revisions that the source hides may still be visible here.  Rights that
somebody changed here stay: the token of the last change of a page's rights says whether it was a move, for it follows
from the lists and the owner that the move wrote.

Lists keep their texts.  A list over the bound of LIST_CHARS_MAX characters would admit nobody but owner and
administrators: the move writes ``!*`` for it and names the page.  The one list for comments of WikkaWiki until 1.2
becomes both lists.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from wikka_port.limits import ROWS_PER_CALL
from wikka_port.rights.acl import LIST_CHARS_MAX, lets_all_in
from wikka_port.rights.rules import LISTED, PageRights, Privilege, Rules, effective
from wikka_port.rights.stored import RightsChanged, StoredRights
from wikka_port.schema import folded
from wikka_port.wikkawiki.comparison import Compared, record_digest
from wikka_port.wikkawiki.php_config import Config
from wikka_port.wikkawiki.source_database import Source
from wikka_port.wikkawiki.source_pages import SourcePages
from wikka_port.wikkawiki.stored_text import unescaped

Lists = Mapping[Privilege, str]
NOBODY: Final = "!*"
_COLUMNS: Final = ("page_tag", "read_acl", "write_acl", "comment_acl", "comment_read_acl", "comment_post_acl")
_DEFAULTS: Final[Mapping[Privilege, tuple[str, str]]] = {  # names of the settings; the second until 1.2
    Privilege.READ: ("default_read_acl", "default_read_acl"),
    Privilege.WRITE: ("default_write_acl", "default_write_acl"),
    Privilege.COMMENT_READ: ("default_comment_read_acl", "default_comment_acl"),
    Privilege.COMMENT_POST: ("default_comment_post_acl", "default_comment_acl"),
}


@dataclass(slots=True)
class RightsReport:
    """Outcome of a move of rights; each entry of a list is a line for a person."""

    written: list[str] = field(default_factory=list)  # names of pages
    without_page: list[str] = field(default_factory=list)
    too_long: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)  # in this wiki, so they stay
    added: list[str] = field(default_factory=list)  # names of pages that got their rights before they came


def token_of(owner: str, lists: Lists) -> str:
    """Return the token of a change by a move."""
    parts = [owner, *(f"{one}:{lists[one]}" if one in lists else str(one) for one in LISTED)]
    return "moved-" + hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:16]


class RightsSource:
    """The rights of all pages of the source, by the names that the pages have here."""

    def __init__(
        self,
        source: Source,
        pages: SourcePages,
        report: RightsReport,
        close: Callable[[str, Lists], Lists] = lambda _name, lists: lists,
    ) -> None:
        """Take ``close``, which returns the lists that a page of this name and these lists gets here."""
        self._source = source
        self._pages = pages
        self._report = report
        self._close = close
        self._used: set[str] = set()

    def __iter__(self) -> Iterator[tuple[str, str, Lists]]:
        """Yield name, owner and own lists of each page.  Lists of a few thousand pages are in memory."""
        lists = dict(self._lists())
        seen: set[str] = set()
        for tag, name, owner in self._pages.owners():
            if name not in seen:
                seen = {name}  # the tags of a page follow one another
                yield name, owner, self._close(name, self._of_page(lists, tag))
        self._report.without_page.extend(sorted(tag for tag in lists.keys() - self._used if tag != self._key(tag)))

    def _key(self, tag: str) -> str:
        return folded(tag.replace("_", " "))

    def _lists(self) -> Iterator[tuple[str, Lists]]:
        reads = unescaped if self._source.escapes_html else str
        for row in self._source.rows("acls", _COLUMNS, "page_tag"):
            tag, read, write, both, comment_read, comment_post = row
            if self._source.has("acls", "comment_acl"):
                comment_read = comment_post = both
            texts = dict(zip(LISTED, (read, write, comment_read, comment_post), strict=True))
            bounded = {one: self._bounded(tag, reads(text)) for one, text in texts.items()}
            yield self._key(tag), bounded
            yield tag, bounded

    def _bounded(self, tag: str, text: str) -> str:
        lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        kept = "\n".join(line.strip() for line in lines).rstrip("\n")
        if len(kept) <= LIST_CHARS_MAX:
            return kept
        self._report.too_long.append(f"{tag}: a list of {len(kept):,} characters")
        return NOBODY

    def _of_page(self, lists: Mapping[str, Lists], tag: str) -> Lists:
        """Return the lists of a page; pages that differ in case alone have one list, as in MySQL."""
        key = self._key(tag)
        self._used |= {key, tag}
        return lists.get(tag) or lists.get(key, {})


class RightsMove:
    def __init__(self, rights: StoredRights, report: RightsReport) -> None:
        self._rights = rights
        self._report = report

    def prepare(self, source: Iterable[tuple[str, str, Lists]]) -> None:
        """Give pages their rights before their revisions, but open no page to everybody that was not open before."""
        for step in _in_steps(source):
            there, rules = self._rights.of_pages([name for name, _, _ in step]), self._rights.rules()
            for name, owner, lists in step:
                if name in there:
                    if is_moved(there[name]) and not _opens(name, there[name], PageRights(owner, lists), rules):
                        self._change(name, there[name], owner, lists)
                elif lists:
                    self._rights.announce_lists(token_of("", {}))
                    if self._rights.add(name, owner, lists, token_of(owner, lists)):
                        self._report.added.append(name)

    def open_present(self, source: Iterable[tuple[str, str, Lists]]) -> None:
        """Change the rights of pages that are here, also of those that ``prepare`` did not open."""
        for step in _in_steps(source):
            there = self._rights.of_pages([name for name, _, _ in step])
            for name, owner, lists in step:
                if name in there and is_moved(there[name]):
                    self._change(name, there[name], owner, lists)

    def finish(self, source: Iterable[tuple[str, str, Lists]]) -> None:
        """Change the rights of pages that have others in the source; remove those of pages that did not come."""
        for step in _in_steps(source):
            there = self._rights.of_pages([name for name, _, _ in step])
            for name, owner, lists in step:
                if name in there:
                    self._change(name, there[name], owner, lists)
                elif lists:
                    self._rights.drop(name)
        self._report.written.extend(self._report.added)

    def _change(self, name: str, there: PageRights, owner: str, lists: Lists) -> None:
        if is_same(there, owner, lists):
            return
        if not is_moved(there):
            self._report.changed.append(f"{name}: its rights were changed here")
            return
        try:
            self._rights.change(name, there, owner, lists, token=token_of(owner, lists))
            self._report.written.append(name)
        except RightsChanged:
            self._report.changed.append(f"{name}: its rights were changed meanwhile")


def is_same(there: PageRights, owner: str, lists: Lists) -> bool:
    return folded(there.owner) == folded(owner) and dict(there.lists) == dict(lists)


def _opens(name: str, there: PageRights, new: PageRights, rules: Rules) -> bool:
    """Return whether everybody may read the page by its ``new`` rights, and not by those of now."""
    now, then = (effective(name, rights, rules, Privilege.READ)[0] for rights in (there, new))
    return lets_all_in(then) and not lets_all_in(now)


def is_moved(there: PageRights) -> bool:
    """Return whether nobody has changed the rights in this wiki."""
    token = there.revision.partition(b":")[2].decode(errors="replace")
    return not there.revision or token.startswith("moved-")


def default_lists(config: Config) -> tuple[dict[Privilege, str], list[str]]:
    """Return the lists of pages without own ones, and the settings whose lists cannot be known or kept.

    These become NOBODY: a list that is left out would let everybody in.
    """
    found: dict[Privilege, str] = {}
    closed: list[str] = []
    for privilege, settings in _DEFAULTS.items():
        name = next((one for one in settings if one in config.values or one in config.unread), None)
        if name is None:
            continue
        value = "\n".join(line.strip() for line in config.values.get(name, "").split("\n")).strip()
        if name in config.unread or len(value) > LIST_CHARS_MAX:
            closed.append(name)
            value = NOBODY
        found[privilege] = value
    return found, closed


def compare_rights(rights: StoredRights, source: Iterable[tuple[str, str, Lists]], report: RightsReport) -> Compared:
    """Compare owner and lists of all pages that are here; those that were changed here are left out."""
    compared = Compared("rights")
    changed = {line.rpartition(":")[0] for line in report.changed}
    for step in _in_steps(source):
        there = rights.of_pages([name for name, _, _ in step])
        for name, owner, lists in step:
            if name in changed or name not in there:
                compared.leave_out(1)
                continue
            compared.add(name, [_digest(name, owner, lists)], [_digest(name, there[name].owner, there[name].lists)])
    return compared


def _digest(name: str, owner: str, lists: Lists) -> bytes:
    return record_digest(name, folded(owner), *(lists.get(one, "\0") for one in LISTED))


def _in_steps(source: Iterable[tuple[str, str, Lists]]) -> Iterator[list[tuple[str, str, Lists]]]:
    left = iter(source)
    while step := list(islice(left, ROWS_PER_CALL)):
        yield step
