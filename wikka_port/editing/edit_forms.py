"""Edit forms: the drafts that a request may see, the drafts that an opened editor offers, and forms of a section.

A browser without an account is recognised by a cookie with a random value, which it gets with its first draft.
The cookie outlives the browser's window and a sign-in, so a draft from before a sign-in is found after it.

The form of a section has the section's text, the id of its heading and the number of its revision.  The text is put
into that revision's text; the result is an ordinary edit of the whole page, merged with later changes.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from werkzeug.wrappers import Request, Response

from wikka_port import cookies
from wikka_port.drafts import FormDraft
from wikka_port.editing.kept_drafts import DRAFTS_S, ID_BYTES, KeptDraft, Other, owner_of_account, owner_of_browser
from wikka_port.markup.sections import Section, section_of, spliced, taken, unified
from wikka_port.page_rows import is_revision, page_as_of
from wikka_port.pages import Page
from wikka_port.rendering import kept_document
from wikka_port.security import is_visitor, new_visitor
from wikka_port.site import Site

_NONE: Final = ""


def owners_of(site: Site, request: Request) -> list[str]:
    """Return the owners whose drafts the request may see: the account, if signed in, then the browser, if known."""
    cookie = cookies.cookie(request, cookies.DRAFTS)
    return [
        *([owner_of_account(site.visitor.name)] if site.visitor.name else []),
        *([owner_of_browser(cookie)] if is_visitor(cookie) else []),
    ]


def owner_to_keep(site: Site, request: Request) -> tuple[str, str]:
    """Return the owner of a draft that is kept now, and the new value of the browser's cookie ("" if unchanged)."""
    if site.visitor.name:
        return owner_of_account(site.visitor.name), _NONE
    cookie = cookies.cookie(request, cookies.DRAFTS)
    value = cookie if is_visitor(cookie) else new_visitor()
    return owner_of_browser(value), value


def remember(request: Request, response: Response, value: str) -> None:
    """Set the browser's cookie for as long as its drafts are stored."""
    if value:
        cookies.set_cookie(response, request, cookies.DRAFTS, value, max_age_s=DRAFTS_S)


@dataclass(frozen=True, slots=True)
class Opened:
    draft: FormDraft
    resumed: KeptDraft | None  # the stored draft that ``draft`` was made of, if any
    offered: tuple[KeptDraft, ...]  # the visitor's other drafts, the newest first
    others: tuple[Other, ...]
    is_outdated: bool  # whether the page was changed after the draft had begun

    @property
    def values(self) -> Mapping[str, Any]:
        return {"resumed": self.resumed, "offered": self.offered, "others": self.others, "behind": self.is_outdated}


NOTHING: Mapping[str, Any] = {"resumed": None, "offered": (), "others": (), "behind": False}


def opened(site: Site, request: Request, name: str, page: Page | None, draft: FormDraft) -> Opened:
    """Open ``draft``, or the stored draft that ``?draft=`` names.  Raises NotAllowed, StoreUnavailable."""
    drafts, owners = site.wiki.drafts(name), owners_of(site, request)
    own = [one for one in drafts.own(name, owners) if not _is_saved(one, page)]
    wanted = request.args.get("draft", "")
    resumed = next((one for one in own if one.id == wanted), None)
    others = drafts.others(name, owners, site.accounts.clock_ms())
    return Opened(
        draft=draft if resumed is None else form_of(resumed),
        resumed=resumed,
        offered=tuple(one for one in own if one is not resumed),
        others=tuple(others),
        is_outdated=resumed is not None and not _is_from(resumed, page),
    )


def form_of(kept: KeptDraft) -> FormDraft:
    return FormDraft(
        kept.text or "",
        kept.note,
        base=kept.base,
        base_token=kept.base_token,
        section=kept.section,
        id=kept.id,
        markup=kept.markup,
        language=kept.language,
    )


def with_id(draft: FormDraft) -> FormDraft:
    """Return the form with an id, under which it keeps drafts."""
    return draft if draft.id else replace(draft, id=secrets.token_hex(ID_BYTES))


def _is_from(kept: KeptDraft, page: Page | None) -> bool:
    return is_revision(page, kept.base, kept.base_token) if page else kept.base == 0


def _is_saved(kept: KeptDraft, page: Page | None) -> bool:
    """Return whether the page has the draft's text already; the draft then was kept after its save."""
    return page is not None and not kept.section and kept.text == page.body


def of_section(site: Site, page: Page, draft: FormDraft, place: str) -> FormDraft:
    """Return the form of the section ``place``, or ``draft`` if the page has no such section (any more)."""
    section = _section(site, page, place)
    if section is None:
        return draft
    return replace(draft, body=taken(unified(page.body), section), section=place)


def whole(site: Site, name: str, draft: FormDraft, page: Page | None) -> FormDraft | None:
    """Return the draft of a section as one of the whole page, or None if its revision's text is not available any more.

    Raises NotAllowed, StoreUnavailable.
    """
    if not draft.section:
        return draft
    if page is None or not draft.base:
        return None
    old: Page | None = page
    if not is_revision(page, draft.base, draft.base_token):
        found = site.wiki.revision(name, draft.base, draft.base_token)
        old = None if found is None else page_as_of(page, found)
    if old is None:
        return None
    section = _section(site, old, draft.section)
    if section is None:
        return None
    return replace(draft, body=spliced(unified(old.body), section, draft.body), section="")


def _section(site: Site, page: Page, place: str) -> Section | None:
    return section_of(kept_document(site, page).headings, unified(page.body), place)
