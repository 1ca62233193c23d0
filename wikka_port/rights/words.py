"""(pure) Access lists in plain words: the people who may and who may not, and lines with an unexpected effect.

Knows nothing of the store: the caller says what each name stands for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from wikka_port.rights.acl import AccessList, BadList, Entry, checked
from wikka_port.rights.rules import NO_OWNERS, PUBLIC, Privilege
from wikka_port.texts import N_, _, _n

TITLES: Final[Mapping[Privilege, str]] = {
    Privilege.READ: N_("Read the page"),
    Privilege.WRITE: N_("Edit the page"),
    Privilege.COMMENT_READ: N_("Read its comments"),
    Privilege.COMMENT_POST: N_("Post comments"),
}
_OF_ALL: Final[Mapping[tuple[bool, bool, bool], str]] = {  # of everybody?  negated?  after others?
    (True, False, False): N_("Everybody may."),
    (True, False, True): N_("Everybody else may."),
    (True, True, False): N_("Nobody may."),
    (True, True, True): N_("Nobody else may."),
    (False, False, False): N_("Everybody who is signed in may; nobody besides."),
    (False, False, True): N_("Everybody else who is signed in may; nobody besides."),
    (False, True, False): N_("Everybody who is not signed in may; nobody besides."),
    (False, True, True): N_("Everybody else who is not signed in may; nobody besides."),
}
Joiners = Literal["everybody", "registered", ""]
_JOINED_BY: Final[Mapping[Joiners, str]] = {
    "everybody": N_("Line {line}: everybody may edit the page {name}, and so make anybody a member of the group."),
    "registered": N_(
        "Line {line}: everybody who is signed in may edit the page {name}, and so make anybody a member of the group."
    ),
}


@dataclass(frozen=True, slots=True)
class Named:
    """The meaning of a name in a list."""

    kind: Literal["user", "group", "nobody"]
    members: int = 0  # of a group; 0: not to be shown
    joined_by: Joiners = ""  # who may edit the group page and so become a member


@dataclass(frozen=True, slots=True)
class Words:
    lines: tuple[str, ...]  # who may, in the order in which it is decided
    warnings: tuple[str, ...]


def in_words(access: AccessList, named: Callable[[str], Named]) -> Words:
    """Explain a list; ``named`` is called once for each different name."""
    lines: list[str] = []
    warnings: list[str] = []
    seen: dict[str, int] = {}
    for entry in access.entries:
        if entry.kind != "name":
            lines.append(_of_all(entry, bool(lines)))
            warnings += _ignored_lines(access, entry)
            return Words(tuple(lines), tuple(warnings))
        if entry.folded in seen:
            warnings.append(
                _(
                    "Line {line} does not count: line {before} has decided about {name}.",
                    line=entry.line,
                    before=seen[entry.folded],
                    name=entry.name,
                )
            )
            continue
        seen[entry.folded] = entry.line
        found = named(entry.name)
        lines.append(_of_name(entry, found))
        warnings += _doubts(entry, found)
    lines.append(_("Nobody else may.") if lines else _("Nobody may."))
    return Words(tuple(lines), tuple(warnings))


def checked_list(privilege: Privilege, text: str) -> str:
    """Return the list of a privilege as ``acl.checked`` does.  Raises BadList, whose text names the list."""
    try:
        return checked(text)
    except BadList as bad:
        raise BadList(None, f"{_(TITLES[privilege])}: {bad}") from None


def mistakes(lists: Mapping[Privilege, str]) -> dict[Privilege, str]:
    """Return by privilege why a list could not be written now, as that of an import that keeps its mistakes."""
    found: dict[Privilege, str] = {}
    for privilege, text in lists.items():
        try:
            checked(text)
        except BadList as bad:
            found[privilege] = str(bad)
    return found


def who_always(owner: str) -> str:
    owned = owner not in NO_OWNERS and owner != PUBLIC
    if owned:
        return _("{owner}, who owns the page, and administrators always may.", owner=owner)
    return _("Administrators always may.")


def _of_all(entry: Entry, others: bool) -> str:
    return _(_OF_ALL[entry.kind == "everybody", entry.negated, others])


def _of_name(entry: Entry, found: Named) -> str:
    name, negated = entry.name, entry.negated
    if found.kind != "group":
        return _("{name} may not.", name=name) if negated else _("{name} may.", name=name)
    if not found.members:
        return _("The group {name} may not.", name=name) if negated else _("The group {name} may.", name=name)
    if negated:
        return _n(
            "The group {name} (its one member) may not.",
            "The group {name} (its {n} members) may not.",
            found.members,
            name=name,
        )
    return _n(
        "The group {name} (its one member) may.", "The group {name} (its {n} members) may.", found.members, name=name
    )


def _doubts(entry: Entry, found: Named) -> Iterator[str]:
    if found.kind == "nobody":
        yield _(
            "Line {line}: there is no user “{name}”, and no page of this name that lists members.",
            line=entry.line,
            name=entry.name,
        )
    elif found.kind == "group" and found.joined_by:
        yield _(_JOINED_BY[found.joined_by], line=entry.line, name=entry.name)


def _ignored_lines(access: AccessList, last: Entry) -> Iterator[str]:
    idle = [entry.line for entry in access.entries if entry.line > last.line]
    if idle:
        said = N_("Line {line} and what is behind it do not count: line {last} speaks of everybody.")
        yield _(said, line=idle[0], last=last.line)
