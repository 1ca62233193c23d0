"""Templates: the pages below ``Template/``, whose texts new pages may begin with."""

from __future__ import annotations

from typing import Final

from wikka_port.limits import TEMPLATES_MAX
from wikka_port.schema import folded
from wikka_port.site import Site

PREFIX: Final = "Template/"


def is_template(name: str) -> bool:
    return folded(name).startswith(folded(PREFIX))


def templates(site: Site) -> list[str]:
    """The names of those that the visitor may read, the first TEMPLATES_MAX in order.  Raises StoreUnavailable."""
    return site.wiki.names(prefix=PREFIX, limit=TEMPLATES_MAX)
