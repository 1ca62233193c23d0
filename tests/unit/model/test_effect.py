"""What authors yield: checked where it is made, so that the traceback names their line."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest

from columnar.model.effect import CHECKPOINT_BYTES, Checkpoint, Contribute, Delete, Put, Tally


def test_an_effect_travels_as_it_is() -> None:
    effects = [Put("t", b"r", {b"f:a": b"1"}), Delete(b"t", b"r", [b"f:a", b"f"]), Delete("t", b"r"), Checkpoint(b"s")]
    assert msgpack.unpackb(msgpack.packb(effects), strict_map_key=False) == [
        [1, b"t", b"r", {b"f:a": b"1"}],
        [2, b"t", b"r", [b"f:a", b"f"]],
        [2, b"t", b"r", None],
        [3, b"s", 0],
    ]
    assert [effect.size_bytes for effect in effects] == [1 + 3 + 1, 1 + 3 + 1, 1, 1]


def test_what_is_given_to_totals_travels_as_it_is() -> None:
    effects = [
        Contribute("t", b"r", {b"n:a": 1}),
        Contribute("t", b"r", None, members="mm", source=b"s"),
        Contribute("t", b"r", {b"n:": -1}, {b"c:d": b"v"}, order=b"", ordered=b"oo"),
        Tally("t", b"r", {b"n:a": 1 << 40}),
    ]
    assert msgpack.unpackb(msgpack.packb(effects), strict_map_key=False) == [
        [4, b"t", b"r", {b"n:a": 1}, b"m", None, {}, None, b"o", 0],
        [4, b"t", b"r", None, b"mm", b"s", {}, None, b"o", 0],
        [4, b"t", b"r", {b"n:": -1}, b"m", None, {b"c:d": b"v"}, b"", b"oo", 0],
        [5, b"t", b"r", {b"n:a": 1 << 40}, b"m", None, {}, None, b"", 0],
    ]
    assert [effect.size_bytes for effect in effects] == [1 + 3 + 8, 1 + 1, 1 + 2 + 8 + 3 + 1, 1 + 3 + 8]


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
        (lambda: Tally("t", b"r", {}), ValueError, "at least one total"),
        (lambda: Tally("t", b"r", {b"edits": 1}), ValueError, "a total is a column"),
        (lambda: Tally("t", b"r", {"n:edits": 1}), ValueError, "a total is a column"),
        (lambda: Tally("t", b"r", {b"n:edits": True}), TypeError, "whole number"),
        (lambda: Tally("t", b"r", {b"n:edits": 1.5}), TypeError, "whole number"),
        (lambda: Tally("t", b"r", {b"n:edits": 1 << 63}), ValueError, "64 bits"),
        (lambda: Tally("t", b"r", {b"n:edits": 1}, members="m:"), ValueError, "without a colon"),
        (lambda: Tally("t", b"r", {b"n:edits": 1}, source=b""), ValueError, "a source is bytes"),
        (lambda: Contribute("t", b"r", {}), ValueError, "None, in a Contribute"),
        (lambda: Contribute("t", b"r", {b"n:a": 1}, {b"c:d": "x"}), TypeError, "carries bytes"),
        (lambda: Contribute("t", b"r", None, {b"c:d": b"x"}), ValueError, "carries nothing"),
        (lambda: Contribute("t", b"r", {b"n:a": 1}, order="5"), TypeError, "order of a Contribute"),
        (lambda: Checkpoint("s"), TypeError, "is bytes, not str"),
        (lambda: Checkpoint(bytes(CHECKPOINT_BYTES + 1)), ValueError, "the bound is 4096"),
    ],
)
def test_what_is_wrong_is_said(make: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        make()
