"""Signing out: requested by a link, done by a button, so that no picture or link of another site does it."""

from __future__ import annotations

from werkzeug.wrappers import Request, Response

from wikka_port.accounts.entering import client_of, leave
from wikka_port.forms import form_page, is_genuine
from wikka_port.site import Site, redirect


def handle(site: Site, request: Request, name: str) -> Response:
    if request.method == "POST" and is_genuine(site, request):
        if site.visitor.name:
            site.accounts.audit.note("sign-out", user=site.visitor.name, network=client_of(request).network)
        return leave(site, request, redirect("/"))
    return form_page(site, request, "logout.html", status=403 if request.method == "POST" else 200)
