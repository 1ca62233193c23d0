"""The second origin, at which files are served: ``--files-url https://files.example``.

A file that everybody may read is led from the wiki's own address to the same path at the second one.  A browser that
was made to run something in such a file, against its type and the policy of the answer, would run it without the
wiki's cookies and outside its origin.

    at the wiki           a file that everybody may read: 302 to the second origin; any other is answered here
    at the second origin  files that everybody may read, and /health; nothing else, no cookie is read or set, and nobody
                          is signed in

Both are one server.  The second origin is known by its ``Host``; so a proxy must pass that on.
"""

from __future__ import annotations

import logging

from werkzeug.wrappers import Request, Response

from wikka_port.editing.edit_forms import owners_of
from wikka_port.files.refusals import MissingContent, NoSavedPage
from wikka_port.handlers.download import handle_download
from wikka_port.refusals import LOST, LOST_STATUS
from wikka_port.rights.judging import NotAllowed
from wikka_port.rights.rules import Privilege
from wikka_port.site import Site, redirect
from wikka_port.texts import _
from wikka_port.urls import Route, file_path
from wikka_port.visitors import Visitor

log = logging.getLogger(__name__)


def is_at_files(site: Site, request: Request) -> bool:
    """Return whether a request asks the second origin."""
    origin = site.config.files.origin
    return bool(origin) and request.host.lower() == origin.partition("://")[2]


def answer_at_files(site: Site, request: Request, where: Route, visitor: Visitor) -> Response:
    """Answer at the second origin; ``visitor`` has no account."""
    if where.kind != "file" or request.method not in ("GET", "HEAD"):
        return _plain(404, _("Only files of the wiki are served at this name."))
    try:
        response = handle_download(site.for_visitor(visitor), request, where.name, where.file)
    except NotAllowed:
        return _plain(403, _("Not everybody may read this file. Open it from the wiki."))
    except MissingContent as lost:
        log.error("%s %s: %s", request.method, request.path, lost)
        return _plain(LOST_STATUS, _(LOST))
    if response.status_code >= 400 and response.status_code != 416:
        return _plain(response.status_code, _("There is no such file."))
    response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"  # pages of the wiki show it
    return response


def file_answer(site: Site, request: Request, where: Route) -> Response:
    """Answer a request for a file at the wiki itself.  Raises NotAllowed."""
    origin = site.config.files.origin
    path = _path_of_public(site, request, where) if origin else ""
    if not path:
        return handle_download(site, request, where.name, where.file, owners_of(site, request))
    response = redirect(origin + path, status=302)
    response.headers["Cache-Control"] = "private, no-cache"  # rights may change
    return response


def _path_of_public(site: Site, request: Request, where: Route) -> str:
    """Return the path of a file that everybody may read, "" if it is none.  Raises NotAllowed."""
    try:
        own, current = site.wiki.files(where.name).find(where.file)
    except NoSavedPage:
        return ""
    if current is None or not site.wiki.access.everybody_may(where.name, Privilege.READ):
        return ""
    return file_path(where.name, own, **{key: request.args[key] for key in ("v", "w") if key in request.args})


def _plain(status: int, text: str) -> Response:
    response = Response(f"{text}\n", status=status, content_type="text/plain; charset=utf-8")
    response.headers["Cache-Control"] = "no-store"
    return response
