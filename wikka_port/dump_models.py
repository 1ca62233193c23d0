"""Content models of pages where a dump does not say them (pure): MediaWiki's defaults by title.

Dumps name the model since schema 0.8.  A style sheet that is read as wikitext would be destroyed.
"""

from __future__ import annotations

from typing import Final

WIKITEXT: Final = "wikitext"
_USER: Final = 2
_MEDIAWIKI: Final = 8
_TEMPLATE: Final = 10
_MODULE: Final = 828
_ENDINGS: Final = {".css": "css", ".js": "javascript", ".json": "json"}


def model_of_title(title: str, namespace: int) -> str:
    """``title``: with the namespace's name before it."""
    name = title.lower()
    if namespace == _MODULE:
        return WIKITEXT if name.endswith("/doc") else "Scribunto"
    if namespace == _TEMPLATE and name.endswith("/styles.css"):
        return "sanitized-css"
    if namespace == _MEDIAWIKI or (namespace == _USER and "/" in name):
        return next((model for ending, model in _ENDINGS.items() if name.endswith(ending)), WIKITEXT)
    return WIKITEXT
