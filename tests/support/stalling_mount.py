"""A folder behind a FUSE mount (``bindfs``), which can be told to stand still, and caches names unless it is STRICT.

While it stands still, each call that needs the mount waits in the kernel, as on a network file system whose servers are
unreachable.  Needs root or ``fusermount``, /dev/fuse and Debian's ``bindfs``.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.support.many_nodes import until
from tests.support.stopped_process import stop_process

# A mount that asks for each name again, and shares its locks with the others.
STRICT: Final = (
    "--enable-lock-forwarding", "--multithreaded", "-o", "attr_timeout=0,entry_timeout=0,negative_timeout=0",
)  # fmt: skip


class StallingMount:
    def __init__(self, path: Path, process: subprocess.Popen[bytes]) -> None:
        self.path = path
        self._process = process

    def stall(self) -> None:
        stop_process(self._process.pid)

    def answer(self) -> None:
        self._process.send_signal(signal.SIGCONT)


def missing() -> str | None:
    """Return what the mount needs and is not there, or None."""
    if not Path("/dev/fuse").exists():
        return "/dev/fuse"
    return None if shutil.which("bindfs") else "bindfs (Debian: apt-get install bindfs)"


@contextmanager
def stalling_mount(folder: Path) -> Iterator[StallingMount]:
    """Mount ``folder/real`` at ``folder/mount``; unmount it at the end, when nobody uses it any more."""
    (folder / "real").mkdir()
    with mounted(folder / "real", folder / "mount") as mount:
        yield mount


@contextmanager
def mounted(real: Path, mount: Path, *options: str) -> Iterator[StallingMount]:
    """Mount the folder ``real`` at ``mount``, which is made; by default it caches names for a second."""
    mount.mkdir()
    process = subprocess.Popen(["bindfs", "-f", *options, str(real), str(mount)])
    try:
        until(mount.is_mount)
        yield StallingMount(mount, process)
    finally:
        process.send_signal(signal.SIGCONT)
        subprocess.run(["umount", "-l", str(mount)], check=False)
        process.terminate()
        process.wait()
