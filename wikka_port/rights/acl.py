"""(pure) The language of access lists, which is WikkaWiki's: from a text to its entries, and the check of a visitor.

    list  := line*            the first entry that applies to a visitor decides; if none applies, he is refused
    line  := blank | comment | "!"? who
    who   := "*"              everybody
           | "+"              admits registered (signed-in) visitors and refuses all others
           | name             the user of that name, or the members of the group page of that name
    comment := "#" anything   also after "!"

    #  Ann, but nobody else of the editors; then all who are registered
    Ann
    !EditorsGroup
    +

A ``!`` in front negates the entry: ``!*`` admits nobody, ``!+`` only visitors who are not signed in.  An entry
``+`` or ``!+`` applies to everybody, as in WikkaWiki, so no line after it counts.  Case and accents of names do not
count (``schema.folded``).  A group page names its members between plus signs in its text: ``+Ann+`` or ``+Ann+Bob+``.

``read_list`` never fails: imported lists keep their meaning.  ``checked`` is for a list that somebody writes now: it
refuses lines that are most likely a mistake.

Knows nothing of pages, owners and administrators (``judging``), and nothing of the storage of lists.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from wikka_port.schema import folded
from wikka_port.texts import N_, _, figure

LIST_CHARS_MAX: Final = 8_000
LIST_LINES_MAX: Final = 400
ENTRY_CHARS_MAX: Final = 255
GROUP_CHARS_MAX: Final = 200_000  # of a group page's text; members named after them do not count
_MEMBER_CHARS_MAX: Final = 75

Kind = Literal["everybody", "registered", "name"]
Groups = Mapping[str, Collection[str]]  # name of a group page as lists have it -> the folded names of its members


@dataclass(frozen=True, slots=True)
class Entry:
    kind: Kind
    name: str  # as typed; "" unless it is a name
    folded: str
    negated: bool
    line: int  # from 1

    @property
    def text(self) -> str:
        who = {"everybody": "*", "registered": "+", "name": self.name}[self.kind]
        return f"!{who}" if self.negated else who


@dataclass(frozen=True, slots=True)
class AccessList:
    text: str
    entries: tuple[Entry, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names in it, of users or of groups."""
        return tuple(entry.name for entry in self.entries if entry.kind == "name")


@dataclass(frozen=True, slots=True)
class Verdict:
    allowed: bool
    entry: Entry | None  # the entry that decided; None: no entry applies to the visitor


class BadList(ValueError):
    """The list cannot be stored; ``str()`` is a sentence for its author."""

    def __init__(self, line: int | None, problem: str) -> None:
        super().__init__(problem if line is None else _("Line {line}: {problem}", line=line, problem=problem))
        self.line = line


@lru_cache(maxsize=4_096)
def read_list(text: str) -> AccessList:
    """Read ``text`` line by line; O(its length)."""
    return AccessList(text, tuple(_entries(text)))


def _entries(text: str) -> Iterator[Entry]:
    for number, line in enumerate(text.split("\n"), 1):
        bare = line.strip()
        who = bare.removeprefix("!")
        if who and not who.startswith("#"):
            kind: Kind = "everybody" if who[0] == "*" else "registered" if who[0] == "+" else "name"
            name = who if kind == "name" else ""
            yield Entry(kind, name, folded(name), bare.startswith("!"), number)


def checked(text: str) -> str:
    """Check a list and return it as it is stored, without blanks at the ends of lines.  Raises BadList."""
    lines = [line.strip() for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    kept = "\n".join(lines)
    if len(kept) > LIST_CHARS_MAX:
        size, most = figure(len(kept)), figure(LIST_CHARS_MAX)
        raise BadList(None, _("The list is {size} characters long and {most} are the most.", size=size, most=most))
    if len(lines) > LIST_LINES_MAX:
        said = N_("The list has {lines} lines and {most} are the most: make a group page.")
        raise BadList(None, _(said, lines=figure(len(lines)), most=LIST_LINES_MAX))
    for number, line in enumerate(lines, 1):
        problem = _problem(line)
        if problem:
            raise BadList(number, problem)
    return kept


def _problem(line: str) -> str:
    who = line.removeprefix("!")
    if line and not who:
        return _("behind “!” stands nobody. Write “!*”, “!+” or “!Name”.")
    if who.startswith("#") or not who:
        return ""
    if who[0] in "*+" and len(who) > 1:
        return _(
            "behind “{sign}” stands “{rest}”, which would not count. Write each entry on a line of its own.",
            sign=who[0],
            rest=who[1:][:40],
        )
    if who.startswith("!"):
        return _("“!” may stand once before an entry.")
    if len(who) > ENTRY_CHARS_MAX:
        return _("a name of {size} characters; {most} are the most.", size=len(who), most=ENTRY_CHARS_MAX)
    if any(ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0 or 0xD800 <= ord(char) < 0xE000 for char in who):
        return _("it has a control character in it.")
    if "," in who or ";" in who:
        return _("one name a line: a comma or semicolon does not separate names.")
    return ""


def verdict(access: AccessList, name: str | None, groups: Groups) -> Verdict:
    """Decide for a visitor by a list; ``name`` is None if he is not registered.

    ``groups`` must have the groups that the list names.
    """
    who = None if name is None else folded(name)
    for entry in access.entries:
        if entry.kind == "everybody":
            return Verdict(not entry.negated, entry)
        if entry.kind == "registered":
            return Verdict((who is not None) != entry.negated, entry)
        if who is not None and (entry.folded == who or who in groups.get(entry.name, ())):
            return Verdict(not entry.negated, entry)
    return Verdict(False, None)


def lets_all_in(access: AccessList) -> bool:
    """Return whether the list admits everybody, signed in or not."""
    return bool(access.entries) and access.entries[0].kind == "everybody" and not access.entries[0].negated


def members_of(body: str) -> frozenset[str]:
    """Return the folded names of the members in the text of a group page."""
    parts = body[:GROUP_CHARS_MAX].split("+")
    return frozenset(folded(part) for part in parts[1:-1] if _is_member(part))


def _is_member(part: str) -> bool:
    return 0 < len(part) <= _MEMBER_CHARS_MAX and part == part.strip() and "\n" not in part
