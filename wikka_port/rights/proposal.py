"""(pure) The content of a form of a page's rights: read, checked, and compared with its author's present rights.

Knows nothing of HTTP and of the store.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from wikka_port.rights.judging import Guarded, may
from wikka_port.rights.rules import LISTED, NO_OWNERS, PageRights, Privilege
from wikka_port.rights.words import TITLES, checked_list, mistakes
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
    stored: Mapping[Privilege, str] = field(default_factory=dict)  # the page's present lists of its own

    @property
    def lists(self) -> dict[Privilege, str]:
        """The lists of the page: those that stay as they are stored, the others checked.  Raises BadList."""
        kept = self.kept
        return {
            one: self.stored[one] if one in kept else checked_list(one, self.texts[one])
            for one in LISTED
            if one in self.own
        }

    @property
    def kept(self) -> frozenset[Privilege]:
        """The privileges whose stored list stays as it is, since the form has its text."""
        there = self.own & self.stored.keys()
        return frozenset(one for one in there if _sent(self.stored[one]) == _sent(self.texts[one]))

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


def proposal_of(form: Mapping[str, str], unchanged: Proposal) -> Proposal:
    """Read the form that a browser sent; ``unchanged`` is the form as it would be shown now.

    The form also has the text that it showed of each list (``shown_...``); without this field it showed the text of
    ``unchanged``.  A list whose field is missing was not typed.
    """
    shown = {privilege: _lines(form.get(f"shown_{privilege}", unchanged.texts[privilege])) for privilege in LISTED}
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
        stored=unchanged.stored,
    )


def _confirmed(words: list[str]) -> frozenset[Privilege]:
    """Return the confirmed losses; the value ``1``, of older forms that did not name losses, means all."""
    return frozenset(privilege for privilege in _LOSSES if privilege in words or words == ["1"])


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _sent(text: str) -> str:
    """Return the text as a browser sends it back if nobody changes it, without blanks around it.

    HTML has no character NUL.
    """
    return _lines(text).replace("\0", "\ufffd").strip()


def proposal_from(rights: PageRights, shown: Mapping[Privilege, str]) -> Proposal:
    """Return the form as it is first shown; ``shown`` has the lists that count now."""
    texts = {privilege: rights.lists.get(privilege, shown[privilege]) for privilege in LISTED}
    owner = "" if rights.owner in NO_OWNERS else rights.owner
    revision = rights.revision.decode(errors="replace")
    return Proposal(owner, texts, frozenset(rights.lists), revision, stored=dict(rights.lists))


def complaints(proposal: Proposal) -> dict[Privilege, str]:
    """Return by privilege why a list cannot be stored as it is typed."""
    return mistakes({one: proposal.texts[one] for one in LISTED if one in proposal.own - proposal.kept})


def kept_mistakes(proposal: Proposal) -> dict[Privilege, str]:
    """Return by privilege the mistake of a stored list that stays as it is."""
    found = mistakes({one: proposal.stored[one] for one in LISTED if one in proposal.kept})
    return {one: _("{mistake} It stays as it is until you change it.", mistake=said) for one, said in found.items()}


def complaint(wrong: Mapping[Privilege, str]) -> str:
    """Return a sentence on the lists that cannot be stored."""
    return _("A list has a mistake: {titles}.", titles=", ".join(_(TITLES[one]) for one in wrong))


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
