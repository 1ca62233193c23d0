"""A folder of Markdown files with pictures, as a person keeps it, and hostile things beside them."""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path


def png(shade: int = 0) -> bytes:
    """Return a picture of one pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(bytes([0, shade])))
        + chunk(b"IEND", b"")
    )


def write(folder: Path, path: str, data: str | bytes, time_s: int = 1_600_000_000) -> None:
    whole = folder / path
    whole.parent.mkdir(parents=True, exist_ok=True)
    whole.write_bytes(data.encode() if isinstance(data, str) else data)
    os.utime(whole, (time_s, time_s))


def make_vault(folder: Path) -> None:
    (folder / ".obsidian").mkdir(parents=True)
    write(folder, "Home.md", "# Our notes\n\n[[Plan]] ![](pics/logo.png) [paper](docs/paper.pdf)\n")
    write(
        folder,
        "Work/Plan.md",
        "---\ndate: 2020-05-01\nauthor: Ada\n---\n# Plan\n\n![floor|300](pics/floor.png)\n![](../pics/logo.png)\n",
    )
    write(folder, "Work/pics/floor.png", png(1))
    write(folder, "Work/old.md", "caf\xe9 `![x](pics/floor.png)`\r\n".encode("cp1252"))
    write(folder, "pics/logo.png", png(2))
    write(folder, "docs/paper.pdf", b"%PDF-1.4 paper")
    write(folder, "docs/unused.png", png(3))
    write(folder, "docs/program.exe", b"MZ\x90\x00" + bytes(200))
    write(folder, "Long.md", b"x" * 4_200_000)


def make_hostile(folder: Path, outside: Path) -> None:
    """Add links out of the folder, a pipe, and names that are none."""
    outside.write_text("secret")
    (folder / "link.md").symlink_to(outside)
    (folder / "loop").symlink_to(folder)
    os.mkfifo(folder / "pipe.md")
    write(folder, "bell\x07.md", "rings")
    (folder / os.fsdecode(b"bytes\xff.md")).write_text("no characters")
    (folder / "locked.md").write_text("locked")
    (folder / "locked.md").chmod(0)
