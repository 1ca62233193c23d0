"""The actions that this wiki runs, as JSON, for the editor's script (``docs/wiki-editor.md``)."""

from __future__ import annotations

import json
from typing import Final

from werkzeug.wrappers import Request, Response

from wikka_port.actions import ACTIONS
from wikka_port.site import Site

_OF_THE_MARKUP: Final[dict[str, tuple[str, ...]]] = {
    "notoc": (),
    "redirect": ("target",),
    "toc": ("levels", "title", "links"),
}
_ATTRIBUTES: Final = {name: action.attributes for name, action in ACTIONS.items()} | _OF_THE_MARKUP
_ANSWER: Final = json.dumps([{"name": name, "attributes": given} for name, given in sorted(_ATTRIBUTES.items())])


def handle(site: Site, request: Request, name: str) -> Response:
    response = Response(_ANSWER, mimetype="application/json")
    response.headers["Cache-Control"] = "private, max-age=3600"
    response.headers["X-Robots-Tag"] = "noindex"
    return response
