"""A new page that begins with the text of another: ``?name=New page`` leads to its editor; without it, a form asks."""

from __future__ import annotations

from werkzeug.wrappers import Request, Response

from wikka_port.handlers.show import missing
from wikka_port.names import normalise
from wikka_port.site import Site, redirect
from wikka_port.urls import page_path, page_url


def handle(site: Site, request: Request, name: str) -> Response:
    """Nothing is written before the editor of the new page saves."""
    wanted = request.args.get("name", "").strip()
    if not wanted:
        page = site.wiki.page(name)
        return missing(site, name) if page is None else site.html("clone.html", page_name=name, page=page)
    return redirect(page_path(normalise(wanted), "edit", like=name), status=302)


def handle_new(site: Site, request: Request, name: str) -> Response:
    """``?name=``: the page if there is one, else the editor of a new one, with the text of the page ``?template=``."""
    new = normalise(request.args.get("name", ""))
    template = request.args.get("template", "").strip()
    like = normalise(template) if template else ""
    path = page_url(new) if site.wiki.existing([new]) else page_path(new, "edit", like=like)
    return redirect(path, status=302)
