"""Bytes to what a person reads and types, and back."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from columnar.client.addresses import address_of
from columnar.errors import IllegalArgument
from columnar.shell.text import (
    bytes_text,
    column_and_value,
    family_of,
    readable,
    seconds_of,
    typed,
)


@given(st.binary())
@settings(max_examples=500)
def test_all_bytes_survive_being_shown_and_typed(data: bytes) -> None:
    text = readable(data)
    assert typed(text) == data
    assert text.isprintable()


@given(st.text())
@settings(max_examples=200)
def test_all_text_survives(text: str) -> None:
    data = text.encode("utf-8", "surrogatepass")
    assert typed(readable(data)) == data


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"HomePage", "HomePage"),
        ("Rīga".encode(), "Rīga"),
        (b"\x00\xff", "\\x00\\xFF"),
        (b"a\\b", "a\\x5Cb"),
        ("Rīga\n\tline".encode(), "Rīga\\x0A\\x09line"),
        ("é".encode() + b"\x00\x01", "\\xC3\\xA9\\x00\\x01"),  # no text as a whole: no letter by accident
        ("é".encode() + b"\xff", "\\xC3\\xA9\\xFF"),
        (b"\x1b[31m", "\\x1B[31m"),
        ("\u202e".encode(), "\\xE2\\x80\\xAE"),  # right-to-left override: not printable
    ],
)
def test_readable(data: bytes, text: str) -> None:
    assert readable(data) == text


def test_a_long_value_is_cut_and_says_its_length() -> None:
    assert readable(b"x" * 10, 4) == "xxxx... (10 bytes)"
    assert readable("éé".encode(), 3) == "é... (4 bytes)"
    assert readable("éé".encode() + b"\0", 3) == "\\xC3\\xA9\\xC3... (5 bytes)"


@pytest.mark.parametrize(
    ("text", "data"), [("\\xZZ", b"\\xZZ"), ("\\n", b"\\n"), ("\\x4", b"\\x4"), ("\\x41\\x42C", b"ABC")]
)
def test_only_whole_escapes_are_escapes(text: str, data: bytes) -> None:
    assert typed(text) == data


def test_cells() -> None:
    assert column_and_value("text:body=a=b") == (b"text:body", "a=b")
    assert column_and_value("text:a\\x3Db=c") == (b"text:a=b", "c")
    assert column_and_value("n:=") == (b"n:", "")
    for wrong in ("text:body", "body=x", ""):
        with pytest.raises(IllegalArgument):
            column_and_value(wrong)


def test_families() -> None:
    assert family_of("text") == ("text", {})
    assert family_of("m:versions=3,ttl=7d,compression=zstd") == (
        "m",
        {"VERSIONS": "3", "TTL": "604800", "COMPRESSION": "zstd"},
    )
    for wrong in ("m:versions=x", "m:ttl=-1", "m:colour=red"):
        with pytest.raises(IllegalArgument):
            family_of(wrong)


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90s", 90), ("15m", 900), ("12h", 43_200), ("7d", 604_800)])
def test_durations(text: str, seconds: int) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["f:ttl=86400 SECONDS (2 DAYS)", "f:blocksize=65536 B (32KB)"])
def test_an_amount_that_is_written_twice_and_differs(text: str) -> None:
    with pytest.raises(IllegalArgument, match="says two different amounts"):
        family_of(text)


def test_addresses() -> None:
    assert address_of("store") == ("store", 9090)
    assert address_of("store:1") == ("store", 1)
    assert address_of("[::1]:91") == ("::1", 91)
    for wrong in ("", "a:b", "a:99999", "::1", "http://a:1", "a..b:1", "a" * 64 + ".example:1"):
        with pytest.raises(IllegalArgument):
            address_of(wrong)


def test_sizes_are_short() -> None:
    assert [bytes_text(n) for n in (0, 999, 1_000, 12_345_678, 2 * 10**15)] == [
        "0 B", "999 B", "1.0 KB", "12.3 MB", "2000.0 TB",
    ]  # fmt: skip
