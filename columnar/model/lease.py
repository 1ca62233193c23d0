"""(pure) A lease as its row in ``columnar:leases`` has it: the last token, and to whom it was given.

    row    := the lease's name; it stays for ever, because tokens only rise
    column := lease:state
    state  := version:u8 (1)  token:u64  renewal:u64  ttl_ms:u64  holder:byte[]        big-endian

A free lease has no holder.  ``renewal`` counts the writes of one token, so no two states of a lease are equal.  No time
is stored: clocks of two servers are never compared (``leases.lease_state``).

    01 0000000000000002 0000000000000000 0000000000002710 61      token 2, given to "a" for 10,000 ms
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import Final

from columnar.errors import DamagedData

LEASES_TABLE: Final = "columnar:leases"
LEASE_FAMILY: Final = "lease"
STATE_QUALIFIER: Final = b"state"
STATE_COLUMN: Final = b"lease:state"
TOKEN_BYTES: Final = 8  # of a token in a cell, big-endian

_HEAD: Final = Struct(">BQQQ")
_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Lease:
    token: int = 0  # of the last holder; 0: the lease was never given
    holder: bytes = b""  # empty: free
    ttl_ms: int = 0
    renewal: int = 0


UNKNOWN: Final = Lease()


def pack(lease: Lease) -> bytes:
    return _HEAD.pack(_VERSION, lease.token, lease.renewal, lease.ttl_ms) + lease.holder


def unpack(data: bytes) -> Lease:
    """Decode a state.  Raises DamagedData."""
    if len(data) < _HEAD.size or data[0] != _VERSION:
        raise DamagedData(f"a cell {STATE_COLUMN.decode()} of {LEASES_TABLE} is none of this version")
    _, token, renewal, ttl_ms = _HEAD.unpack_from(data)
    return Lease(token, data[_HEAD.size :], ttl_ms, renewal)
