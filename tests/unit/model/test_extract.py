"""Keys of groups: what each extractor makes of a row, what it refuses, and what the refusal says."""

from __future__ import annotations

import tracemalloc

import pytest

from columnar.errors import IllegalArgument
from columnar.limits import MIB, ROW_KEY_BYTES
from columnar.model.column_text import bytes_of, column_of, column_text
from columnar.model.extract import GROUPS_OF_A_ROW, KEYS_BYTES, PIECES_OF_A_CELL, extractor_of, families_read, keys_of
from columnar.model.number_cells import Unreadable

ROW = b"alice/2026/t1"
IMAGE = {
    b"f:author": b"ann",
    b"f:tags": b"b,a,,b",
    b"f:empty": b"",
    b"f:at": b"1764000000000",
    b"f:count": (1_764_000_000_000).to_bytes(8, "big"),
    b"g:x": b"1",
    b"g:y:z": b"2",
    b"f:": b"no qualifier",
    b"ff:w": b"another family",
}


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("f:author", [b"ann"]),
        ("f:", [b"no qualifier"]),
        ("f:missing", []),
        ("row", [ROW]),
        ("row[0:5]", [b"alice"]),
        ("row[6:]", [b"2026/t1"]),
        ("row[-2:]", [b"t1"]),
        ("row[:99]", [ROW]),
        ("row.split('/', 0)", [b"alice"]),
        ("row.split('/',2)", [b"t1"]),
        ('row.split("/", -1)', [b"t1"]),
        (r"row.split('\x2F', 1)", [b"2026"]),
        ("each g:", [b"x", b"y:z"]),
        ("each h:", []),
        ("each f:tags split ','", [b"a", b"b"]),
        ("each f:missing split ','", []),
        ("each f:empty split ','", []),
        ("hour(f:at)", [b"2025-11-24T16"]),
        ("day( f:at )", [b"2025-11-24"]),
        ("day(f:count)", [b"2025-11-24"]),
        ("day(f:missing)", []),
        ("  f:author ", [b"ann"]),
    ],
)
def test_keys_of_a_row(text: str, keys: list[bytes]) -> None:
    assert keys_of((extractor_of(text),), ROW, IMAGE) == keys


@pytest.mark.parametrize(
    "text",
    ["f:empty", "row[20:]", "row.split('/', 3)", "row.split('/', -4)", "row.split('alice', 0)", "hour(f:author)"],
)
def test_a_key_that_cannot_be_read(text: str) -> None:
    with pytest.raises(Unreadable):
        keys_of((extractor_of(text),), ROW, IMAGE)


@pytest.mark.parametrize("time_ms", [b"-99999999999999999", b"9999999999999999", b"1" * 30])
def test_a_time_beyond_the_calendar(time_ms: bytes) -> None:
    with pytest.raises(Unreadable):
        keys_of((extractor_of("day(f:t)"),), b"r", {b"f:t": time_ms})


def test_an_early_year_has_four_digits() -> None:
    assert keys_of((extractor_of("day(f:t)"),), b"r", {b"f:t": b"-50000000000000"}) == [b"0385-07-25"]


def test_several_extractors_make_the_product_of_their_parts() -> None:
    key = (extractor_of("each f:tags split ','"), extractor_of("f:author"))
    assert keys_of(key, ROW, IMAGE) == [b"a\0\1ann", b"b\0\1ann"]
    assert keys_of((extractor_of("f:author"), extractor_of("f:missing")), ROW, IMAGE) == []


def test_a_row_of_too_many_groups_has_none() -> None:
    image = {b"f:%d" % number: b"" for number in range(101)}
    key = (extractor_of("each f:"), extractor_of("each f:"))
    assert GROUPS_OF_A_ROW < 101 * 101
    with pytest.raises(Unreadable, match="groups"):
        keys_of(key, ROW, image)


def test_a_key_is_no_longer_than_a_row_key_may_be() -> None:
    key = (extractor_of("f:v"),)
    assert keys_of(key, b"r", {b"f:v": b"x" * ROW_KEY_BYTES})
    with pytest.raises(Unreadable, match="32767"):
        keys_of(key, b"r", {b"f:v": b"x" * (ROW_KEY_BYTES + 1)})


