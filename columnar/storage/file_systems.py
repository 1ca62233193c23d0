"""File systems as they are mounted, and whether the nodes of a cluster can share a folder of theirs.

    mountinfo   a line of ``/proc/self/mountinfo``: place, type and options of a mount
    verdict     what makes the mount unsuitable, with the option that repairs it, and remarks for the operator

The nodes of a cluster read what other nodes have synced, and fence each other by renaming folders.  A mount that
answers from an old cache breaks both.  The type and the options of a mount tell only of known faults;
``columnar.storage.probe_root`` tries whether two mounts agree.

Sources: mount(8), nfs(5), mount.glusterfs(8), and the measurements of ``python -m tests.support.many_machines``.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from columnar.errors import HostError

MOUNTINFO: Final = "/proc/self/mountinfo"
_META_BYTES: Final = 64 * 1024  # of GlusterFS' file with its command line
_ESCAPED: Final = re.compile(r"\\([0-7]{3})")  # blanks and the like in paths

LOCAL: Final = frozenset(
    {
        "ext2",
        "ext3",
        "ext4",
        "xfs",
        "btrfs",
        "zfs",
        "f2fs",
        "bcachefs",
        "tmpfs",
        "overlay",
    }
)  # fmt: skip - of one machine
CEPH_CLIENT: Final = "ceph.client_id"  # an attribute of each folder of a mount
CEPH: Final = frozenset({"ceph", "fuse.ceph", "fuse.ceph-fuse"})
GLUSTER: Final = "fuse.glusterfs"
NFS: Final = frozenset({"nfs", "nfs4"})
SEAWEED: Final = frozenset({"fuse.seaweedfs", "fuse.weed"})
OBJECTS: Final = frozenset(
    {
        "fuse.s3fs",
        "fuse.rclone",
        "fuse.gcsfuse",
        "fuse.goofys",
        "fuse.mountpoint-s3",
        "fuse.geesefs",
        "fuse.blobfuse",
        "fuse.blobfuse2",
    }
)  # fmt: skip - folders over objects

_GLUSTER_TIMEOUTS: Final = ("attribute-timeout", "entry-timeout", "negative-timeout")
# By default an open file shows pages that were read before, also if another machine has written them anew since.
_GLUSTER_FRESH: Final = re.compile(
    r"--(fopen-keep-cache=(off|no|false|disable|0)|auto-invalidation=(on|yes|true|enable|1)"
    r"|direct-io-mode=(on|yes|true|enable|1))(?![\w.-])"
)
_GLUSTER_CACHES: Final[Mapping[str, str]] = {  # a part of the client's graph -> the volume's option that removes it
    "quick-read": "performance.quick-read",
    "io-cache": "performance.io-cache",
    "read-ahead": "performance.read-ahead",
    "readdir-ahead": "performance.readdir-ahead",
    "md-cache": "performance.stat-prefetch",
    "open-behind": "performance.open-behind",
    "write-behind": "performance.write-behind",
    "nl-cache": "performance.nl-cache",
}
USE_CEPH: Final = "use CephFS, or an NFS 4.1 service that passes 'columnar probe-root'"


class MountEvicted(HostError):
    """The file system has shut the client out that has mounted the folder: each operation ends with ESHUTDOWN."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"this machine was shut out of {path}: its client of CephFS was evicted, as a fence does. Mount the folder "
            "again (umount -l, then mount), and start the node"
        )


