"""The text of a page as it was typed: as a file, on a page, its first words, and each code block as a file."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Final

from werkzeug.wrappers import Request, Response

from wikka_port.comments.recent_comments import beginning_of
from wikka_port.markup.bounds import is_expensive
from wikka_port.markup.formats import tokens
from wikka_port.markup.tokens import CodeBlock
from wikka_port.pages import Page
from wikka_port.refusals import missing_page, no_revision
from wikka_port.request_queues import run_in_slow_lane
from wikka_port.search.page_text import page_text
from wikka_port.site import Site, conditional, number, unindexed
from wikka_port.texts import _, _n
from wikka_port.urls import page_url

SUMMARY_CHARS: Final = 280
SUMMARY_READ: Final = 4_000  # characters of a page's text that are read for a summary
_NOT_IN_FILE_NAME: Final = re.compile(r"[^A-Za-z0-9._-]+")


def handle_raw(site: Site, request: Request, name: str) -> Response:
    """Answer with the page's text; ``?revision=N`` selects an older text, ``?source=1`` the original of an import."""
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
    response = unindexed(text, "text/plain", status=status)
    return conditional(request, response) if status == 200 else response


def handle_summary(site: Site, request: Request, name: str) -> Response:
    """Answer with the first words of a page as JSON, ``{"name": ..., "text": ...}``, for who points at a link to it."""
    page = site.wiki.page(name)
    if page is None:
        return unindexed("{}", "application/json", status=404)
    begin = page_text(page.body[:SUMMARY_READ], autolink=page.autolink, markup=page.markup).text
    text = beginning_of(begin, SUMMARY_CHARS)
    return conditional(request, unindexed(json.dumps({"name": page.name, "text": text}), "application/json"))


def handle_show_code(site: Site, request: Request, name: str) -> Response:
    page = site.wiki.page(name)
    if page is None:
        return missing_page(site, name)
    return site.html("showcode.html", page_name=name, page=page, blocks=_code_blocks(request, page))


def handle_grab_code(site: Site, request: Request, name: str) -> Response:
    """Answer with a code block as a file: the second with ``?block=2``, of an older text with ``&revision=N``."""
    page = site.wiki.page(name)
    if page is None:
        return missing_page(site, name)
    wanted = number(request, "revision")
    if wanted is not None and wanted != page.number:
        old = site.wiki.revision(name, wanted)
        if old is None or old.body is None:
            return no_revision(site, name)
        page = replace(page, body=old.body, markup=old.markup)
    blocks = _code_blocks(request, page)
    place = (number(request, "block") or 1) - 1
    if not 0 <= place < len(blocks):
        message = _n("The page has {n} code block.", "The page has {n} code blocks.", len(blocks))
        title = _("No such code block")
        return site.html("error.html", status=404, title=title, message=message, back=page_url(name))
    return _file(blocks[place])


def _code_blocks(request: Request, page: Page) -> list[CodeBlock]:
    if is_expensive(page.body, markup=page.markup):
        run_in_slow_lane(request.environ)
    return [token for token in tokens(page.body, autolink=False, markup=page.markup) if isinstance(token, CodeBlock)]


def _file(block: CodeBlock) -> Response:
    text = block.body.strip("\n").rstrip() + "\n"
    response = unindexed(text, "text/plain")
    file_name = _NOT_IN_FILE_NAME.sub("-", block.filename).strip("-.") or "code.txt"
    response.headers["Content-Disposition"] = f'attachment; filename="{file_name[:100]}"'
    return response
