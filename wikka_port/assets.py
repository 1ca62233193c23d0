"""Style, script and icon: read once, served from memory under an address that holds their content's hash."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Final

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
            content = entry.read_bytes()
            digest = hashlib.sha256(content).hexdigest()[:12]
            found[entry.name] = Asset(content, mimetype, f"{STATIC_PREFIX}{digest}/{entry.name}")
    return found
