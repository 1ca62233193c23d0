"""``{{checklinks page="Other"}}``: links of this page, or of the page named, that lead to no page."""

from __future__ import annotations

from wikka_port.actions.call import ActionCall
from wikka_port.markup.links import links
from wikka_port.names import normalise
from wikka_port.texts import _


def run(call: ActionCall) -> str:
    page = call.site.wiki.page(normalise(call.arguments.get("page", "") or call.page))
    names = links(page.body, autolink=page.autolink, markup=page.markup) if page is not None else []
    there = call.site.wiki.existing(names) if names else frozenset()
    missing = [(name, 1) for name in names if name not in there]
    if not missing:
        return f'<p class="empty-title">{_("Every link of this page leads somewhere.")}</p>'
    return call.site.fragment("wanted.html", wanted=missing, onward="")
