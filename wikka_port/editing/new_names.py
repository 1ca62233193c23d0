"""Names at which no page may begin, or come by a rename: readers would take it for another page."""

from __future__ import annotations

from typing import Final

from wikka_port.confusable_names import Confusable, find_confusable, similar_names
from wikka_port.site import Site
from wikka_port.texts import N_, _

GROUP: Final = N_(
    "No new page can have this name: lists of rights mean a group by it, and its text would say who is in it. "
    "An administrator can make the page."
)


def refusal(site: Site, name: str, *, leaving: str = "") -> str:
    """Return a sentence for who wants the name; "": nothing is against it.

    ``leaving`` is the name that the page has now.  The sentence says nothing of a page that the visitor may not read.
    """
    if site.wiki.would_be_group(name):
        return _(GROUP)
    like = find_confusable(name)
    others = [one for one in similar_names(name) if one != leaving] if like is None else []
    found = sorted(site.wiki.existing(others)) if others else []
    if like is None and found:
        shown = [other for other in found if other in site.wiki.readable(found)]
        if not shown:
            return _("No new page can have this name: it looks like the name of another page.")
        like = Confusable(shown[0], _("that is another page"))
    return "" if like is None else f"{_('No new page can have this name.')} {like}"
