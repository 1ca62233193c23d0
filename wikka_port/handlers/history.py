"""The changes of the last revisions, one difference below the other."""

from __future__ import annotations

from itertools import zip_longest

from werkzeug.wrappers import Request, Response

from wikka_port.diffs import Row, rows
from wikka_port.groupings import page_of
from wikka_port.handlers.show import missing
from wikka_port.pages import Revision
from wikka_port.site import Site, number
from wikka_port.urls import page_path

STEPS = 10
ROWS_EACH = 200  # of one difference; the whole of it is one click away
SHARE_EACH = 0.2  # of what a whole difference may cost


def handle(site: Site, request: Request, name: str) -> Response:
    below = number(request, "below")
    read = site.wiki.revisions(name, below=below, limit=STEPS + 1, bodies=True)
    found, more = page_of(read, STEPS)
    if not found and below is None:
        return missing(site, name)
    steps = [(new, old, _rows(new, old)) for new, old in zip_longest(found, read[1 : len(found) + 1])]
    onward = page_path(name, "history", below=found[-1].number) if more else ""
    return site.html("history.html", page_name=name, steps=steps, onward=onward)


def _rows(new: Revision, old: Revision | None) -> list[Row]:
    return rows(old.body or "" if old else "", new.body or "", max_rows=ROWS_EACH, share=SHARE_EACH)
