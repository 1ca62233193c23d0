"""The bytes of docs/formats/cells.md."""

from __future__ import annotations

import pytest

from columnar.storage import layout
from tests.support.golden import hold_to


def test_cell_keys() -> None:
    rows = {"plain": b"row", "zero": b"a\x00", "zeros": b"\x00\x00", "one": b"a\x01", "high": b"\xff"}
    qualifiers = {"plain": b"q", "empty": b"", "zero": b"\x00q"}
    hold_to(
        "cell-keys.txt",
        {f"{r}/{q}": layout.cell_key(row, qualifier) for r, row in rows.items() for q, qualifier in qualifiers.items()},
    )
    for row in rows.values():
        for qualifier in qualifiers.values():
            assert layout.split_cell_key(layout.cell_key(row, qualifier)) == (row, qualifier)


def test_version_keys() -> None:
    key = layout.cell_key(b"a\x00", b"q")
    stamps = (0, 1, 1_700_000_000_000, layout.TIMESTAMP_MAX)
    hold_to("version-keys.txt", {f"family 3 at {at}": layout.version_key(3, key, at) for at in stamps})
    assert [layout.split_version_key(layout.version_key(3, key, at)) for at in stamps] == [(key, at) for at in stamps]


def test_values() -> None:
    sequence = (2 << 40) | 7
    hold_to(
        "values.txt",
        {
            "a cell": layout.pack_cell(5, 7, b"v"),
            "an empty cell": layout.pack_cell(0, 1, b""),
            "a cell of epoch 2": layout.pack_cell(1_700_000_000_000, sequence, b"\x00\xff"),
            "a cell with 60 s to live": layout.pack_cell(5, sequence, b"v", 60_000),
            "a delete marker made at 1000": layout.pack_marker(5, sequence, 1_000),
        },
    )


@pytest.mark.parametrize("data", [b"", b"\x00" * 30, b"\x01\x00", b"\x04" + bytes(40)])
def test_what_is_no_value_of_ours_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="no format of ours"):
        layout.unpack(data)
