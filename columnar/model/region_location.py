"""(pure) The owner of a region with its address, for clients that call owners directly.

    Location   a region's range of rows and its owner, an element of the answer to ``columnarRegionOwners``
    NewOwner   the owner that a refusal names

A refusal has HBase's words, so that other clients can read it:

    RegionMovedException: Region moved to: hostname=H port=P startCode=S. As of locationSeqNum=E.

S is the number of the owner's incarnation, E the epoch at which it owns the region.

Knows nothing of routes and connections.
"""

from __future__ import annotations

from dataclasses import dataclass


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