def test_keys_that_are_too_long_are_not_made_first() -> None:
    """A value of a megabyte and a hundred tags would be a hundred megabytes, of ten thousand tags ten gigabytes."""
    key = (extractor_of("each f:tags split ','"), extractor_of("f:author"))
    image = {b"f:tags": b",".join(b"%d" % number for number in range(64)), b"f:author": bytes(MIB)}
    tracemalloc.start()
    try:
        with pytest.raises(Unreadable, match="32767"):
            keys_of(key, b"r", image)
        assert tracemalloc.get_traced_memory()[1] < 8 * MIB
    finally:
        tracemalloc.stop()


def test_keys_of_a_row_are_bounded_together() -> None:
    key = (extractor_of("each f:tags split ','"), extractor_of("f:author"))
    tags, author = b",".join(b"%d" % number for number in range(1_000)), bytes(5_000)
    assert len(keys_of(key, b"r", {b"f:tags": tags[:1_000], b"f:author": author})) > 200
    with pytest.raises(Unreadable, match=f"keys of more than {KEYS_BYTES} bytes"):
        keys_of(key, b"r", {b"f:tags": tags, b"f:author": author * 3})


def test_pieces_of_a_cell_are_bounded() -> None:
    key = (extractor_of("each f:tags split ','"),)
    assert keys_of(key, b"r", {b"f:tags": b"a," * (PIECES_OF_A_CELL - 1) + b"b"}) == [b"a", b"b"]
    with pytest.raises(Unreadable, match="more than 100000 pieces"):
        keys_of(key, b"r", {b"f:tags": b"a," * PIECES_OF_A_CELL + b"b"})


def test_parts_of_the_key_of_another_view() -> None:
    assert keys_of((extractor_of("key[1]", 2),), b"a\0\xff\0\1b", {}) == [b"b"]
    assert keys_of((extractor_of("key[0]", 2),), b"a\0\xff\0\1b", {}) == [b"a\0"]
    assert keys_of((extractor_of("key[0]", 1),), b"a\0\1b", {}) == [b"a\0\1b"]
    with pytest.raises(Unreadable, match="2 parts"):
        keys_of((extractor_of("key[0]", 2),), b"a", {})
    with pytest.raises(Unreadable, match="empty"):
        keys_of((extractor_of("key[0]", 2),), b"\0\1b", {})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "write family:qualifier"),
        ("author", "write family:qualifier"),
        ("row[3]", "row\\[0:8\\]"),
        ("row.split(/, 0)", "row.split"),
        ("row.split('', 0)", "separator"),
        ("each f", "each family:"),
        ("each f:q split ", "split ','"),
        ("each f:q split ''", "separator"),
        ("minute(f:q)", "hour"),
        ("f:a b", "write family:qualifier"),
        ("key[0]", "the source is a table, not a view"),
    ],
)
def test_a_mistaken_key_is_told_what_would_be_right(text: str, said: str) -> None:
    with pytest.raises(IllegalArgument, match=said):
        extractor_of(text)


def test_a_part_that_a_view_has_not() -> None:
    with pytest.raises(IllegalArgument, match="2 parts"):
        extractor_of("key[2]", 2)


@pytest.mark.parametrize(
    ("text", "families"),
    [("f:q", {b"f"}), ("row[1:]", set()), ("each g:", {b"g"}), ("each f:q split ';'", {b"f"}), ("hour(h:q)", {b"h"})],
)
def test_families_that_are_read(text: str, families: set[bytes]) -> None:
    assert families_read(extractor_of(text)) == families


@pytest.mark.parametrize(
    "column",
    [b"f:q", b"f:", b"f:a b", b"f:\\x41", b"f:\\", b"a.b:c:d", b"f:'\"(),=!<>[]", b"f:\xff\0", "f:größe".encode()],
)
def test_a_column_is_written_as_it_is_read(column: bytes) -> None:
    assert column_of(column_text(column)) == column


def test_bytes_of_a_text() -> None:
    assert bytes_of(r"a\x00\xfFé\n") == b"a\0\xff\xc3\xa9\\n"