@dataclass(frozen=True, slots=True)
class Mount:
    """A mounted file system; ``kind`` is empty if the system does not report it."""

    kind: str  # as in /proc/self/mountinfo: ext4, ceph, fuse.glusterfs
    source: str
    place: str  # where it is mounted
    root: str  # the folder of the file system that is mounted there; "/" for all of it
    options: frozenset[str]  # of the mount and of the file system

    def option(self, name: str) -> str | None:
        """Return the value of the option ``NAME=VALUE``, or None without it."""
        return next((one.partition("=")[2] for one in self.options if one.startswith(f"{name}=")), None)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judgement on a mount, by its type and its options."""

    refusal: str = ""  # why no cluster may use it; empty if nothing is known against it
    repair: str = ""  # what makes it suitable, or what to take in its place
    remarks: tuple[str, ...] = ()
    is_local: bool = False  # only processes of one machine can share it
    needs_proof: bool = False  # nobody has measured it: only a probe between two mounts tells whether it is suitable


UNKNOWN: Final = Mount("", "", "/", "/", frozenset())


def mount_of(path: str) -> Mount:
    """Return the mount that has ``path``; UNKNOWN if the system has no ``/proc``.  Blocks; raises OSError."""
    real = os.path.realpath(path)
    try:
        with open(MOUNTINFO, encoding="utf-8", errors="surrogateescape") as file:
            text = file.read()
    except FileNotFoundError:
        return UNKNOWN
    return mount_in(text, real)


def client_of(path: str) -> str:
    """Return the name of the client that has mounted the folder, as CephFS names it; empty on other file systems.

    The kernel's client knows its name since Linux 5.11, ``ceph-fuse`` since 16.  Blocks.  Raises MountEvicted if the
    client was evicted, HostError.
    """
    try:
        mount = mount_of(path)
        if mount.kind not in CEPH:
            return ""
        return os.getxattr(mount.place, CEPH_CLIENT).decode("ascii", "replace").rstrip("\0")
    except OSError as error:
        if error.errno in (errno.ENODATA, errno.EOPNOTSUPP):
            return ""
        if error.errno == errno.ESHUTDOWN:
            raise MountEvicted(path) from error
        raise HostError(f"{path}: {error}") from error


def mount_in(mountinfo: str, path: str) -> Mount:
    """Return the mount of an absolute path without links: the innermost one, of several at one place the last."""
    found = UNKNOWN
    for line in mountinfo.splitlines():
        mount = _parsed(line)
        if mount is not None and _is_within(path, mount.place) and len(mount.place) >= len(found.place):
            found = mount
    return found


def _parsed(line: str) -> Mount | None:
    """Read ``ID PARENT DEVICE ROOT PLACE OPTIONS [TAG...] - TYPE SOURCE OPTIONS``."""
    first, separator, last = line.partition(" - ")
    head, tail = first.split(" "), last.split(" ")
    if not separator or len(head) < 6 or len(tail) < 3:
        return None
    options = frozenset((*head[5].split(","), *tail[2].split(",")))
    return Mount(tail[0], _unescaped(tail[1]), _unescaped(head[4]), _unescaped(head[3]), options)


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 8)), text)


def _is_within(path: str, place: str) -> bool:
    return place == "/" or path == place or path.startswith(f"{place}/")


def is_network(mount: Mount) -> bool:
    """Tell whether other machines may hold up operations on the mount, as far as its type tells: FUSE may be local."""
    return bool(mount.kind) and mount.kind not in LOCAL


def verdict_on(mount: Mount) -> Verdict:
    """Judge the mount by its type and options.  Blocks; for GlusterFS it reads the client's settings."""
    if mount.kind in LOCAL:
        return _local(mount)
    if mount.kind in CEPH:
        return Verdict()
    if mount.kind in NFS:
        return nfs_verdict(mount)
    if mount.kind == GLUSTER:
        return gluster_verdict(mount, _gluster_settings)
    if mount.kind in SEAWEED:
        return Verdict("SeaweedFS shows files as they were up to a second ago, and no option ends that", USE_CEPH)
    if mount.kind in OBJECTS:
        what = mount.kind.removeprefix("fuse.")
        return Verdict(
            f"{what} keeps files as objects, so renaming a folder is not one step for all machines", USE_CEPH
        )
    return Verdict(remarks=(f"nobody has measured {name_of(mount.kind)} with this store",), needs_proof=True)


