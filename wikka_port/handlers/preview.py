"""A text as its page would show it: a fragment for the editor's script (``docs/wiki-editor.md``)."""

from __future__ import annotations

import math

from werkzeug.exceptions import MethodNotAllowed, RequestEntityTooLarge
from werkzeug.wrappers import Request, Response

from wikka_port.drafts import FormDraft, complaint, draft_of
from wikka_port.forms import form_json, is_genuine
from wikka_port.handlers.draft import TOO_LARGE
from wikka_port.handlers.editor_page import STALE, later
from wikka_port.markup.bounds import is_expensive
from wikka_port.names import normalise
from wikka_port.pages import StoreUnavailable
from wikka_port.refusals import sentence
from wikka_port.rendering import preview_html
from wikka_port.rights.judging import NotAllowed
from wikka_port.rights.rules import Privilege
from wikka_port.site import Site
from wikka_port.slow_lane import run_in_slow_lane
from wikka_port.texts import _


def handle(site: Site, request: Request, name: str) -> Response:
    if request.method != "POST":
        raise MethodNotAllowed(["POST"])
    try:
        form = request.form
    except RequestEntityTooLarge:
        return form_json(site, request, {"error": _(TOO_LARGE)}, status=413, fresh=False)
    if not is_genuine(site, request):
        return form_json(site, request, {"error": _(STALE)}, status=403, fresh=True)
    wait_s = math.ceil(site.pace.previews.wait_s(request.remote_addr or ""))
    if wait_s:
        problem = _("Previews came very often. The next one is there in {wait_s} s.", wait_s=wait_s)
        values = {"error": problem, "retry": wait_s}
        return later(form_json(site, request, values, status=429, fresh=False), wait_s)
    draft = draft_of(form)
    refused = complaint(draft, site.config)
    if refused is not None and refused[0] == 413:
        return form_json(site, request, {"error": refused[1]}, status=413, fresh=False)
    if is_expensive(draft.body, markup=draft.written or draft.markup):
        run_in_slow_lane(request.environ)
    return _preview(site, request, normalise(form.get("name", "")), draft)


def _preview(site: Site, request: Request, name: str, draft: FormDraft) -> Response:
    """Within the rights of who may edit the page, or suggest a change; without the store as well as it goes."""
    try:
        page = site.wiki.page(name)
        if not site.wiki.can(name).suggest:
            site.wiki.require(name, Privilege.WRITE)
    except NotAllowed as not_allowed:
        return form_json(site, request, {"error": sentence(site, not_allowed)}, status=403, fresh=False)
    except StoreUnavailable:
        page = None
    markup = draft.written or draft.markup or (page.markup if page else site.config.markup)
    autolink = page.autolink if page else True
    html = preview_html(site, name, draft.body, autolink=autolink, markup=markup, whole=not draft.section)
    response = Response(html, mimetype="text/html")
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Robots-Tag"] = "noindex"
    return response
