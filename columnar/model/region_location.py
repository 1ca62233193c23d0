"""(pure) The owner of a region with its address, for clients that call owners directly.

    Location   a region's range of rows and its owner, an element of the answer to ``columnarRegionOwners``
    NewOwner   the owner that a refusal names

A refusal has HBase's words, so that other clients can read it:

    RegionMovedException: Region moved to: hostname=H port=P startCode=S. As of locationSeqNum=E.

S is the number of the owner's incarnation, E the epoch at which it owns the region.

Knows nothing of routes and connections.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_NEW_OWNER: Final = re.compile(
    r"RegionMovedException: Region moved to: hostname=(\S+) port=(\d+) startCode=(\d+)\. As of locationSeqNum=(\d+)\."
)


@dataclass(frozen=True, slots=True)
class Location:
    start: bytes
    end: bytes  # exclusive; empty: no upper bound
    server: str  # its name; empty: the server that answers, which is alone
    incarnation: int
    host: str
    port: int
    epoch: int

    @property
    def address(self) -> tuple[str, int]:
        return self.host, self.port


@dataclass(frozen=True, slots=True)
class NewOwner:
    host: str
    port: int
    incarnation: int
    epoch: int

    @property
    def text(self) -> str:
        """The refusal without the name of its class."""
        return (
            f"Region moved to: hostname={self.host} port={self.port} startCode={self.incarnation}. "
            f"As of locationSeqNum={self.epoch}."
        )


def new_owner_of(message: str) -> NewOwner | None:
    """Return the owner that the message of an error names, or None if the error is no such refusal."""
    found = _NEW_OWNER.search(message)
    return NewOwner(found[1], int(found[2]), int(found[3]), int(found[4])) if found is not None else None