def name_of(kind: str) -> str:
    """Return the type of a file system for a sentence."""
    return kind or "a file system whose type the system does not report"


def _local(mount: Mount) -> Verdict:
    remarks = [f"{mount.kind} belongs to one machine: nodes on others cannot share this folder"]
    if mount.kind == "tmpfs":
        remarks.append("tmpfs is memory: a power cut or a restart of the machine loses everything")
    return Verdict(remarks=tuple(remarks), is_local=True)


def nfs_verdict(mount: Mount) -> Verdict:
    """Judge an NFS mount.  Linux lists ``lookupcache`` only if it is not ``all``, the default."""
    faults = []
    if mount.option("lookupcache") not in ("pos", "positive", "none"):
        faults.append(("names that were missing stay missing from the cache", "lookupcache=positive"))
    if "nocto" in mount.options:
        faults.append(("a file that is opened shows old content", "cto (without nocto)"))
    if "nolock" in mount.options or mount.option("local_lock") in ("all", "flock"):
        faults.append(("locks count on one machine only", "local_lock=none (without nolock)"))
    remarks = []
    if (mount.option("vers") or "").split(".")[0] in ("2", "3"):
        remarks.append("NFS before 4 keeps the locks of a machine that is gone: mount it with vers=4.1")
    if not {"soft", "softerr"}.isdisjoint(mount.options):
        remarks.append("soft mounts end writes with errors when the filer is slow: mount it hard")
    return _of_faults("NFS", faults, remarks, needs_proof=True)


def gluster_verdict(mount: Mount, settings: Callable[[Mount], tuple[str, frozenset[str]]]) -> Verdict:
    """Judge a GlusterFS mount by ``settings``: its client's command line and the parts of its graph."""
    try:
        command, parts = settings(mount)
    except (OSError, ValueError) as error:
        why = f"whether GlusterFS answers from caches cannot be read at {mount.place}/.meta: {error}"
        return Verdict(why, f"mount the whole volume there; better {USE_CEPH}")
    volume = mount.source.rpartition(":")[2].strip("/") or "VOLUME"
    missing = [f"{name}=0" for name in _GLUSTER_TIMEOUTS if not re.search(rf"--{name}=0(\.0*)?(?![\w.])", command)]
    caches = sorted(
        {option for part, option in _GLUSTER_CACHES.items() if any(one.endswith(f"-{part}") for one in parts)}
    )
    faults = []
    if missing:
        faults.append(("names and sizes come from a cache of up to a second", f"mount -o {','.join(missing)}"))
    if not _GLUSTER_FRESH.search(command):
        faults.append(("files that are opened again show old pages", "mount -o auto-invalidation=on"))
    if caches:
        off = "; ".join(f"gluster volume set {volume} {option} off" for option in caches)
        faults.append(("the client caches contents or holds writes", off))
    remark = f"GlusterFS is not maintained any more, and a stopped brick stalls it for 42 s: {USE_CEPH}"
    return _of_faults("GlusterFS", faults, [remark])


def _of_faults(name: str, faults: list[tuple[str, str]], remarks: list[str], *, needs_proof: bool = False) -> Verdict:
    if not faults:
        return Verdict(remarks=tuple(remarks), needs_proof=needs_proof)
    why = " and ".join(fault for fault, _ in faults)
    repair = "; ".join(repair for _, repair in faults)
    return Verdict(f"{name} as mounted: {why}", repair, tuple(remarks), needs_proof=needs_proof)


def _gluster_settings(mount: Mount) -> tuple[str, frozenset[str]]:
    """Read the command line and the graph of the client, which every GlusterFS mount shows below its root."""
    if mount.root != "/":
        raise ValueError("a folder of the volume is mounted, not its root")
    meta = os.path.join(mount.place, ".meta")
    with open(os.path.join(meta, "cmdline"), encoding="utf-8", errors="replace") as file:
        command = file.read(_META_BYTES)
    return command, frozenset(os.listdir(os.path.join(meta, "graphs", "active")))
