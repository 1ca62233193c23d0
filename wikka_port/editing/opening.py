"""The drafts that an opened editor shows: the one that it continues with, those on offer, who else is writing."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from werkzeug.wrappers import Request

from wikka_port.drafts import FormDraft
from wikka_port.editing.keeping import Other
from wikka_port.editing.owners import owners_of
from wikka_port.editing.rows import ID_BYTES, KeptDraft
from wikka_port.page_rows import is_revision
from wikka_port.pages import Page
from wikka_port.site import Site


@dataclass(frozen=True, slots=True)
class Opened:
    draft: FormDraft
    resumed: KeptDraft | None  # the one that ``draft`` is
    offered: tuple[KeptDraft, ...]  # the others, the one kept last first
    others: tuple[Other, ...]
    is_outdated: bool  # the page was changed after the draft had begun

    @property
    def values(self) -> Mapping[str, Any]:
        return {"resumed": self.resumed, "offered": self.offered, "others": self.others, "behind": self.is_outdated}


NOTHING: Mapping[str, Any] = {"resumed": None, "offered": (), "others": (), "behind": False}


def opened(site: Site, request: Request, name: str, page: Page | None, draft: FormDraft) -> Opened:
    """``draft``, or the kept one that ``?draft=`` names.  Raises NotAllowed, StoreUnavailable."""
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
    """Return a form that keeps drafts under an id of its own."""
    return draft if draft.id else replace(draft, id=secrets.token_hex(ID_BYTES))


def _is_from(kept: KeptDraft, page: Page | None) -> bool:
    return is_revision(page, kept.base, kept.base_token) if page else kept.base == 0


def _is_saved(kept: KeptDraft, page: Page | None) -> bool:
    """The page has the text already: the draft came after its save."""
    return page is not None and not kept.section and kept.text == page.body
