"""The text of a page as it was typed, to be read, with its code blocks to be fetched one by one."""

from __future__ import annotations

from werkzeug.wrappers import Request, Response

from wikka_port.handlers.grabcode import code_blocks
from wikka_port.handlers.show import missing
from wikka_port.site import Site


def handle(site: Site, request: Request, name: str) -> Response:
    page = site.wiki.page(name)
    if page is None:
        return missing(site, name)
    return site.html("showcode.html", page_name=name, page=page, blocks=code_blocks(request, page))
