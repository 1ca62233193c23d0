"""The check of a wiki before any load: whether it answers, and whether edits of a trace would overwrite foreign texts.

No redirect is followed, because it may lead to a different host, and no proxy of the environment is used, so only the
target itself is checked.  A mistake ends in a TargetError of one line, whatever the target answers.
"""

from __future__ import annotations

import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterable
from dataclasses import dataclass
from http.client import HTTPException
from http.cookiejar import CookieJar
from typing import Any, Final
from urllib.parse import urlsplit

from wikibench import __version__
from wikibench.addresses.mapping import Map
from wikibench.addresses.paths import Layout, page_name
from wikibench.errors import MapError, TargetError, UnresolvedError
from wikibench.limits import EDIT_CHECK_TIMEOUT_S, FORM_BYTES, MAX_EDIT_CHECKS, TIMEOUT_S

from .bodies import is_of_a_replay
from .forms import find_edit_form
from .target import Target


@dataclass(frozen=True, slots=True)
class Page:
    status: int
    kind: str  # of the content
    data: bytes  # at most as much as was requested
    location: str = ""  # of a redirect


class _Stays(urllib.request.HTTPRedirectHandler):
    """A handler that follows no redirect, so that a redirect is an answer like any other."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def _opener(*more: urllib.request.BaseHandler) -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(urllib.request.ProxyHandler({}), _Stays, *more)


_OPENER: Final = _opener()


def fetch_page(
    url: str,
    *,
    most: int = 0,
    headers: Iterable[tuple[str, str]] = (),
    timeout_s: float = TIMEOUT_S,
    data: bytes | None = None,
    cookies: CookieJar | None = None,
) -> Page:
    """GET ``url``, or POST ``data`` to it, and read up to ``most`` bytes.  Raises TargetError if the answer is no HTTP.

    The ``cookies`` are sent and received.
    """
    given = {"User-Agent": f"wikibench/{__version__}", **dict(headers)}
    opener = _OPENER if cookies is None else _opener(urllib.request.HTTPCookieProcessor(cookies))
    request = urllib.request.Request(url, data, given)  # noqa: S310  http(s) only: see parse_target
    try:
        with opener.open(request, timeout=timeout_s) as response:
            return Page(response.status, response.headers.get_content_type(), response.read(most) if most else b"")
    except urllib.error.HTTPError as error:
        location = error.headers.get("Location", "") if error.headers else ""
        error.close()
        return Page(error.code, "", b"", location)
    except OSError as error:
        why = getattr(error, "reason", error)
        if isinstance(why, socket.gaierror):
            raise UnresolvedError(url, urlsplit(url).hostname or "", why.strerror or str(why)) from error
        raise TargetError(url, f"nothing answers ({why})") from error
    except (HTTPException, ValueError) as error:
        raise TargetError(url, f"what answers does not speak HTTP ({type(error).__name__}: {error})") from error


def require_answer(target: Target, wiki: Map, headers: Iterable[tuple[str, str]] = ()) -> None:
    """Raise TargetError if no wiki answers: that is wrong usage, not a thousand failed requests.

    Raises MapError if the wiki has a page at ``/``, and none of the name that the map has for it: requests for ``/``
    in a log would be requests for a page that is missing.
    """
    given = tuple(headers)
    first, *_ = [fetch_page(address.url("/"), headers=given) for address in target.addresses()]
    if not (wiki.wiki.root and wiki.has_own_addresses and first.status < 300):
        return
    if fetch_page(target.url(wiki.view_path("")), headers=given).status == 404:
        said = f"the wiki has no page {wiki.canonical('')}, and another page at /"
        raise MapError(wiki.name, f"{said}: name it by wiki.root of a map, or as in --map columnar:root=Start")


def pages_of_others(
    target: Target, layout: Layout, edited: Iterable[str], headers: Iterable[tuple[str, str]]
) -> tuple[list[str], int]:
    """Return the names of the ``edited`` pages with foreign texts, and the number of pages that were checked.

    ``edited`` has paths of pages.

    At most ``MAX_EDIT_CHECKS`` pages are checked, for at most ``EDIT_CHECK_TIMEOUT_S``; every edit checks the text
    again (``visits``).
    """
    paths: dict[str, None] = {}
    for path in edited:
        paths[path] = None
        if len(paths) >= MAX_EDIT_CHECKS:
            break
    ends_s, looked, found = time.monotonic() + EDIT_CHECK_TIMEOUT_S, 0, []
    for path in paths:
        if (left_s := ends_s - time.monotonic()) <= 0:
            break
        looked += 1
        try:
            page = fetch_page(target.url(layout.edit_path(path)), most=FORM_BYTES, headers=headers, timeout_s=left_s)
        except TargetError:
            continue  # the replay counts it among its failures
        form = find_edit_form(page.data.decode(errors="replace"), layout.map.form)
        if form is not None and form.body.strip() and not is_of_a_replay(form.body):
            found.append(page_name(path))
    return found, looked
