"""Names of pages for what is being typed, as JSON: ``[{"name": ..., "path": ...}]``; with ``headings=1`` headings too.

The entry of a heading has a "page", and its path leads to the section.  The editor completes names alone.
"""

from __future__ import annotations

import json
from typing import Final
from urllib.parse import quote

from werkzeug.wrappers import Request, Response

from wikka_port.site import Site
from wikka_port.urls import page_url

MAX_SUGGESTIONS: Final = 8
HEADINGS: Final = 3  # of these; names stand before them


def handle(site: Site, request: Request, name: str) -> Response:
    """``?q=what was typed&headings=1``."""
    typed = request.args.get("q", "")
    headings = site.wiki.suggested_headings(typed, most=HEADINGS) if request.args.get("headings") == "1" else []
    names = site.wiki.suggested(typed, most=MAX_SUGGESTIONS - len(headings))
    shown = [{"name": one, "path": page_url(one)} for one in names]
    for page, text, place in headings:
        shown.append({"name": text, "path": f"{page_url(page)}#{quote(place)}", "page": page})
    response = Response(json.dumps(shown), mimetype="application/json")
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Robots-Tag"] = "noindex"
    return response
