"""Figures of the operating system (bytes of closed regions, memory of the process), never read on the loop."""

from __future__ import annotations

import os
from collections.abc import Iterator

from columnar.model.measures import GAUGE, Family, single
from columnar.storage.durable_files import size_of
from columnar.storage.watched_folder import Room, room_of
from columnar.webui.status import TableLine


def sizes_of(table: TableLine) -> list[int]:
    """Return the bytes of each region.  Takes some 50 microseconds for each closed region."""
    return [region.size_bytes if region.is_open else size_of(region.folder) for region in table.regions]


def of_disk(data_folder: str) -> Iterator[Family]:
    """Yield the families of the data folder's disk; none while the system does not report its free space."""
    try:
        room = room_of(data_folder)
    except OSError:
        return
    yield from of_room(room)


def of_room(room: Room | None) -> Iterator[Family]:
    """Yield the families of the data folder's disk as last probed; none if its free space is unknown."""
    if room is not None:
        text = "Of the data folder's disk, for the store's user."
        yield single("columnar_disk_free_bytes", GAUGE, text, room.free_bytes)
        yield single("columnar_disk_bytes", GAUGE, "Size of the data folder's disk.", room.size_bytes)


def memory_bytes() -> int:
    """Return the resident memory of this process; 0 if the system does not report it."""
    try:
        with open("/proc/self/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # not on Linux
        return 0
