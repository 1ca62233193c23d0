"""Style, script and icon: read once, served from memory under an address that has their content's hash."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Final

from wikka_port.texts import scripts
from wikka_port.texts.catalogue import SOURCE_LANGUAGE, Catalogue
from wikka_port.urls import STATIC_PREFIX

_TYPES: Final = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}


@dataclass(frozen=True, slots=True)
class Asset:
    content: bytes
    mimetype: str
    url: str


def load_assets() -> Mapping[str, Asset]:
    """File name -> asset, of every file in ``static/``."""
    found: dict[str, Asset] = {}
    for entry in sorted((resources.files("wikka_port") / "static").iterdir(), key=lambda entry: entry.name):
        mimetype = _TYPES.get(entry.name.rpartition(".")[2])
        if mimetype is not None:
            found[entry.name] = _asset(entry.name, entry.read_bytes(), mimetype)
    return found


def texts_asset(assets: Mapping[str, Asset], catalogue: Catalogue) -> Asset:
    """Return the texts of the scripts in that language.  Raises UnreadableTexts."""
    source = assets[scripts.NAME]
    if catalogue.code == SOURCE_LANGUAGE:
        return source
    content = scripts.script_of(source.content.decode(), catalogue).encode()
    return _asset(scripts.name_of(catalogue.code), content, source.mimetype)


def _asset(name: str, content: bytes, mimetype: str) -> Asset:
    digest = hashlib.sha256(content).hexdigest()[:12]
    return Asset(content, mimetype, f"{STATIC_PREFIX}{digest}/{name}")
