"""All pages in alphabetical order: ``?letter=K`` those that begin so, ``?start=Name`` from there on.

The letters above are those that names begin with, of whatever alphabet.
"""

from __future__ import annotations

from werkzeug.wrappers import Request, Response

from wikka_port.groupings import by_letter
from wikka_port.schema import folded
from wikka_port.site import Site
from wikka_port.urls import site_path


def handle(site: Site, request: Request, name: str) -> Response:
    start = request.args.get("start", "")
    prefix = request.args.get("letter", "")
    size = site.config.list_rows
    names = site.wiki.names(start=start, prefix=prefix, limit=size + 1)
    onward = site_path("pageindex", letter=prefix, start=names[size]) if len(names) > size else ""
    return site.html(
        "pageindex.html",
        letters=by_letter(names[:size]),
        alphabet=[(initial, initial.upper()) for initial in site.initials.get()],
        letter=folded(prefix),
        onward=onward,
    )
