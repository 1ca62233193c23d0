"""Style sheets, scripts and icon: read once, served from memory under an address with a hash of the content.

The texts that scripts show to people are a separate script: ``static/texts.js``, filled with the texts of one language.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Final

from wikka_port.texts.catalogue import SOURCE_LANGUAGE, Catalogue, UnreadableTexts
from wikka_port.urls import STATIC_PREFIX

TEXTS: Final = "texts.js"
_SAID: Final = "const wikkaSaid = new Map([]);"
_PLURAL: Final = "const wikkaPlural = (n) => Number(n !== 1);"
_RULE: Final = re.compile(
    r"[n0-9 ()?:<>=!&|%]+"
)  # the part of C's expressions, used in Plural-Forms, that JavaScript has too
_TYPES: Final = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}


def name_of(code: str) -> str:
    return TEXTS if code == SOURCE_LANGUAGE else f"texts.{code}.js"


def language_of(name: str) -> str:
    """Return the language's code in the name of a script of texts, or "" if ``name`` is no such script."""
    found = re.fullmatch(r"texts\.([A-Za-z0-9-]+)\.js", name)
    return found.group(1) if found else ""


def script_of(source: str, catalogue: Catalogue) -> str:
    """Fill ``source``, the text of ``static/texts.js``, with the catalogue's texts.  Raises UnreadableTexts."""
    if not _RULE.fullmatch(catalogue.plural):
        raise UnreadableTexts(f"The rule of plurals of {catalogue.code} is none: {catalogue.plural!r}")
    said = json.dumps(sorted(catalogue.of_scripts.items()), ensure_ascii=False).replace("\u2028", " ")
    made = source.replace(_SAID, f"const wikkaSaid = new Map({said});")
    return made.replace(_PLURAL, f"const wikkaPlural = (n) => Number({catalogue.plural});")


@dataclass(frozen=True, slots=True)
class Asset:
    content: bytes
    mimetype: str
    url: str


@lru_cache(maxsize=64)
def compressed(content: bytes) -> bytes:
    """Return an asset's content as gzip, which browsers of slow phones get: a quarter of its bytes."""
    return gzip.compress(content, 9, mtime=0)


def load_assets() -> Mapping[str, Asset]:
    """Return the asset of every file in ``static/`` by its file name."""
    found: dict[str, Asset] = {}
    for entry in sorted((resources.files("wikka_port") / "static").iterdir(), key=lambda entry: entry.name):
        mimetype = _TYPES.get(entry.name.rpartition(".")[2])
        if mimetype is not None:
            found[entry.name] = _asset(entry.name, entry.read_bytes(), mimetype)
    return found


def texts_asset(assets: Mapping[str, Asset], catalogue: Catalogue) -> Asset:
    """Return the script of texts in the catalogue's language.  Raises UnreadableTexts."""
    source = assets[TEXTS]
    if catalogue.code == SOURCE_LANGUAGE:
        return source
    content = script_of(source.content.decode(), catalogue).encode()
    return _asset(name_of(catalogue.code), content, source.mimetype)


def _asset(name: str, content: bytes, mimetype: str) -> Asset:
    digest = hashlib.sha256(content).hexdigest()[:12]
    return Asset(content, mimetype, f"{STATIC_PREFIX}{digest}/{name}")
