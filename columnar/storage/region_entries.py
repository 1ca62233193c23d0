"""The names of the entries of ``DATA/regions``: a region, a generation of its folder, and what the entry is.

    ENCODED                    the region's folder, generation 0
    ENCODED.G                  the region's folder, generation G > 0 (``region_takeover``)
    ENCODED.G.from             the folder from which generation G is made
    ENCODED.G.E.new            generation G, which the owner at epoch E is making
    ENCODED.new, ENCODED.tmp   a copy that is being made (``file_copies``)
    NAME.deleted               an entry that is being removed

A region's encoded name has no dot.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from columnar.storage.durable_files import HALF

DELETED: Final = ".deleted"
SOURCE: Final = ".from"
_NAME: Final = re.compile(r"([^.]+)(?:\.(\d+))?(?:\.(\d+))?((?:\.(?:deleted|new|tmp|from))*)", re.ASCII)


class Entry(NamedTuple):
    name: str
    encoded: str  # the region, or ``meta``
    generation: int = 0
    epoch: int = 0  # of the owner that makes the generation
    ends: str = ""  # "" if the entry is a complete folder that an owner may open

    @property
    def is_complete(self) -> bool:
        return not self.ends

    @property
    def is_source(self) -> bool:
        return self.ends == SOURCE


def entry_of(name: str) -> Entry:
    """Parse the name of an entry.  A name of no known form is that of a region's folder."""
    found = _NAME.fullmatch(name)
    if found is None:
        return Entry(name, name)
    encoded, generation, epoch, ends = found.groups()
    if epoch and not ends:
        return Entry(name, name)
    return Entry(name, encoded, int(generation or 0), int(epoch or 0), ends)


def folder_name(encoded: str, generation: int) -> str:
    return f"{encoded}.{generation}" if generation else encoded


def source_name(encoded: str, generation: int) -> str:
    return f"{encoded}.{generation}{SOURCE}"


def half_name(encoded: str, generation: int, epoch: int) -> str:
    return f"{encoded}.{generation}.{epoch}{HALF}"


def source_for(entries: Iterable[Entry], generation: int) -> Entry | None:
    """Return the folder from which ``generation`` of a region is made, out of the region's entries; None if none is.

    The highest generation counts, and a complete folder before the source from which it was made.  A source without
    its complete folder is newer than every complete folder of a lower generation: an earlier owner that still runs can
    make such a folder anew, by the name that it knows.
    """
    found = [one for one in entries if _is_usable(one, generation)]
    return max(found, key=lambda one: (one.generation, one.is_complete), default=None)


def newest_of(entries: Iterable[Entry]) -> Entry | None:
    """Return the entry that has the region's newest content, out of the region's entries; None if none has any."""
    found = list(entries)
    return source_for(found, max((entry.generation for entry in found), default=0) + 1)


def _is_usable(entry: Entry, generation: int) -> bool:
    if entry.is_source:
        return entry.generation <= generation
    return entry.is_complete and entry.generation < generation


def entries_by_region(names: Iterable[str]) -> dict[str, list[Entry]]:
    """Return the entries of ``regions``, by region, out of their names."""
    found: dict[str, list[Entry]] = {}
    for entry in map(entry_of, names):
        found.setdefault(entry.encoded, []).append(entry)
    return found
