"""The difference of two revisions: ``?a=1&b=2``, side by side or with ``&style=inline`` in one column.

Without ``b`` the newest revision is meant, without ``a`` the last one before ``b`` that is shown.  Numbers have gaps:
of hidden revisions, and before a page that began where another one was.  Lists therefore name ``b`` alone.
"""

from __future__ import annotations

from werkzeug.wrappers import Request, Response

from wikka_port.diffs import rows
from wikka_port.handlers.show import missing, no_revision
from wikka_port.pages import Page
from wikka_port.site import Site, number


def handle(site: Site, request: Request, name: str) -> Response:
    page = site.wiki.page(name)
    if page is None:
        return missing(site, name)
    b = number(request, "b")
    b = page.number if b is None else b
    a = number(request, "a")
    found = site.wiki.revisions(name, below=b + 1, limit=2, bodies=True)
    if a is None:
        old = found[1] if len(found) > 1 else None  # None: the page began with ``b``
    else:
        old = site.wiki.revision(name, a)
    if not found or found[0].number != b or (a is not None and old is None):
        return no_revision(site, name)
    new = found[0]
    style = "inline" if request.args.get("style") == "inline" else "side"
    return site.html(
        "diff.html",
        page_name=name,
        later=_later(page, b),
        old=old,
        new=new,
        style=style,
        rows=rows(old.body or "" if old else "", new.body or ""),
    )


def _later(page: Page, shown: int) -> int:
    """Return the number of the next revision that is shown; 0: there is none."""
    return next((one for one in range(shown + 1, page.number + 1) if one not in page.hidden), 0)
