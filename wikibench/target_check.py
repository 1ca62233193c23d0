"""The check of a wiki, before any load: does it answer, and whose texts would the edits of a trace overwrite?

No redirect is followed, for it may lead to another host, and no proxy of the environment is used: the target is
checked, or nothing.  A mistake ends in a TargetError of one line, whatever the target answers.
"""

from __future__ import annotations

import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterable
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any, Final
from urllib.parse import urlsplit

from . import __version__
from .bodies import is_of_a_replay
from .errors import TargetError, UnresolvedError
from .forms import find_edit_form
from .limits import EDIT_CHECK_TIMEOUT_S, FORM_BYTES, MAX_EDIT_CHECKS, TIMEOUT_S
from .paths import Layout, page_name
from .target import Target
from .trace import Request


@dataclass(frozen=True, slots=True)
class Page:
    status: int
    kind: str  # of the content
    data: bytes  # at most as much as was requested


class _Stays(urllib.request.HTTPRedirectHandler):
    """A redirect is an answer like another."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


_OPENER: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}), _Stays)


def fetch_page(
    url: str, *, most: int = 0, headers: Iterable[tuple[str, str]] = (), timeout_s: float = TIMEOUT_S
) -> Page:
    """GET ``url`` and read up to ``most`` bytes; TargetError if no HTTP comes back."""
    given = {"User-Agent": f"wikibench/{__version__}", **dict(headers)}
    request = urllib.request.Request(url, headers=given)  # noqa: S310  http(s) only: see parse_target
    try:
        with _OPENER.open(request, timeout=timeout_s) as response:
            return Page(response.status, response.headers.get_content_type(), response.read(most) if most else b"")
    except urllib.error.HTTPError as error:
        error.close()
        return Page(error.code, "", b"")
    except OSError as error:
        why = getattr(error, "reason", error)
        if isinstance(why, socket.gaierror):
            raise UnresolvedError(url, urlsplit(url).hostname or "", why.strerror or str(why)) from error
        raise TargetError(url, f"nothing answers ({why})") from error
    except (HTTPException, ValueError) as error:
        raise TargetError(url, f"what answers does not speak HTTP ({type(error).__name__}: {error})") from error


def require_answer(target: Target, headers: Iterable[tuple[str, str]] = ()) -> None:
    """A wiki that is not there is wrong usage, not a thousand failures."""
    fetch_page(target.url("/"), headers=headers)


def pages_of_others(
    target: Target, layout: Layout, requests: Iterable[Request], headers: Iterable[tuple[str, str]]
) -> tuple[list[str], int]:
    """Return names of pages that the trace would edit and whose text no replay wrote, and how many pages were checked.

    At most ``MAX_EDIT_CHECKS`` pages, for ``EDIT_CHECK_TIMEOUT_S``: every edit checks the text again (``visits``).
    """
    paths: dict[str, None] = {}
    for request in requests:
        if request.is_save:
            paths[layout.page(request.url)] = None
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
        form = find_edit_form(page.data.decode(errors="replace"))
        if form is not None and form.body.strip() and not is_of_a_replay(form.body):
            found.append(page_name(path))
    return found, looked
