"""The conflict page: it shows both edits of each place, and the visitor takes one side or both.

Like an edit form, the page's form has the typed text (``body``) and the revision that the edit began from (``base``);
beside these it has the revision with which the edit conflicts (``now``).  The places are computed again from the three
texts, so a choice always applies to the place that was shown.  If the text of ``base`` is not available (a different
page has the name by now), the form has the field ``whole``, and both texts are one place.  Even a forged or damaged
form is still an edit from ``base``, which cannot overwrite another edit unseen.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

from werkzeug.wrappers import Request, Response

from wikka_port.diffs import Row, rows
from wikka_port.drafts import FormDraft, draft_of, number_in, token_in
from wikka_port.handlers.editor_page import edit_form, refused_edit
from wikka_port.handlers.saving import Unmerged, alike, began_from
from wikka_port.markup.sections import unified
from wikka_port.merges import SIDES, Agreed, Choice, Piece, Side, pieces, resolved
from wikka_port.page_rows import is_revision, page_as_of
from wikka_port.pages import Page, StoreUnavailable
from wikka_port.rights.judging import NotAllowed
from wikka_port.site import Site
from wikka_port.texts import N_, _

CONFLICT: Final = N_("Somebody else saved this page while you were writing. Nothing is lost: both texts are below.")
TO_CHOOSE: Final = N_("Nothing is saved yet: please choose for each place.")
CHOSEN: Final = N_("Nothing is saved yet: this is the text with what you chose. Look it over, then save.")
_PLACE: Final = re.compile("[0-9]{1,4}")
_CONTEXT: Final = 2  # lines shown before and after a place


@dataclass(frozen=True, slots=True)
class Place:
    number: int  # from 0
    rows: list[Row]  # theirs and mine side by side, with the lines around
    is_gone: dict[Side, bool]  # whether the side deleted the lines
    side: str  # the side chosen so far; "": none


def conflict_page(
    site: Site, request: Request, name: str, unmerged: Unmerged, *, sides: dict[int, Side] | None = None
) -> Response:
    """Return a page with the places to choose at, and below them the typed text, to be merged by hand."""
    draft, current = unmerged.draft, unmerged.current
    theirs = unified(current.body) if current else ""
    began = _began(site, name, draft)
    found = _pieces_from(began, draft.body, theirs) if current is None or alike(draft, current) else []
    offered = replace(draft, base=current.number if current else 0, base_token=current.token if current else "")
    values = {
        "conflict": True,
        "other_format": current is not None and not alike(draft, current),
        "current": current,
        "began": draft,
        "whole": began is None,
        "theirs": theirs,
        "places": _places(found, sides or {}),
        "has_agreed": any(isinstance(piece, Agreed) and piece.changed for piece in found),
    }
    problem = _(CONFLICT if sides is None else TO_CHOOSE)
    return edit_form(site, request, name, offered, status=409, problem=problem, **values)


def choose(site: Site, request: Request, name: str) -> FormDraft | Response:
    """Return the edit with the chosen sides, to be saved, or a page if it cannot be saved yet."""
    draft = draft_of(request.form)
    try:
        met = _met(site, name, number_in(request.form, "now"), token_in(request.form, "now_token"))
        began = began_from(site, name, draft)
    except (NotAllowed, StoreUnavailable) as problem:
        return refused_edit(site, request, name, draft, problem)
    if met is None or not alike(draft, met) or (began is None) != ("whole" in request.form):
        return draft  # the shown places cannot be computed again
    found = _pieces_from(began, draft.body, unified(met.body))
    chosen = _chosen(request)
    try:
        text = resolved(found, chosen)
    except KeyError:
        return conflict_page(site, request, name, Unmerged(draft, met), sides=chosen)
    both = replace(draft, body=text, base=met.number, base_token=met.token, written=draft.markup)
    if request.form["choose"] == "edit":
        return edit_form(site, request, name, both, problem=_(CHOSEN))
    return both


def _met(site: Site, name: str, number: int, token: str) -> Page | None:
    """Return the page as it was when the places were shown, or None if that text is not available any more."""
    page = site.wiki.page(name)
    if page is None or is_revision(page, number, token):
        return page
    old = site.wiki.revision(name, number, token)
    return None if old is None else page_as_of(page, old)


def _chosen(request: Request) -> dict[int, Side]:
    fields = [(key[len("place-") :], value) for key, value in request.form.items() if key.startswith("place-")]
    given = {number: side for number, value in fields for side in SIDES if side == value}
    return {int(number): side for number, side in given.items() if _PLACE.fullmatch(number)}


def _began(site: Site, name: str, draft: FormDraft) -> str | None:
    try:
        return began_from(site, name, draft)
    except (NotAllowed, StoreUnavailable):
        return None  # the conflict page must be shown even without this text


def _pieces_from(began: str | None, mine: str, theirs: str) -> list[Piece]:
    """Return the pieces of the merge; a single Choice if the text that the edit began from is not available."""
    if began is None:
        return [Choice((), tuple(mine.split("\n")), tuple(theirs.split("\n")))]
    return pieces(began, mine, theirs)


def _places(found: list[Piece], sides: dict[int, Side]) -> list[Place]:
    places = [index for index, piece in enumerate(found) if isinstance(piece, Choice)]
    return [_place(found, index, number, sides, 1 / len(places)) for number, index in enumerate(places)]


def _place(found: list[Piece], index: int, number: int, sides: dict[int, Side], share: float) -> Place:
    piece = found[index]
    assert isinstance(piece, Choice), "the index is of one"
    before, after = found[index - 1] if index else None, found[index + 1] if index + 1 < len(found) else None
    head = list(before.lines[-_CONTEXT:]) if isinstance(before, Agreed) else []
    tail = list(after.lines[:_CONTEXT]) if isinstance(after, Agreed) else []
    theirs, mine = ("\n".join([*head, *lines, *tail]) for lines in (piece.theirs, piece.mine))
    return Place(
        number=number,
        rows=[replace(row, old_number=0, new_number=0) for row in rows(theirs, mine, share=share)],
        is_gone={"mine": not piece.mine, "theirs": not piece.theirs, "both": False},
        side=sides.get(number, ""),
    )
