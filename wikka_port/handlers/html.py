"""A page without the frame of the wiki: ``html`` its body alone, ``print`` a whole document for paper."""

from __future__ import annotations

from typing import Any

from werkzeug.wrappers import Request, Response

from wikka_port.handlers.show import missing
from wikka_port.rendering import page_document, page_html
from wikka_port.site import Site, conditional


def handle(site: Site, request: Request, name: str) -> Response:
    found = _rendered(site, request, name, contents=True)
    if found is None:
        return missing(site, name)
    response = Response(found["content"], mimetype="text/html")
    response.headers["X-Robots-Tag"] = "noindex"
    response.headers["Cache-Control"] = "no-cache"
    return conditional(request, response)


def handle_print(site: Site, request: Request, name: str) -> Response:
    found = _rendered(site, request, name, contents=False)  # it cannot be unfolded on paper
    return missing(site, name) if found is None else conditional(request, site.html("print.html", **found))


def _rendered(site: Site, request: Request, name: str, *, contents: bool) -> dict[str, Any] | None:
    page = site.wiki.page(name)
    if page is None:
        return None
    document = page_document(site, request, page)
    heading = document.headings[0] if document.headings else None
    return {
        "page": page,
        "title": document.title or page.name,
        "has_heading": heading is not None and heading.level == 1,
        "content": page_html(site, page.name, document, contents=contents),
    }
