"""The answer that is a feed: Atom, or RSS 2.0 with ``?format=rss``; one address for each list."""

from __future__ import annotations

from collections.abc import Sequence

from werkzeug.wrappers import Request, Response

from wikka_port.feeds import Entry, atom, rss
from wikka_port.site import conditional
from wikka_port.urls import with_query


def feed_answer(
    request: Request, base: str, title: str, path: str, home_path: str, entries: Sequence[Entry]
) -> Response:
    """``path`` is the feed's own; the paths of ``entries`` begin with ``base``, the wiki's address for people."""
    is_rss = request.args.get("format") == "rss"
    url = base + (with_query(path, {"format": "rss"}) if is_rss else path)
    body = (rss if is_rss else atom)(title, url, base + home_path, entries)
    kind = "rss" if is_rss else "atom"
    response = Response(body, content_type=f"application/{kind}+xml; charset=utf-8")
    response.headers["X-Robots-Tag"] = "noindex"
    response.headers["Cache-Control"] = "no-cache"
    return conditional(request, response)
