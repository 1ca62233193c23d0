"""The text of a page as it was typed; ``?revision=N`` for an older one, ``?source=1`` as an import brought it."""

from __future__ import annotations

from werkzeug.wrappers import Request, Response

from wikka_port.site import Site, conditional, number
from wikka_port.texts import _


def handle(site: Site, request: Request, name: str) -> Response:
    wanted = number(request, "revision")
    found = site.wiki.page(name) if wanted is None else site.wiki.revision(name, wanted)
    source = site.wiki.source(name, wanted) if found is not None and request.args.get("source") else None
    if source is not None:
        text, status = source, 200
    elif found is not None and request.args.get("source"):
        text, status = _("This revision was not imported: there is no other source than its text.") + "\n", 404
    elif found is None:
        said = _("There is no page {name}.", name=name) if wanted is None else _("There is no such revision.")
        text, status = f"{said}\n", 404
    else:
        text, status = found.body or "", 200
    response = Response(text, status=status, content_type="text/plain; charset=utf-8")
    response.headers["X-Robots-Tag"] = "noindex"
    response.headers["Cache-Control"] = "no-cache"
    return conditional(request, response) if status == 200 else response
