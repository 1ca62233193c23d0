"""Golden bytes of the bounds: ``SYNCED`` of a region and of the server's log."""

from __future__ import annotations

from pathlib import Path

from columnar.storage import segment_bounds, synced_bound
from columnar.storage.synced_bound import Bound

GOLDEN = Path(__file__).parent / "synced.txt"
BOUND = Bound(write_number=9, sequence=500, manifest=12, length=982, opened=564, dropped=43)
CASES = {
    "region": synced_bound.slot_of(BOUND),
    "segment": segment_bounds.slot_of(7, 65_536),
    "removed": segment_bounds.removed_slot_of(7),
}


def test_bounds_are_written_as_ever() -> None:
    golden = dict(line.split() for line in GOLDEN.read_text().splitlines())
    assert {name: data.hex() for name, data in CASES.items()} == golden


def test_bounds_are_read_as_ever() -> None:
    golden = {name: bytes.fromhex(data) for name, data in (line.split() for line in GOLDEN.read_text().splitlines())}
    older = synced_bound.slot_of(Bound(write_number=8, sequence=499))
    assert synced_bound.bound_in(golden["region"] + older) == BOUND
    assert synced_bound.bound_in(older + golden["region"]) == BOUND
    assert segment_bounds.lengths_in(golden["segment"] * 2 + bytes(64)) == {7: 65_536}
