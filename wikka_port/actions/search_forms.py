"""Forms in pages: ``{{searchform}}``, ``{{textsearch}}`` and their kin find pages, ``{{newpage}}`` begins one.

``{{textsearchexpanded}}`` shows what it finds in the page itself, with passages: of ``?phrase=`` of the page's
address, or of its own ``phrase``.
"""

from __future__ import annotations

from wikka_port.actions.call import ActionCall
from wikka_port.search.query import QUERY_CHARS, parse
from wikka_port.urls import page_path, site_path


def search(call: ActionCall) -> str:
    return _form(call, call.arguments.get("phrase", "")[:300])


def expanded(call: ActionCall) -> str:
    if call.query_parameters is None:
        return search(call)
    given = call.query_parameters.get("phrase", "") or call.arguments.get("phrase", "")
    phrase = " ".join(given.split())[: QUERY_CHARS + 1]
    form = _form(call, phrase[:QUERY_CHARS], here=page_path(call.outermost_page))
    if not phrase:
        return form
    wiki = call.site.wiki
    query = parse(phrase, wiki.languages())
    found = wiki.search(query, pages=call.site.rough_page_count.get())
    more = found.has_more or found.count > len(found.hits)
    onward = site_path("search", q=phrase[:QUERY_CHARS], page=2) if more else ""
    return form + call.site.fragment("found.html", query=query, found=found, page=1, onward=onward)


def newpage(call: ActionCall) -> str:
    """``template``: the page that the new one begins with."""
    return call.site.fragment("newpage.html", begins_with=call.arguments.get("template", "").strip()[:300])


def _form(call: ActionCall, phrase: str, here: str = "") -> str:
    """``here``: the page that answers; "": the wiki's own search."""
    return call.site.fragment("searchform.html", phrase=phrase, here=here)
