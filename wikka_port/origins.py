"""Whether a form was sent by a page of this wiki (pure), by what browsers say of its sender.

    Sec-Fetch-Site   says it itself: "same-origin", or "none" for what a person entered; browsers send it over TLS and
                     to localhost
    Origin           scheme, host and port of the sender; it is compared where there is no ``Sec-Fetch-Site``
    neither          a program, or a browser of before 2020: the token of the form decides alone

This stands beside the token (``security.FormTokens``) and the cookie's SameSite: each of the three suffices alone.

Knows nothing of requests; ``forms`` calls it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final
from urllib.parse import urlsplit

_OURS: Final = frozenset({"same-origin", "none"})


def is_foreign(fetch_site: str, origin: str, own: Collection[str]) -> bool:
    """Whether another site sent the form; the arguments are headers of a request, "" if it has none.

    ``own``: the wiki's origins, lower case; empty if a proxy hides them, which leaves the first header alone.
    """
    if fetch_site:
        return fetch_site not in _OURS
    return bool(origin) and bool(own) and origin.lower() not in own


def origin_of(url: str) -> str:
    """``https://wiki.example/path`` -> ``https://wiki.example``."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}".lower()
