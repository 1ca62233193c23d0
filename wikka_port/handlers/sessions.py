"""A person's sessions: where they are signed in, each to be ended by itself, or all but this one."""

from __future__ import annotations

from werkzeug.wrappers import Request, Response

from wikka_port.accounts.tables import SESSION, user_row
from wikka_port.forms import STALE_FORM, form_page, is_genuine
from wikka_port.site import Site, redirect
from wikka_port.texts import _
from wikka_port.urls import site_path

HASH_CHARS = 64


def handle(site: Site, request: Request, name: str) -> Response:
    if site.visitor.name is None:
        return redirect(site_path("login", next=site_path("sessions")))
    row, problem = user_row(site.visitor.name), ""
    if request.method == "POST":
        if is_genuine(site, request):
            _end(site, row, request.form.get("end", ""))
            return redirect(site_path("sessions"))
        problem = _(STALE_FORM)
    found = site.accounts.sessions.of(row)
    return form_page(
        site,
        request,
        "sessions.html",
        status=403 if problem else 200,
        sessions=[(one.column.decode()[len(SESSION) :], one.session) for one in found],
        here=site.visitor.session[len(SESSION) :],
        problem=problem,
    )


def _end(site: Site, row: bytes, which: str) -> None:
    """``which``: the hash of a session, or "others"."""
    if which == "others":
        for one in site.accounts.sessions.of(row):
            if one.column.decode() != site.visitor.session:
                site.accounts.sessions.end(row, one.column)
    elif which.isascii() and which.isalnum() and len(which) <= HASH_CHARS:
        site.accounts.sessions.end(row, SESSION + which.encode())
    site.accounts.audit.note("sessions ended", user=site.visitor.name or "", note=which[:8])
