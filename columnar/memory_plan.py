"""(pure) How a store's memory is split: among its processes, and in each server among what it keeps.

    a store's memory := one share, or of a node NODE_BYTES and a share for each of its servers
    a server's share := PROCESS_BYTES, WORKER_BYTES if it runs triggers, and the parts of ``SPLIT``

Each part but the last gets its percentage of the share, at least ``least`` and at most ``most``; the block cache gets
the rest.  So a small store keeps room for requests of a useful size, and a large store gives nearly all to its caches.
A bound of a buffer is not a reservation: memory is used when something is kept in it.

Without an order of the operator (``--memory``) a store has the bounds of ``ordinary`` on every machine, and its caches
get more if a quarter of what the machine, or its control group, grants is more.  Its write buffers do not: what they
have is read again after a crash.

Knows nothing of the processes and of what keeps the parts.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Final

from columnar.errors import HostError
from columnar.limits import (
    CELL_BYTES,
    GATHERED_BYTES,
    KIB,
    LOG_TAILS_BYTES,
    MESSAGE_BYTES,
    MIB,
    OPEN_REGIONS,
    PEER_REPLY_BYTES,
    PEER_SERVING_BYTES,
    SCANNERS_BYTES,
    SERVER_INPUT_BYTES,
    SERVER_OUTPUT_BYTES,
)

GIB: Final = 1024 * MIB
PROCESS_BYTES: Final = 64 * MIB  # interpreter, modules, an allocator's waste: 53 MB idle
WORKER_BYTES: Final = 64 * MIB  # of a trigger worker: the interpreter and the user's modules, if they are small
NODE_BYTES: Final = 128 * MIB  # of the process above several servers, with the catalogue while it leads, and the spare
REGION_BYTES: Final = 512 * KIB  # of an open region, beside its cells
QUARTER: Final = 4  # the part of the machine that a store takes without an order
CACHE_BYTES: Final = 64 * MIB  # of a block cache that nobody has sized
IN_MEMORY_CACHE_BYTES: Final = 32 * MIB  # additional, for families with IN_MEMORY
WRITE_BUFFERS_BYTES: Final = 64 * MIB  # of all regions together; beyond it the fullest buffer is flushed
SHARE_BYTES: Final = 32 * MIB  # the least of each of the three for one of several servers


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """The bounds of one server, in bytes."""

    block_cache: int  # blocks of files, uncompressed
    in_memory_cache: int  # blocks of families with IN_MEMORY, which reads of others do not evict
    write_buffers: int  # writes that no file has yet
    requests: int  # of all connections: half received, waiting or being served
    replies: int  # unsent replies of all connections
    gathered: int  # replies whose making takes several loop iterations
    scanners: int  # columns and filters of open scanners
    changes: int  # the last changes of followed regions, and changes that followers have read and not delivered
    peer_calls: int  # calls of other servers under way
    peer_replies: int  # replies to other servers that are being made
    regions: int  # what open regions cost beside their cells

    @property
    def open_regions(self) -> int:
        return max(1, min(OPEN_REGIONS, self.regions // REGION_BYTES))

    @property
    def message_bytes(self) -> int:
        """The largest request: decoded and on its way into the engine it takes some six times as much."""
        return min(MESSAGE_BYTES, max(LEAST_MESSAGE_BYTES, self.requests // 4))

    @property
    def tails_bytes(self) -> int:
        return self.changes // 2

    @property
    def at_hand_bytes(self) -> int:
        return self.changes // 2

    @property
    def bounds(self) -> dict[str, int]:
        """The bound of each part by name."""
        return {one.name: getattr(self, one.name) for one in fields(self)}


@dataclass(frozen=True, slots=True)
class MemoryPart:
    """A part of the plan, and its use."""

    name: str
    used_bytes: int
    limit_bytes: int


@dataclass(frozen=True, slots=True)
class Part:
    percent: float
    least: int
    most: int

    def bound_of(self, share: int) -> int:
        return max(self.least, min(self.most, int(share * self.percent / 100)))


LEAST_CACHE_BYTES: Final = 16 * MIB
LEAST_MESSAGE_BYTES: Final = CELL_BYTES + 2 * MIB  # a put of the largest cell
SPLIT: Final = {  # by field of MemoryPlan; the block cache has the rest
    "in_memory_cache": Part(6, 8 * MIB, 64 * GIB),
    "write_buffers": Part(12, 24 * MIB, 256 * MIB),  # they are read again after a crash
    "requests": Part(24, 24 * MIB, SERVER_INPUT_BYTES),  # 64 writers of 800 KB each fit into 512 MiB
    "replies": Part(12, 24 * MIB, SERVER_OUTPUT_BYTES),
    "gathered": Part(6, 12 * MIB, GATHERED_BYTES),
    "scanners": Part(3, 8 * MIB, SCANNERS_BYTES),
    "changes": Part(4, 8 * MIB, GIB),
    "regions": Part(10, 16 * MIB, OPEN_REGIONS * REGION_BYTES),
}
CACHES: Final = ("block_cache", "in_memory_cache", "changes")  # which lose nothing when a process ends
ALONE: Final = 0  # in the place of a number of servers: one process, which is no node and has no peers
PEERS: Final = {  # of a server of a node, in addition
    "peer_calls": Part(8, 24 * MIB, PEER_SERVING_BYTES),
    "peer_replies": Part(4, 12 * MIB, PEER_REPLY_BYTES),
}


def ordinary(servers: int = ALONE) -> MemoryPlan:
    """Return the bounds of one of a node's ``servers`` servers, in a store whose memory nobody has planned."""

    def shared(whole: int) -> int:
        return whole if servers <= 1 else max(SHARE_BYTES, whole // servers)

    return MemoryPlan(
        block_cache=shared(CACHE_BYTES),
        in_memory_cache=shared(IN_MEMORY_CACHE_BYTES),
        write_buffers=shared(WRITE_BUFFERS_BYTES),
        requests=SERVER_INPUT_BYTES,
        replies=SERVER_OUTPUT_BYTES,
        gathered=GATHERED_BYTES,
        scanners=SCANNERS_BYTES,
        changes=2 * LOG_TAILS_BYTES,
        peer_calls=PEER_SERVING_BYTES,
        peer_replies=PEER_REPLY_BYTES,
        regions=OPEN_REGIONS * REGION_BYTES,
    )


# The bounds of a process that has the catalogue alone, whose rows are few: the node's memory is for its servers.
CATALOGUE: Final = replace(
    ordinary(), block_cache=16 * MIB, in_memory_cache=8 * MIB, write_buffers=16 * MIB
)  # fmt: skip


def planned(
    memory_bytes: int, servers: int = ALONE, *, has_triggers: bool = False, is_ordered: bool = True
) -> MemoryPlan:
    """Return the bounds of each server of a node, or of a process ALONE, with ``memory_bytes``; 0: that is not known.

    ``is_ordered``: an operator gave the number; else only the caches may be larger than in ``ordinary``.  Raises
    HostError if an ordered number is too small.
    """
    least = least_bytes(servers, has_triggers=has_triggers)
    if not is_ordered:
        usual = ordinary(servers)
        return usual if memory_bytes < least else _with_caches(usual, _split(memory_bytes, servers, has_triggers))
    if memory_bytes < least:
        of = "one process" if servers == ALONE else f"a node with {servers} servers"
        trigger = " with triggers" if has_triggers else ""
        raise HostError(
            f"--memory {readable_bytes(memory_bytes)} is too little for {of}{trigger}: at least "
            f"{readable_bytes(least)} are needed"
        )
    return _split(memory_bytes, servers, has_triggers)


def least_bytes(servers: int = ALONE, *, has_triggers: bool = False) -> int:
    """Return the least memory with which a store can be planned, in whole MiB."""
    share = MIB
    while _rest(share, servers) < LEAST_CACHE_BYTES:
        share += MIB
    return (share + _fixed(has_triggers)) * max(1, servers) + _of_node(servers)


def _of_node(servers: int) -> int:
    return 0 if servers == ALONE else NODE_BYTES


def _fixed(has_triggers: bool) -> int:
    return PROCESS_BYTES + (WORKER_BYTES if has_triggers else 0)


def _parts(share: int, servers: int) -> dict[str, int]:
    wanted = {**SPLIT, **({} if servers == ALONE else PEERS)}
    return {name: part.bound_of(share) for name, part in wanted.items()}


def _rest(share: int, servers: int) -> int:
    return share - sum(_parts(share, servers).values())


def _split(memory_bytes: int, servers: int, has_triggers: bool) -> MemoryPlan:
    share = (memory_bytes - _of_node(servers)) // max(1, servers) - _fixed(has_triggers)
    parts = {"peer_calls": 0, "peer_replies": 0, **_parts(share, servers)}
    return MemoryPlan(block_cache=_rest(share, servers), **parts)


def _with_caches(usual: MemoryPlan, larger: MemoryPlan) -> MemoryPlan:
    return replace(usual, **{name: max(usual.bounds[name], larger.bounds[name]) for name in CACHES})


_UNITS: Final = {
    "": 1,
    "b": 1,
    "k": KIB,
    "m": MIB,
    "g": GIB,
    "t": 1024 * GIB,
    "kib": KIB,
    "mib": MIB,
    "gib": GIB,
    "tib": 1024 * GIB,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
}


def parse_bytes(text: str) -> int:
    """Return the number of bytes that a text such as ``2GiB``, ``512 MiB``, ``1.5g`` or ``1000000`` names.

    Raises ValueError, with a text that says what to write.
    """
    said = text.strip().lower().replace("_", "")
    number = said.rstrip("abcdefghijklmnopqrstuvwxyz ")
    unit = _UNITS.get(said[len(number) :].strip())
    try:
        count = float(number)
    except ValueError:
        count = -1.0
    if unit is None or not 1 <= count * unit < 1 << 60:
        raise ValueError(f"{text!r} is no amount of memory; write for example 512MiB or 2GiB")
    return int(count * unit)


def readable_bytes(size: int) -> str:
    """Return the size in the largest unit of which there is a whole one, with at most one digit behind the point."""
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if size >= unit:
            return f"{size / unit:.1f}".removesuffix(".0") + name
    return f"{size} bytes"
