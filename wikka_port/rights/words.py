"""Access lists in plain words (pure): who may, who may not, and which lines do not do what they seem to.

Knows nothing of the store: what a name stands for is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from wikka_port.rights.acl import AccessList, Entry
from wikka_port.rights.rules import NO_OWNERS, PUBLIC, Privilege

TITLES: Final[Mapping[Privilege, str]] = {
    Privilege.READ: "Read the page",
    Privilege.WRITE: "Edit the page",
    Privilege.COMMENT_READ: "Read its comments",
    Privilege.COMMENT_POST: "Post comments",
}


@dataclass(frozen=True, slots=True)
class Named:
    """The meaning of a name in a list."""

    kind: Literal["user", "group", "nobody"]
    members: int = 0  # of a group; 0: they are not to be counted
    joined_by: str = ""  # who may edit the group page and so become a member: "everybody", "whoever is signed in", ""


@dataclass(frozen=True, slots=True)
class Words:
    lines: tuple[str, ...]  # who may, in the order in which it is decided
    warnings: tuple[str, ...]


def in_words(access: AccessList, named: Callable[[str], Named]) -> Words:
    """``named`` is asked once for each different name."""
    lines: list[str] = []
    warnings: list[str] = []
    seen: dict[str, int] = {}
    for entry in access.entries:
        if entry.kind != "name":
            lines.append(_of_all(entry, bool(lines)))
            warnings += _behind(access, entry)
            return Words(tuple(lines), tuple(warnings))
        if entry.folded in seen:
            warnings.append(
                f"Line {entry.line} does not count: line {seen[entry.folded]} has decided about {entry.name}."
            )
            continue
        seen[entry.folded] = entry.line
        found = named(entry.name)
        lines.append(_of_name(entry, found))
        warnings += _doubts(entry, found)
    lines.append("Nobody else may." if lines else "Nobody may.")
    return Words(tuple(lines), tuple(warnings))


def who_always(owner: str) -> str:
    owned = owner not in NO_OWNERS and owner != PUBLIC
    return f"{owner}, who owns the page, and administrators always may." if owned else "Administrators always may."


def _of_all(entry: Entry, others: bool) -> str:
    if entry.kind == "everybody":
        who = "Nobody" if entry.negated else "Everybody"
        return f"{who} else may." if others else f"{who} may."
    signed = "who is not signed in" if entry.negated else "who is signed in"
    return f"Everybody else {signed} may; nobody besides." if others else f"Everybody {signed} may; nobody besides."


def _of_name(entry: Entry, found: Named) -> str:
    verb = "may not" if entry.negated else "may"
    if found.kind == "group":
        members = "its one member" if found.members == 1 else f"its {found.members} members"
        counted = f" ({members})" if found.members else ""
        return f"The group {entry.name}{counted} {verb}."
    return f"{entry.name} {verb}."


def _doubts(entry: Entry, found: Named) -> Iterator[str]:
    if found.kind == "nobody":
        yield f"Line {entry.line}: there is no user “{entry.name}”, and no page of this name that lists members."
    elif found.kind == "group" and found.joined_by:
        yield (
            f"Line {entry.line}: {found.joined_by} may edit the page {entry.name}, "
            "and so make anybody a member of the group."
        )


def _behind(access: AccessList, last: Entry) -> Iterator[str]:
    idle = [entry.line for entry in access.entries if entry.line > last.line]
    if idle:
        yield f"Line {idle[0]} and what is behind it do not count: line {last.line} speaks of everybody."
