"""A section's edit and the whole page: taken out for the form, put back before the save.

The form of a section has the section's text, the id of its heading and the number of the revision that it is from.
Put into the text of that revision, it is an edit of the whole page like another: whatever changed since is merged.
"""

from __future__ import annotations

from dataclasses import replace

from wikka_port.drafts import FormDraft
from wikka_port.markup.sections import Section, section_of, spliced, taken, unified
from wikka_port.page_rows import is_revision, page_as_of
from wikka_port.pages import Page
from wikka_port.rendering import kept_document
from wikka_port.site import Site


def of_section(site: Site, page: Page, draft: FormDraft, place: str) -> FormDraft:
    """Return the form of that section; ``draft`` where the page has no such section (any more)."""
    section = _section(site, page, place)
    if section is None:
        return draft
    return replace(draft, body=taken(unified(page.body), section), section=place)


def whole(site: Site, name: str, draft: FormDraft, page: Page | None) -> FormDraft | None:
    """``draft`` as one of the whole page; None if the text that its section is from cannot be had any more.

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
