"""Names of pages for what is being typed, as JSON: ``[{"name": ..., "path": ...}]``."""

from __future__ import annotations

import json
from typing import Final

from werkzeug.wrappers import Request, Response

from wikka_port.site import Site
from wikka_port.urls import page_url

NAMES: Final = 8


def handle(site: Site, request: Request, name: str) -> Response:
    """``?q=what was typed``."""
    names = site.wiki.suggested(request.args.get("q", ""), most=NAMES)
    response = Response(
        json.dumps([{"name": one, "path": page_url(one)} for one in names]), mimetype="application/json"
    )
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Robots-Tag"] = "noindex"
    return response
