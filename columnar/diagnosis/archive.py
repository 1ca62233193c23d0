"""The support archive: parts in a ``.tar.gz``, with a manifest of what is inside and what was left out.

    columnar-bundle-TIME/MANIFEST.json    {"made", "program", "parts": [{"name", "bytes", "about"}],
                                           "left_out": [{"what", "why"}]}
    columnar-bundle-TIME/NAME             each part: JSON, text of Prometheus, or lines of a log

All files have mode 0600 and no owner's name.
"""

from __future__ import annotations

import io
import json
import tarfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

MANIFEST: Final = "MANIFEST.json"
PART_BYTES: Final = 8 * 1024 * 1024  # of one part; the rest is cut


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    data: bytes
    about: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    what: str
    why: str


class _Member(tarfile.TarInfo):
    def __init__(self, name: str, size_bytes: int, made_s: int) -> None:
        super().__init__(name)
        self.size, self.mtime, self.mode = size_bytes, made_s, 0o600


def json_part(name: str, value: Any, about: str) -> Part:
    return Part(name, json.dumps(value, indent=1, sort_keys=True, default=str).encode() + b"\n", about)


def folder_name(made_s: float) -> str:
    return time.strftime("columnar-bundle-%Y%m%dT%H%M%SZ", time.gmtime(made_s))


def pack(made_s: float, parts: Sequence[Part], left_out: Sequence[LeftOut], program: Any) -> bytes:
    """Return the bytes of the archive."""
    folder = folder_name(made_s)
    manifest = {
        "made": int(made_s),
        "program": program,
        "parts": [{"name": one.name, "bytes": len(one.data), "about": one.about} for one in parts],
        "left_out": [{"what": one.what, "why": one.why} for one in left_out],
    }
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w:gz") as archive:
        for part in (json_part(MANIFEST, manifest, ""), *parts):
            archive.addfile(_Member(f"{folder}/{part.name}", len(part.data), int(made_s)), io.BytesIO(part.data))
    return whole.getvalue()
