"""The bytes of docs/formats/leases.md."""

from __future__ import annotations

import pytest

from columnar.errors import DamagedData
from columnar.model.lease import Lease, pack, unpack
from tests.support.golden import hold_to

LEASES = {
    "held": Lease(2, b"a", 10_000, 0),
    "renewed": Lease(1 << 40, b"host-17\xff", 3_600_000, 1 << 33),
    "free": Lease(7, b"", 0, 3),
}


def test_lease_bytes() -> None:
    hold_to("leases.txt", {name: pack(lease) for name, lease in LEASES.items()})
    assert {name: unpack(pack(lease)) for name, lease in LEASES.items()} == LEASES


@pytest.mark.parametrize("data", [b"", b"\x01", b"\x02" + bytes(24), bytes(25), b"\x01" + bytes(23)])
def test_what_is_no_state_of_this_version_is_refused(data: bytes) -> None:
    with pytest.raises(DamagedData, match="is none of this version"):
        unpack(data)
