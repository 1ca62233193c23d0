"""(pure) The first frame of each side of a link: who speaks, and for which cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from columnar.cluster.value_codec import Codec, codec_of
from columnar.model.owner import Incarnation

# 1  the first; frames and messages as in docs/formats/peers.md
PROTOCOL_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Hello:
    cluster: str  # the cluster's id
    server: Incarnation
    version: int = PROTOCOL_VERSION  # of the protocol; both sides use the lower of their versions
    leader_epoch: int = 0  # of the master that speaks; 0: a server speaks


HELLO: Final[Codec[Hello]] = codec_of(Hello)


def obstacle(hello: Hello, cluster: str, leader_epoch: int) -> str | None:
    """Return why a link with this peer must be closed, or None if it is good.

    ``leader_epoch``: the highest epoch known.  A master with a lower epoch has been replaced, and may not know that.
    """
    if hello.cluster != cluster:
        return f"{hello.server} is of cluster {hello.cluster}, not of {cluster}"
    if hello.version < 1:
        return f"{hello.server} speaks version {hello.version} of the protocol; there is none below 1"
    if 0 < hello.leader_epoch < leader_epoch:
        return f"master {hello.server} leads at epoch {hello.leader_epoch}, and {leader_epoch} has begun"
    return None
