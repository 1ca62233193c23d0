"""(pure) The checks of a data folder: content, lock, rights, file system, room, fsyncs.

Knows nothing of disks and processes: the facts come from ``folder_facts`` and ``process_facts``.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote
from statistics import median
from typing import Final

from columnar.diagnosis.facts import Facts, FolderFacts, LockFacts, Process, Role, Room, Syncs
from columnar.diagnosis.findings import Finding
from columnar.diagnosis.units import milliseconds, size_text
from columnar.limits import MIB, REGION_BYTES
from columnar.storage.file_systems import name_of

FULL_BYTES: Final = 64 * MIB  # the disk counts as full: a region's memory is written in tables of that size
FULL_FILES: Final = 1_000  # a region takes a dozen files, and its merges as many again
SLOW_SYNC_S: Final = 0.010  # median: a writer alone gets 100 acknowledged writes a second
VERY_SLOW_SYNC_S: Final = 0.050
LONG_SYNC_S: Final = 0.5  # one fsync: all writers of that moment wait, and see it
NO_SYNC_S: Final = 0.000_010  # no device of any kind is that quick
NAMED: Final = 4  # processes in one finding
MEMORY_KINDS: Final = frozenset({"tmpfs", "ramfs"})
_OF_OTHERS: Final = 0o077
_UNSAFE_OPTIONS: Final = ("nobarrier", "barrier=0", "volatile")


def check_folder(facts: Facts) -> Iterator[Finding]:
    """Yield the findings of the folder; of one that cannot be looked at only the reason."""
    folder = facts.folder
    if folder.state == "stalled":
        yield Finding(
            "problem",
            "folder",
            f"{folder.path} does not answer",
            "a file operation has no time limit, so a store waits for it",
            "look at the mount (a network file system whose servers are away, a failing disk)",
        )
    elif folder.state == "file":
        yield Finding(
            "problem", "folder", f"{folder.path} is a file", "a store needs a folder", "choose another --data"
        )
    elif folder.state == "unreadable":
        yield Finding(
            "problem",
            "folder",
            f"{folder.path}: {folder.error}",
            "this user cannot use the data folder",
            "run the command as the store's user, or give that user the folder and all folders above it",
        )
    else:
        yield from _content(folder)
        yield from check_lock(facts.lock, folder, facts.running.process if facts.running is not None else None)
        yield from check_role(folder, facts.role)
        yield from check_rights(folder)
        yield from check_mount(folder, facts.role)
        yield from check_room(folder.room)
        yield from check_syncs(facts.syncs, folder)


def _content(folder: FolderFacts) -> Iterator[Finding]:
    if folder.refusal:
        yield Finding("problem", "content", folder.refusal, "a start refuses the folder")
    elif folder.state == "missing":
        yield Finding("note", "content", f"{folder.path} does not exist", "the first start makes it")
    elif folder.format is None:
        yield Finding("ok", "content", f"{folder.path} is empty: the first start makes a store there")
    else:
        yield Finding("ok", "content", f"{folder.path} has format {folder.format} and {folder.regions} region folders")


def check_lock(lock: LockFacts, folder: FolderFacts, running: Process | None) -> Iterator[Finding]:
    """Yield whether another process than the ``running`` store has the folder, and what a killed process has left."""
    holders = names_of(lock.holders)
    ended = f"{lock.owner}, which has ended" if lock.owner else "a process that cannot be seen"
    if lock.is_locked and lock.owner_lives is False and folder.coordination == "":
        yield Finding(
            "problem",
            "lock",
            f"the folder is locked by children of {ended}" + (f": {holders}" if holders else ""),
            "a start waits 10 s for them and then gives up",
            f"end them: {_kill(lock.holders)}" if lock.holders else f"'fuser {quote(folder.path)}/LOCK' names them",
        )
    elif lock.is_locked:
        who = holders or lock.owner or "a process that cannot be seen"
        if running is not None:
            yield Finding("ok", "lock", f"the folder is served by {names_of((running,))}")
        else:
            yield Finding(
                "problem",
                "lock",
                f"the folder is in use by {who}",
                "one process serves a folder at a time: a second store does not start on it",
                "stop that process, or choose another --data",
            )
    elif folder.unreplayed:
        where = ", ".join(folder.unreplayed[:3]) + (" ..." if len(folder.unreplayed) > 3 else "")
        yield Finding(
            "note",
            "lock",
            f"the last process ({lock.owner or 'unknown'}) did not stop in order: {where} may hold acknowledged writes",
            "the next start brings them into their regions, so do not remove them",
        )
    elif lock.is_locked is None and folder.format is not None:
        yield Finding("note", "lock", "whether a process serves the folder cannot be told on this system")
    elif folder.format is not None:
        yield Finding("ok", "lock", "no process serves the folder, and the last one stopped in order")


def names_of(processes: tuple[Process, ...]) -> str:
    named = [f"process {one.pid}" + (f" ({one.name})" if one.name else "") for one in processes[:NAMED]]
    return ", ".join([*named, *([f"and {len(processes) - NAMED} more"] if len(processes) > NAMED else [])])


def _kill(processes: tuple[Process, ...]) -> str:
    return "kill " + " ".join(str(one.pid) for one in processes)


def check_role(folder: FolderFacts, role: Role | None) -> Iterator[Finding]:
    """Yield whether the folder belongs to the kind of store that is to serve it."""
    if not folder.coordination:
        return
    text = f"the folder belongs to the nodes of a cluster, which {folder.coordination} coordinates"
    if role == "node":
        yield Finding("ok", "role", text)
        return
    yield Finding(
        "problem" if role == "standalone" else "warning",
        "role",
        text,
        "'columnar standalone' refuses it, as it would miss what other nodes write",
        "start 'columnar node'. To serve it by one machine again, stop every node and remove the file "
        f"{quote(folder.path)}/CLUSTER",
    )


def check_rights(folder: FolderFacts) -> Iterator[Finding]:
    rights = folder.rights
    if rights is None:
        return
    what = folder.path if folder.state == "folder" else f"the folder above {folder.path}"
    if not rights.may_use:
        yield Finding(
            "problem",
            "permissions",
            f"user {rights.user} may not read and write {what} (owner {rights.owner}, mode {rights.mode:04o})",
            "a store of this user does not start",
            f"run the store as user {rights.owner}, or: chown -R {rights.user} {quote(folder.path)}",
        )
    elif folder.state == "folder" and rights.mode & _OF_OTHERS:
        yield Finding(
            "warning",
            "permissions",
            f"other users may enter {folder.path} (mode {rights.mode:04o})",
            "they can read the data past the store; a new folder has mode 0700",
            f"chmod 0700 {quote(folder.path)}",
        )
    elif rights.user not in (0, rights.owner):
        yield Finding(
            "note",
            "permissions",
            f"{what} belongs to user {rights.owner}, and this is user {rights.user}",
            "files that one user makes the other cannot replace",
        )
    else:
        alone = ", and no other user" if folder.state == "folder" else ""
        yield Finding("ok", "permissions", f"user {rights.user} may use {what}{alone}")
    if rights.secret_mode is not None and rights.secret_mode & _OF_OTHERS:
        yield Finding(
            "problem",
            "permissions",
            f"other users may read {folder.path}/secret (mode {rights.secret_mode:04o})",
            "whoever knows it can join the cluster as one of its servers",
            f"chmod 0600 {quote(folder.path)}/secret",
        )


def check_mount(folder: FolderFacts, role: Role | None) -> Iterator[Finding]:
    """Yield what type and options of the mount mean for acknowledged writes and for a cluster."""
    mount, verdict = folder.mount, folder.verdict
    options = ",".join(sorted(mount.options))
    where = f"{name_of(mount.kind)} at {mount.place}" + (f" ({options})" if options else "")
    found = list(_options(folder, where))
    if mount.kind in MEMORY_KINDS:
        found.append(
            Finding(
                "warning",
                "mount",
                f"the folder is on {where}",
                f"{mount.kind} is memory: a restart of the machine loses everything",
                "choose a folder on a disk with --data",
            )
        )
    elif mount.kind == "overlay":
        found.append(
            Finding(
                "warning",
                "mount",
                f"the folder is on {where}",
                "this is the writable layer of a container: it goes with the container",
                "mount a volume there",
            )
        )
    is_of_nodes = role == "node" or folder.coordination != ""
    if is_of_nodes and verdict.refusal:
        found.append(
            Finding("problem", "mount", verdict.refusal, "nodes would lose acknowledged writes", verdict.repair)
        )
    elif is_of_nodes and verdict.needs_proof and mount.kind not in folder.passed:
        found.append(
            Finding(
                "problem",
                "mount",
                f"nobody has measured {name_of(mount.kind)} with this store, and no probe has passed in the folder",
                "a file system that answers from old caches loses acknowledged writes, so a node refuses it",
                f"columnar probe-root {quote(folder.path)} --listen",
            )
        )
    elif is_of_nodes and verdict.remarks:
        found += [Finding("note", "mount", remark) for remark in verdict.remarks]
    if not found:
        found.append(Finding("ok", "mount", f"the folder is on {where}"))
    yield from found


def _options(folder: FolderFacts, where: str) -> Iterator[Finding]:
    options = folder.mount.options
    if "ro" in options:
        yield Finding(
            "problem", "mount", f"the folder is on {where}", "it is mounted read-only", "mount it with the option rw"
        )
    unsafe = [option for option in _UNSAFE_OPTIONS if option in options]
    if unsafe:
        yield Finding(
            "problem",
            "mount",
            f"{folder.mount.place} is mounted with {', '.join(unsafe)}",
            "an fsync returns before the data are safe, so a power cut loses acknowledged writes",
            "mount it without that option",
        )
    if "sync" in options:
        yield Finding(
            "warning",
            "mount",
            f"{folder.mount.place} is mounted with sync",
            "each write waits for the disk, not only each fsync",
            "mount it without sync: the store syncs what it acknowledges",
        )
    if "discard" in options:
        yield Finding(
            "note",
            "mount",
            f"{folder.mount.place} is mounted with discard",
            "an fsync waits while files that a merge has replaced are returned to the device",
            "mount it without discard, and let fstrim run from time to time",
        )
    if folder.mount.kind.startswith("nfs") and not {"soft", "softerr"}.isdisjoint(options):
        yield Finding(
            "warning",
            "mount",
            f"{folder.mount.place} is mounted soft",
            "a slow filer ends writes with errors, and their regions close",
            "mount it hard",
        )


def check_room(room: Room | None) -> Iterator[Finding]:
    if room is None:
        return
    data = ("" if room.is_whole else "over ") + size_text(room.data_bytes)
    text = f"{size_text(room.free_bytes)} of {size_text(room.size_bytes)} are free, the data have {data}"
    if room.free_bytes < FULL_BYTES:
        yield Finding(
            "problem",
            "space",
            text,
            "the disk is full: writers get errors, and a start may fail",
            "make room, or move the folder to another disk",
        )
    elif room.free_bytes < REGION_BYTES:
        yield Finding(
            "warning",
            "space",
            text,
            f"a merge writes a region of up to {size_text(REGION_BYTES)} anew before it removes its files",
            "make room, or move the folder to another disk",
        )
    elif room.free_bytes < room.data_bytes:
        yield Finding(
            "note",
            "space",
            text,
            "snapshots keep old files, and a major compaction of a whole table needs its size once more",
        )
    else:
        yield Finding("ok", "space", text)
    if room.free_files is not None and room.free_files < FULL_FILES:
        yield Finding(
            "problem" if room.free_files < FULL_FILES // 10 else "warning",
            "inodes",
            f"{room.free_files} more files can be made",
            "a region takes a dozen files, and its merges make new ones",
            "remove small files of others from this file system, or move the folder",
        )


def check_syncs(syncs: Syncs | None, folder: FolderFacts) -> Iterator[Finding]:
    """Yield how long an acknowledged write waits for the disk."""
    if syncs is None:
        return
    if syncs.error:
        yield Finding(
            "problem",
            "fsync",
            f"a file in {syncs.place} cannot be written and synced: {syncs.error}",
            "no write can be acknowledged, and a start fails",
            "make room, look at the kernel's log (dmesg) for errors of the disk, and at the mount",
        )
        return
    times = sorted(syncs.seconds)
    if not times:
        return
    middle, longest = median(times), times[-1]
    text = f"median {milliseconds(middle)}, longest {milliseconds(longest)} of {len(times)} fsyncs in {syncs.place}"
    why = "an acknowledged write waits for one fsync; many writers share it"
    if middle >= SLOW_SYNC_S:
        advice = "take a disk with a protected write cache (an SSD for servers), and look at what else uses this one"
        yield Finding("warning" if middle >= VERY_SLOW_SYNC_S else "note", "fsync", text, why, advice)
    elif longest >= LONG_SYNC_S:
        yield Finding("note", "fsync", text, "all writers of that moment waited", "look at what else uses the disk")
    elif middle < NO_SYNC_S and folder.mount.kind not in MEMORY_KINDS:
        yield Finding(
            "warning",
            "fsync",
            text,
            "no device is that quick: something answers without it, and a power cut loses acknowledged writes",
            "look for eatmydata, a disk cache mode unsafe of a virtual machine, or a file system in memory",
        )
    else:
        yield Finding("ok", "fsync", text)
