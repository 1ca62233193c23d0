"""(pure) Rights of a DokuWiki, ``conf/acl.auth.php``, as lists of this wiki.

    where          who          level       0 none, 1 read, 2 edit, 4 create, 8 upload, 16 delete
    *              @ALL         1
    team:*         @staff       8
    team:plans     ann          2
    user:%USER%:*  %USER%       16

The lines of the nearest place that has one for a visitor decide: of the page itself, then of its namespaces from the
innermost to ``*``; of several such lines the highest level counts; without one there is no access.  ``@ALL`` is
everybody, ``@user`` (the setting ``defaultgroup``) whoever registers.

A list admits or refuses visitors by name, registered ones, or everybody.  Groups are written as the names of those who
are in them now.  Four levels become two rights, and what cannot be said exactly admits fewer: reading needs level 1,
writing level 8, since whoever may write here may make pages and add files.  The lists for comments follow these two.

Knows nothing of the store.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote

from wikka_port.rights.acl import LIST_CHARS_MAX, LIST_LINES_MAX
from wikka_port.rights.rules import Privilege

READ_LEVEL: Final = 1
WRITE_LEVEL: Final = 8
_EDIT_LEVEL: Final = 2
NOBODY: Final = "!*"
_ANYBODY: Final = "%user%"  # as ``who``: each registered visitor
_LEVELS: Final = re.compile(r"[0-9]{1,3}")
_LINES_MAX: Final = 10_000  # that are no comments
_TERMINALS: Final = {(True, True): "*", (True, False): "+", (False, True): "!+", (False, False): NOBODY}


class TooManyLines(ValueError):
    """A file has more lines than are read; those behind them may be the ones that hide a page."""

    def __init__(self, name: str, most: int) -> None:
        super().__init__(
            f"{name} has more than {most:,} lines, so nothing is brought in. Shorten it, or import --without-rights "
            "where nobody else reads yet, and set the rights there"
        )


@dataclass(frozen=True, slots=True)
class DokuUser:
    login: str
    groups: frozenset[str]  # in small letters, without "@"


@dataclass(frozen=True, slots=True)
class AclLine:
    where: str  # "*", "team:*" or "team:plans"
    who: str  # in small letters; "@" before a group
    level: int


@dataclass(frozen=True, slots=True)
class Acl:
    """The lines of a file, and those who are known."""

    lines: tuple[AclLine, ...]
    users: tuple[DokuUser, ...]
    default_group: str = "user"
    unread: int = 0  # lines without a level
    _by_place: Mapping[str, tuple[AclLine, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, text: str, users: Collection[DokuUser], default_group: str = "user") -> Acl:
        """Read the lines of acl.auth.php.  Raises TooManyLines."""
        lines: list[AclLine] = []
        unread = 0
        for count, line in enumerate(bare_lines(text)):
            if count == _LINES_MAX:
                raise TooManyLines("acl.auth.php", _LINES_MAX)
            where, who, level = [*line.split(), "", ""][:3]  # DokuWiki passes over further words
            is_read = _LEVELS.fullmatch(level) is not None
            unread += not is_read
            if who:  # a level that is none lets nobody in: without the line an outer one would count
                lines.append(AclLine(where.lower(), unquote(who).lower(), int(level) if is_read else 0))
        known = tuple(sorted(users, key=lambda one: one.login))
        places: dict[str, list[AclLine]] = {}
        for one in _expanded(lines, known):
            places.setdefault(one.where, []).append(one)
        return cls(tuple(lines), known, default_group, unread, {place: tuple(own) for place, own in places.items()})

    @property
    def namespaces(self) -> list[str]:
        """The namespaces with lines of their own, by their ids; "" is the whole wiki."""
        return sorted(place[:-1].rstrip(":") for place in self._by_place if place.endswith("*"))

    def level(self, page: str, user: DokuUser | None) -> int:
        """Return the level of a visitor for a page; ``user`` is None if he has no account."""
        names = {"@all"}
        if user is not None:
            names |= {user.login.lower(), _ANYBODY, *(f"@{one}" for one in user.groups)}
        for place in _places(page):
            found = [one.level for one in self._by_place.get(place, ()) if one.who in names]
            if found:
                return max(found)
        return 0

    def lists(self, page: str, names: Collection[str]) -> dict[Privilege, str]:
        """Return the lists that mean the same for a page, or for a new one of the namespace if it ends with ":*".

        ``names`` has the logins that are accounts here; others are not named.
        """
        read, write = (self._list(page, least, names) for least in (READ_LEVEL, WRITE_LEVEL))
        return {
            Privilege.READ: read,
            Privilege.WRITE: write,
            Privilege.COMMENT_READ: read,
            Privilege.COMMENT_POST: write,
        }

    def _list(self, page: str, least: int, names: Collection[str]) -> str:
        anybody = DokuUser("", frozenset({self.default_group}))
        registered, everybody = self.level(page, anybody) >= least, self.level(page, None) >= least
        allowed = [(one.login, self.level(page, one) >= least) for one in self.users if one.login in names]
        entries = [login if may else f"!{login}" for login, may in allowed if may != registered]
        text = "\n".join([*entries, _TERMINALS[registered, everybody]])
        return text if len(entries) < LIST_LINES_MAX and len(text) <= LIST_CHARS_MAX else NOBODY

    def weaker(self, page: str) -> list[str]:
        """Return those who may edit the page there and not here, since they may not upload."""
        anybody = DokuUser("", frozenset({self.default_group}))
        special = [("everybody", self.level(page, None)), ("registered people", self.level(page, anybody))]
        levels = [*special, *((one.login, self.level(page, one)) for one in self.users)]
        return [who for who, level in levels if _EDIT_LEVEL <= level < WRITE_LEVEL]


def bare_lines(text: str) -> Iterator[str]:
    """Yield the lines of acl.auth.php without comments; none that is blank."""
    return (bare for line in text.splitlines() if (bare := line.partition("#")[0].strip()))


def _expanded(lines: Collection[AclLine], users: Collection[DokuUser]) -> Iterator[AclLine]:
    """Yield the lines; one with %USER% in its place, or with %GROUP%, becomes a line for each user whom it means."""
    for line in lines:
        if _ANYBODY not in line.where and "%group%" not in f"{line.where} {line.who}":
            yield line
            continue
        for user in users:
            login = user.login.lower()
            names = {login, "@all", *(f"@{one}" for one in user.groups)}
            for group in sorted(user.groups) if "%group%" in f"{line.where} {line.who}" else [""]:
                who = line.who.replace(_ANYBODY, login).replace("%group%", group)
                if who in names:
                    where = line.where.replace(_ANYBODY, login).replace("%group%", group)
                    yield AclLine(where, login, line.level)


def _places(page: str) -> Iterator[str]:
    """Yield the places whose lines count for a page, the nearest first."""
    if not page.endswith("*"):
        yield page
        page = f"{page.rpartition(':')[0]}:*" if ":" in page else "*"
    while page != "*":
        yield page
        namespace = page[:-2].rpartition(":")[0]
        page = f"{namespace}:*" if namespace else "*"
    yield "*"
