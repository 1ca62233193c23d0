"""A folder on a real shared file system, mounted twice on this machine: two mounts stand for two machines.

    ext4      the folder itself, by two paths: no caches that differ, for all that needs no network folder
    ceph      CephFS: a monitor, an MDS and three OSDs, all on loopback; two ``ceph-fuse``
    gluster   GlusterFS: a volume of three copies, mounted strictly, or as its defaults are (``is_strict=False``)

Debian's packages are not installed here; ``missing`` names those that are absent.  Mounting needs root.  All processes
end with the process that started them.  ``python -m tests.support.many_machines ceph`` brings one up by hand.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

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
def ext4(folder: Path) -> Iterator[SharedFolder]:
    """Yield a folder of this machine by two paths."""
    one, other = folder / "one", folder / "other"
    one.mkdir(parents=True)
    other.symlink_to(one, target_is_directory=True)
    yield SharedFolder("ext4", (one, other), {}, lambda _: None)


KINDS: Final[dict[str, Callable[[Path], AbstractContextManager[SharedFolder]]]] = {
    "ext4": ext4,
    "ceph": ceph,
    "gluster": gluster,
}


def missing(kind: str) -> list[str]:
    """Return what this machine lacks for the kind, in words for a message: packages, root, FUSE."""
    found = sorted({package for program, package in _PACKAGES[kind].items() if shutil.which(program) is None})
    if kind != "ext4" and os.geteuid() != 0:
        found.append("root")
    if kind != "ext4" and not os.path.exists("/dev/fuse"):
        found.append("/dev/fuse")
    return found
