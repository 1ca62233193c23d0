"""(pure) The content of a form of a page's rights: read, checked, and compared with its author's present rights.

Knows nothing of HTTP and of the store.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from wikka_port.rights.acl import BadList, checked
from wikka_port.rights.judging import Guarded, may
from wikka_port.rights.rules import LISTED, NO_OWNERS, PageRights, Privilege
from wikka_port.texts import N_, _
from wikka_port.visitors import Visitor

OWNER_CHARS_MAX: Final = 75
_CONTROLS: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_LOSSES: Final[Mapping[Privilege, str]] = {
    Privilege.READ: N_("read this page"),
    Privilege.WRITE: N_("edit it"),
    Privilege.CHANGE_RIGHTS: N_("change its rights"),
}


@dataclass(frozen=True, slots=True)
class Proposal:
    owner: str
    texts: Mapping[Privilege, str]  # of all privileges, as typed
    own: frozenset[Privilege]  # the page shall have a list of its own for these
    revision: str  # of the rights that the form was made from
    tried_as: str = ""  # a user's name; "": a visitor who is not signed in
    was_tried: str = ""  # the user whose rights the form shows already
    confirmed: frozenset[Privilege] = frozenset()  # losses that the author has confirmed
    edited: frozenset[Privilege] = frozenset()  # privileges whose text differs from the one that the form showed

    @property
    def lists(self) -> dict[Privilege, str]:
        """The lists of the page, checked.  Raises BadList."""
        return {privilege: checked(self.texts[privilege]) for privilege in LISTED if privilege in self.own}

    @property
    def ignored(self) -> frozenset[Privilege]:
        """The privileges whose typed list would not count, since the page shall have no own list for them."""
        return self.edited - self.own

    def onto(self, revision: bytes) -> Proposal:
        """Return the proposal as a change of the rights of that revision."""
        return replace(self, revision=revision.decode(errors="replace"))

    def with_typed_lists(self) -> Proposal:
        """Return the proposal in which all typed lists count."""
        return replace(self, own=self.own | self.edited)


def proposal_of(form: Mapping[str, str], current: Mapping[Privilege, str]) -> Proposal:
    """Read the form that a browser sent.

    The form also has the text that it showed of each list (``shown_...``); without this field it showed the ``current``
    text.  A list whose field is missing was not typed.
    """
    shown = {privilege: _lines(form.get(f"shown_{privilege}", current[privilege])) for privilege in LISTED}
    texts = {privilege: _lines(form.get(privilege, shown[privilege])) for privilege in LISTED}
    return Proposal(
        owner=_line(form.get("owner", "")),
        texts=texts,
        own=frozenset(privilege for privilege in LISTED if form.get(f"own_{privilege}")),
        revision=form.get("revision", ""),
        tried_as=_line(form.get("as", "")),
        was_tried=_line(form.get("was_tried", "")),
        confirmed=_confirmed(form.get("confirm", "").split()),
        edited=frozenset(privilege for privilege in LISTED if texts[privilege].strip() != shown[privilege].strip()),
    )


def _confirmed(words: list[str]) -> frozenset[Privilege]:
    """Return the confirmed losses; the value ``1``, of older forms that did not name losses, means all."""
    return frozenset(privilege for privilege in _LOSSES if privilege in words or words == ["1"])


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def proposal_from(rights: PageRights, shown: Mapping[Privilege, str]) -> Proposal:
    """Return the form as it is first shown; ``shown`` has the lists that count now."""
    texts = {privilege: rights.lists.get(privilege, shown[privilege]) for privilege in LISTED}
    owner = "" if rights.owner in NO_OWNERS else rights.owner
    return Proposal(owner, texts, frozenset(rights.lists), rights.revision.decode(errors="replace"))


def complaints(proposal: Proposal) -> dict[Privilege, str]:
    """Return by privilege why a list cannot be stored as it is."""
    found: dict[Privilege, str] = {}
    for privilege in LISTED:
        if privilege in proposal.own:
            try:
                checked(proposal.texts[privilege])
            except BadList as bad:
                found[privilege] = str(bad)
    return found


def losses(visitor: Visitor, page: Guarded, proposal: Proposal) -> dict[Privilege, str]:
    """Return in words the rights that ``visitor`` has now and would lose; the proposal's lists must be correct."""
    after = replace(page, rights=PageRights(proposal.owner, proposal.lists, page.rights.revision))
    return {
        privilege: _(words)
        for privilege, words in _LOSSES.items()
        if may(visitor, page, privilege) and not may(visitor, after, privilege)
    }


def _line(text: str) -> str:
    return " ".join(_CONTROLS.sub(" ", text).split())[: 2 * OWNER_CHARS_MAX]
