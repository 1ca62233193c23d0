"""Pages that are linked to and do not exist yet, the most wanted first: ``?from=200`` from the 201st on."""

from __future__ import annotations

from werkzeug.wrappers import Request, Response

from wikka_port.site import Site, number
from wikka_port.urls import site_path


def handle(site: Site, request: Request, name: str) -> Response:
    size = site.config.list_rows
    first = number(request, "from") or 0
    wanted = site.most_wanted.get()[first:]
    onward = site_path("wantedpages", **{"from": first + size}) if len(wanted) > size else ""
    return site.html("wantedpages.html", wanted=wanted[:size], onward=onward)
