"""Recorded bytes of disk and wire: a change of a format shows as a changed file.

A golden file holds one line for each case: its name, then the bytes in hex (or the text itself).
``COLUMNAR_REWRITE=1`` records anew, and a person must read the difference; a format that is on disks of users needs a
new version instead.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "golden"


def hold_to(file: str, found: Mapping[str, bytes | str]) -> None:
    path = FOLDER / file
    lines = [f"{name}  {value.hex() if isinstance(value, bytes) else value}" for name, value in found.items()]
    text = "\n".join(lines) + "\n"
    if os.environ.get("COLUMNAR_REWRITE"):
        path.write_text(text)
    assert path.read_text() == text, f"{file} is not what is on people's disks; see tests/support/golden.py"


def golden(file: str) -> dict[str, bytes]:
    """Return the bytes of a file that is only read, of a format that is no longer written."""
    lines = (FOLDER / file).read_text().splitlines()
    return {name: bytes.fromhex(value) for name, _, value in (line.partition("  ") for line in lines)}
