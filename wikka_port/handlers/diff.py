"""The difference of two revisions: ``?a=1&b=2``, side by side or with ``&style=inline`` in one column.

Without ``b`` the newest revision is meant, without ``a`` the one before ``b``.
"""

from __future__ import annotations

from werkzeug.wrappers import Request, Response

from wikka_port.diffs import rows
from wikka_port.handlers.show import missing, no_revision
from wikka_port.site import Site, number


def handle(site: Site, request: Request, name: str) -> Response:
    page = site.wiki.page(name)
    if page is None:
        return missing(site, name)
    b = number(request, "b")
    b = page.number if b is None else b
    a = number(request, "a")
    a = max(b - 1, 1) if a is None else a
    old, new = site.wiki.revision(name, a), site.wiki.revision(name, b)
    if old is None or new is None:
        return no_revision(site, name)
    style = "inline" if request.args.get("style") == "inline" else "side"
    return site.html(
        "diff.html",
        page_name=name,
        newest=page.number,
        old=old,
        new=new,
        style=style,
        rows=rows(old.body or "", new.body or ""),
    )
