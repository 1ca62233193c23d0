"""Names of pages, for ``wikibench synth`` and links of edits.

They come from a file with one name a line (UTF-8), or from ``GET /api/titles`` of the wiki, which has the same form as
text/plain.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from wikibench.errors import TargetError, TraceFileError
from wikibench.limits import TITLES_BYTES

from .target import Target
from .target_check import fetch_page

TITLES_ROUTE: Final = "/api/titles"


def titles_of_file(path: Path) -> list[str]:
    """Return the names in ``path`` in file order, without empty lines and repeats."""
    try:
        return _distinct(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise TraceFileError(str(path), f"page names are UTF-8, one a line ({error})") from error


def titles_of_wiki(target: Target) -> list[str]:
    """Return the names of all pages of the wiki; raises TargetError if it does not have them."""
    url = target.url(TITLES_ROUTE)
    remedy = "; write the page names into a file, one a line, and give it with --titles"
    page = fetch_page(url, most=TITLES_BYTES + 1, headers=target.headers(()))
    if page.status != 200:
        raise TargetError(url, f"this wiki does not list its pages here (status {page.status}){remedy}")
    if page.kind != "text/plain":
        raise TargetError(url, f"the answer is {page.kind}, not a text/plain list of page names{remedy}")
    data = page.data
    if len(data) > TITLES_BYTES:
        raise TargetError(url, f"the list of pages is over {TITLES_BYTES} bytes{remedy}")
    titles = _distinct(data.decode("utf-8", errors="replace"))
    if not titles:
        raise TargetError(url, "the wiki has no pages yet")
    return titles


def _distinct(text: str) -> list[str]:
    lines = (line.strip("\r") for line in text.split("\n"))  # not splitlines: names may have U+2028 and its like
    return list(dict.fromkeys(line for line in lines if line.strip()))
