"""What authors yield: checked where it is made, so that the traceback names their line."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest

from columnar.model.effect import CHECKPOINT_BYTES, Checkpoint, Delete, Put


def test_an_effect_travels_as_it_is() -> None:
    effects = [Put("t", b"r", {b"f:a": b"1"}), Delete(b"t", b"r", [b"f:a", b"f"]), Delete("t", b"r"), Checkpoint(b"s")]
    assert msgpack.unpackb(msgpack.packb(effects), strict_map_key=False) == [
        [1, b"t", b"r", {b"f:a": b"1"}],
        [2, b"t", b"r", [b"f:a", b"f"]],
        [2, b"t", b"r", None],
        [3, b"s"],
    ]
    assert [effect.size_bytes for effect in effects] == [1 + 3 + 1, 1 + 3 + 1, 1, 1]


def test_cells_are_those_of_the_moment() -> None:
    cells = {b"f:a": b"1"}
    effect = Put("t", b"r", cells)
    cells[b"f:a"] = b"2"
    assert effect[3] == {b"f:a": b"1"}


@pytest.mark.parametrize(
    ("make", "error", "said"),
    [
        (lambda: Put("t", b"r", {}), ValueError, "yield none"),
        (lambda: Put("t", b"r", {"f:a": b"1"}), TypeError, "bytes, not 'f:a'"),
        (lambda: Put("t", b"r", {b"f:a": 1}), TypeError, "bytes, not b'f:a': 1"),
        (lambda: Put("t", "r", {b"f:a": b"1"}), TypeError, "a row key is bytes"),
        (lambda: Put("t", b"", {b"f:a": b"1"}), ValueError, "not empty"),
        (lambda: Put(5, b"r", {b"f:a": b"1"}), TypeError, "named by text or bytes"),
        (lambda: Delete("t", b"r", []), ValueError, "removes the row"),
        (lambda: Delete("t", b"r", b"f:a"), TypeError, "a list of bytes"),
        (lambda: Delete("t", b"r", ["f:a"]), TypeError, "are bytes"),
        (lambda: Checkpoint("s"), TypeError, "is bytes, not str"),
        (lambda: Checkpoint(bytes(CHECKPOINT_BYTES + 1)), ValueError, "the bound is 4096"),
    ],
)
def test_what_is_wrong_is_said(make: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        make()
