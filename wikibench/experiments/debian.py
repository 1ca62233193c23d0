"""Debian's packages, unpacked into a folder: apt-get downloads, dpkg -x unpacks, nothing is installed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path


def unpack_packages(folder: Path, names: Sequence[str], linked: Sequence[str]) -> Path:
    """Unpack the packages, and what they need and this machine lacks, into FOLDER/root, and return that path.

    Links in the folders ``linked`` of the root that name files of a whole system then name those of the root.
    """
    archives, root = folder / "archives", folder / "root"
    (archives / "partial").mkdir(parents=True, exist_ok=True)
    root.mkdir(exist_ok=True)
    options = ["-y", "-q", "--download-only", "--no-install-recommends", "--reinstall"]
    where = ["-o", f"Dir::Cache::archives={archives}", "-o", "Debug::NoLocking=1"]
    subprocess.run(["apt-get", *options, *where, "install", *names], check=True)
    for archive in sorted(archives.glob("*.deb")):
        subprocess.run(["dpkg", "-x", str(archive), str(root)], check=True)
    for name in linked:
        for link in (path for path in (root / name).rglob("*") if path.is_symlink()):
            target = os.readlink(link)
            if target.startswith("/") and (root / target[1:]).exists():
                link.unlink()
                link.symlink_to(root / target[1:])
    return root
