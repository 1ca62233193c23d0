"""The takeover of a region's folder from an owner that ended by time, and may still run: a new generation of it.

An owner that was killed and reaped leaves its folder to the next owner as it is.  An owner whose lease ran out may only
be stopped.  When it wakes, it continues to write into its files and to remove files.  So the next owner opens a folder
of its own, which the earlier owner cannot reach:

    rename   ENC (the highest lower generation) to ENC.G.from    the earlier owner's paths lead nowhere from now on
    link     the tables, which are never changed, into ENC.G.E.new
    copy     everything else, logs too: the earlier owner may have those files open, and appends to them
    sync     the copies, and their folder
    rename   ENC.G.E.new to ENC.G                                the owner at epoch E opens it

A log that was linked instead would get the earlier owner's late appends until the next owner has begun a log of its
own.

Invariants:
    T1. ENC.G is complete and on disk as soon as the name exists.
    T2. A death or a power cut at any point leaves a state from which the same takeover, or one at a higher generation,
        comes to the same content: everything that was on disk before the first rename.
    T3. At most one process writes into an ENC.G.E.new, because a region has one owner at an epoch.  The folder
        that an earlier owner was making is renamed before it is removed.  So either it was complete and is ENC.G, or
        that owner finds it no more: nothing half made, and nothing half removed, is renamed to ENC.G.
    T4. An owner that finds a higher generation gives up: a later owner has taken the folder over.
    T5. A copy is consistent though the earlier owner still writes.  The bound (``SYNCED``) is copied before the files
        that it describes, and the MANIFEST before the logs and tables that it names.  Tables that the copied MANIFEST
        does not name are left out: the earlier owner may be writing them.

All functions block, also for minutes if a network folder stalls: they are for threads.
"""

from __future__ import annotations

import errno
import logging
import os
import re
from collections.abc import Callable
from typing import Final

from columnar.errors import DamagedData, FolderTakenOver, HostError
from columnar.storage.durable_files import HALF, rename_durably, size_of_file, sync_folder
from columnar.storage.file_copies import LOG_FILE, TABLE_FILE, copy_file, files_of, link_or_copy, remove_tree
from columnar.storage.region_entries import (
    DELETED,
    Entry,
    entries_by_region,
    entry_of,
    folder_name,
    half_name,
    newest_of,
    source_for,
    source_name,
)
from columnar.storage.rocks_errors import refused
from columnar.storage.rocks_manifest import read_manifest
from columnar.storage.synced_bound import SYNCED, manifest_of, read_bound

_log = logging.getLogger(__name__)

ATTEMPTS: Final = 20  # each failed attempt means that another process removed or renamed something meanwhile
_TABLE: Final = re.compile(r"(\d+)" + re.escape(TABLE_FILE), re.ASCII)
_FIRST_COPIED: Final = (SYNCED, "CURRENT")  # T5


def entries_of_region(root: str, encoded: str) -> list[Entry]:
    """Return the entries of ``root`` that belong to the region.  Lists the whole folder.  Raises OSError."""
    return [entry for name in os.listdir(root) if (entry := entry_of(name)).encoded == encoded]


def take_over(root: str, encoded: str, generation: int, epoch: int) -> bool:
    """Make the region's folder of ``generation`` if it is missing; tell whether it was made.

    A region that has no folder at all gets none.  Raises FolderTakenOver (T4), HostError.
    """
    target = os.path.join(root, folder_name(encoded, generation))
    try:
        for _ in range(ATTEMPTS):
            if os.path.isdir(target):
                sync_folder(root)  # T1: an earlier sync, after the rename, may have failed
                return False
            try:
                return _try_takeover(root, encoded, generation, epoch)
            except FileNotFoundError as missing:
                if not os.path.isdir(root):
                    raise
                _log.info("the takeover of region %s begins again: %s is gone", encoded, missing.filename)
            except OSError:
                if not os.path.isdir(target):  # else another owner of this generation was faster (T3)
                    raise
    except OSError as error:
        raise refused(error, f"cannot take the folder of region {encoded} over") from error
    raise HostError(f"the folder of region {encoded} is changed by another process all the time; it is not taken over")


def _try_takeover(root: str, encoded: str, generation: int, epoch: int) -> bool:
    """Take the folder over.  Raises FileNotFoundError if a file disappeared meanwhile; OSError, FolderTakenOver."""
    entries = entries_of_region(root, encoded)
    highest = max((entry.generation for entry in entries), default=0)
    if highest > generation:
        raise FolderTakenOver(encoded, generation, highest)
    found = source_for(entries, generation)
    if found is None:
        return False
    source = os.path.join(root, source_name(encoded, generation))
    if found.name != os.path.basename(source):
        rename_durably(os.path.join(root, found.name), source)
    _remove_halves_until(root, entries, epoch)
    half = os.path.join(root, half_name(encoded, generation, epoch))
    os.mkdir(half)
    try:
        copy_store(source, half)
        rename_durably(half, os.path.join(root, folder_name(encoded, generation)))
    except BaseException:
        remove_tree(half, missing_ok=True)
        raise
    _log.info("region %s: its folder was taken over from %s as generation %d", encoded, found.name, generation)
    return True


