"""A folder on a real shared file system, mounted several times on this machine: a mount stands for a machine.

    ext4      the folder itself, by several paths: no caches that differ, for all that needs no network folder
    ceph      CephFS: a monitor, an MDS and three OSDs, all on loopback; ``ceph-fuse``
    gluster   GlusterFS: a volume of three copies, mounted strictly, or as its defaults are (``is_strict=False``)

Debian's packages are not installed here; ``missing`` names those that are absent.  Mounting needs root.  All processes
end with the process that started them.  ``python -m tests.support.many_machines ceph`` brings one up by hand.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final, Protocol

from tests.support.many_machines.ceph import ceph
from tests.support.many_machines.daemons import SharedFolder
from tests.support.many_machines.gluster import gluster

_PACKAGES: Final[dict[str, dict[str, str]]] = {
    "ext4": {},
    "ceph": {
        "ceph": "ceph-common", "ceph-mon": "ceph-mon", "ceph-osd": "ceph-osd", "ceph-mds": "ceph-mds",
        "ceph-fuse": "ceph-fuse",
    },
    "gluster": {"glusterd": "glusterfs-server", "gluster": "glusterfs-server", "glusterfs": "glusterfs-client"},
}  # fmt: skip


@contextmanager
def ext4(folder: Path, *, mounts: int = 2) -> Iterator[SharedFolder]:
    """Yield a folder of this machine by several paths."""
    first = folder / "0"
    first.mkdir(parents=True)
    others = tuple(folder / str(number) for number in range(1, mounts))
    for other in others:
        other.symlink_to(first, target_is_directory=True)
    yield SharedFolder("ext4", (first, *others), {}, lambda _: None)


class _Kind(Protocol):
    def __call__(self, folder: Path, *, mounts: int = 2) -> AbstractContextManager[SharedFolder]: ...


KINDS: Final[dict[str, _Kind]] = {"ext4": ext4, "ceph": ceph, "gluster": gluster}


@contextmanager
def shared_folder(kind: str, mounts: int) -> Iterator[SharedFolder]:
    """Bring a file system up in a folder of its own, whose name is short.  All is gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="mm-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
    try:
        with KINDS[kind](folder / "fs", mounts=mounts) as shared:
            yield shared
    finally:
        shutil.rmtree(folder)


def missing(kind: str) -> list[str]:
    """Return what this machine lacks for the kind, in words for a message: packages, root, FUSE."""
    found = sorted({package for program, package in _PACKAGES[kind].items() if shutil.which(program) is None})
    if kind != "ext4" and os.geteuid() != 0:
        found.append("root")
    if kind != "ext4" and not os.path.exists("/dev/fuse"):
        found.append("/dev/fuse")
    return found
