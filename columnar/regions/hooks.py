"""Where consumers of changes plug in: regions imports neither triggers nor streams.

A table with a consumer has a ``LogPolicy``: it says which families go into the change log, and
of which the cells before a change are kept too.  After each fsync of a region with a log the
server calls ``ChangeListener.changes_durable``; a listener reads the log from its own cursor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from columnar.regions.region import Region


@dataclass(frozen=True, slots=True)
class LogPolicy:
    families: frozenset[bytes]
    before: frozenset[bytes]  # a subset: whose previous cells are recorded


class ChangeListener(Protocol):
    def region_opened(self, region: Region) -> None:
        """A region with a log is open; what it logged before is still there to be read."""

    def changes_durable(self, region: Region) -> None:
        """More of the region's log is on disk.  Must return at once."""

    def may_close(self, region: Region) -> bool:
        """Nobody has anything left to read in the region's log: it may be closed when it is little used."""

    def region_closing(self, region: Region) -> None:
        """After this call nothing may touch the region."""


class NoListener:
    def region_opened(self, region: Region) -> None:
        pass

    def changes_durable(self, region: Region) -> None:
        pass

    def may_close(self, region: Region) -> bool:
        return True

    def region_closing(self, region: Region) -> None:
        pass