def _remove_halves_until(root: str, entries: list[Entry], epoch: int) -> None:
    """Remove what owners until ``epoch`` were making.  Raises FileNotFoundError if one of them was faster."""
    halves = [entry for entry in entries if entry.epoch and entry.epoch <= epoch]
    for entry in halves:
        if entry.ends == HALF + DELETED:
            remove_tree(os.path.join(root, entry.name), missing_ok=True)
    for entry in halves:
        if entry.ends == HALF:
            path = os.path.join(root, entry.name)
            os.rename(path, path + DELETED)  # T3
            remove_tree(path + DELETED, missing_ok=True)


def copy_store(source: str, target: str) -> None:
    """Link and copy the store's files to the folder ``target``, and sync it.  Raises OSError."""
    before = files_of(source, with_bound=True)
    small = [name for name in before if not name.endswith((LOG_FILE, TABLE_FILE))]
    for name in sorted(small, key=lambda one: (one not in _FIRST_COPIED, one != SYNCED, one)):
        copy_whole(os.path.join(source, name), os.path.join(target, name))
    large = {name for name in (*before, *files_of(source)) if name.endswith((LOG_FILE, TABLE_FILE))}
    named = _named_tables(target)
    for name in sorted(large):
        if name.endswith(TABLE_FILE):
            if named is None or _number(name) in named:
                link_or_copy(os.path.join(source, name), os.path.join(target, name))
        else:
            copy_whole(os.path.join(source, name), os.path.join(target, name))
    sync_folder(target)


def copy_whole(source: str, target: str) -> None:
    """Copy the file and sync the copy.

    Raises OSError (EIO) if the copy has fewer bytes than the file had: a network file system may show its readers the
    end of what this machine has cached.
    """
    size = size_of_file(source)
    copy_file(source, target)
    copied = os.path.getsize(target)
    if copied < size:
        raise OSError(errno.EIO, f"only {copied} bytes of its {size} could be read", source)


def _number(table: str) -> int:
    found = _TABLE.fullmatch(table)
    return int(found[1]) if found is not None else 0


def _named_tables(folder: str) -> frozenset[int] | None:
    """Return the numbers of the tables that the folder's MANIFEST names, or None if its bound does not prove it whole.

    In that case every table is linked, because the check before the opening and a repair need every table.
    """
    try:
        number, path = manifest_of(folder)
        bound = read_bound(folder)
        with open(path, "rb") as file:
            manifest = read_manifest(file.read(), None)
    except (OSError, ValueError, DamagedData):
        return None
    if bound is None or bound.manifest != number or manifest.end < bound.length:
        return None
    return frozenset(manifest.tables)


def remove_older(root: str, encoded: str, generation: int) -> None:
    """Remove what the region's ``generation``, which is complete, has replaced.  Raises HostError."""
    try:
        for entry in entries_of_region(root, encoded):
            is_older = entry.generation < generation
            if is_older or (entry.generation == generation and entry.is_source):
                remove_tree(os.path.join(root, entry.name), missing_ok=True)
    except OSError as error:
        raise refused(error, f"cannot remove older folders of region {encoded}") from error


def remove_halves(root: str, encoded: str) -> None:
    """Remove what takeovers of the region, which no table has any more, have left.  Raises HostError."""
    try:
        for entry in entries_of_region(root, encoded):
            if not entry.is_complete and entry.generation:
                remove_tree(os.path.join(root, entry.name), missing_ok=True)
    except OSError as error:
        raise refused(error, f"cannot remove folders of region {encoded}") from error


def end_generations(root: str, dispose: Callable[[str], object] = remove_tree) -> list[str]:
    """Rename the newest folder of each region to the name without a generation; ``dispose`` gets the paths of others.

    Returns the encoded names of the regions that had generations, ascending.  Call this only while no node serves the
    folder.  A death at any point leaves a state from which the next call comes to the same end.  Blocks.  Raises
    HostError.
    """
    try:
        regions = entries_by_region(os.listdir(root))
        found = [encoded for encoded, entries in sorted(regions.items()) if any(one.generation for one in entries)]
        for encoded in found:
            _end_generations_of(root, encoded, regions[encoded], dispose)
        if found:
            sync_folder(root)
    except OSError as error:
        raise refused(error, f"cannot rename the folders under {root}") from error
    return found


def _end_generations_of(root: str, encoded: str, entries: list[Entry], dispose: Callable[[str], object]) -> None:
    newest = newest_of(entries)
    for entry in entries:
        if entry != newest:
            dispose(os.path.join(root, entry.name))
    if newest is not None and newest.name != encoded:
        rename_durably(os.path.join(root, newest.name), os.path.join(root, encoded))
