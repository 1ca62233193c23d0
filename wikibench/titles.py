"""Where the names of a wiki's pages come from: a file, or the wiki itself.

A file has one name a line, UTF-8.  A wiki is asked at ``GET /api/titles`` for the same
as text/plain; one that has no such address is told of plainly, with the way out.
"""

from __future__ import annotations

import urllib.error
import urllib.request
from pathlib import Path

from . import __version__
from .errors import TargetError
from .limits import TIMEOUT_S, TITLES_BYTES
from .target import Target

ROUTE = "/api/titles"


def titles_of_file(path: Path) -> list[str]:
    """The names in ``path``, without empty lines and repeats, in file order."""
    return _distinct(path.read_text(encoding="utf-8"))


def titles_of_wiki(target: Target) -> list[str]:
    """The names of all pages of the wiki; raises TargetError where it does not tell them."""
    url = target.url(ROUTE)
    way_out = "; write the page names into a file, one a line, and give it with --titles"
    request = urllib.request.Request(url, headers={"User-Agent": f"wikibench/{__version__}"})  # noqa: S310  http(s) only: see parse_target
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:  # noqa: S310  as above
            kind = response.headers.get_content_type()
            if kind != "text/plain":
                raise TargetError(url, f"the answer is {kind}, not a text/plain list of page names{way_out}")
            data = response.read(TITLES_BYTES + 1)
    except urllib.error.HTTPError as error:
        error.close()
        raise TargetError(url, f"this wiki does not list its pages here (status {error.code}){way_out}") from error
    except OSError as error:
        raise TargetError(url, f"nothing answers ({getattr(error, 'reason', error)})") from error
    if len(data) > TITLES_BYTES:
        raise TargetError(url, f"the list of pages is over {TITLES_BYTES} bytes{way_out}")
    titles = _distinct(data.decode("utf-8", errors="replace"))
    if not titles:
        raise TargetError(url, "the wiki has no pages yet")
    return titles


def _distinct(text: str) -> list[str]:
    lines = (line.strip("\r") for line in text.split("\n"))  # not splitlines: names may hold U+2028 and its like
    return list(dict.fromkeys(line for line in lines if line.strip()))
