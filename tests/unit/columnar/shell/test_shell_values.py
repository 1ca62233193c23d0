"""What is typed for values and times, and what was meant by words that are not there."""

from __future__ import annotations

import pytest

from columnar.errors import IllegalArgument
from columnar.shell.meaning import command_meant, family_meant, table_meant
from columnar.shell.text import moment_of
from columnar.shell.values import Values, counter_of, number_of

HOUR_MS = 3_600_000


@pytest.mark.parametrize("number", [0, 1, -1, 5, (1 << 63) - 1, -(1 << 63)])
def test_a_counter_is_eight_bytes_big_endian(number: int) -> None:
    assert counter_of(str(number)) == number.to_bytes(8, "big", signed=True)
    assert number_of(counter_of(f"{number:+}")) == number


@pytest.mark.parametrize("text", ["", "1.5", "0x10", "9223372036854775808", "1_000", "٣", " 1"])
def test_what_is_no_counter(text: str) -> None:
    with pytest.raises(IllegalArgument, match="whole number of 64 bits"):
        counter_of(text)


def test_other_lengths_are_no_counters() -> None:
    assert number_of(b"1234567") is None
    assert number_of(b"") is None


def test_forms_of_values() -> None:
    assert Values("text").value("a\\x00") == b"a\0"
    assert Values("hex").value("00 fF") == b"\0\xff"
    assert Values("counter").cell("n:a=-1") == (b"n:a", b"\xff" * 8)
    with pytest.raises(IllegalArgument, match="pairs of hexadecimal digits"):
        Values("hex").value("abc")


def test_times() -> None:
    now_ms = 10 * HOUR_MS
    assert moment_of("1234", now_ms) == 1_234
    assert moment_of("2h", now_ms) == 8 * HOUR_MS
    assert moment_of("7d", now_ms) == 0
    assert moment_of("1970-01-01T01:00:00.5+00:00", now_ms) == HOUR_MS + 500
    for text in ("", "-1", "1.5", "now", "2026-13-01", "1w"):
        with pytest.raises(IllegalArgument, match="is no time"):
            moment_of(text, now_ms)


def test_commands_that_were_meant() -> None:
    known = ("get", "put", "scan", "tables", "delete", "delete-rows")
    assert command_meant(["delet"], known) == "delete"
    assert command_meant(["DELETE_ROWS"], known) == "delete-rows"
    assert command_meant(["select"], known) == "scan"
    assert command_meant(["pages", "scan", "--limit"], known) == "scan pages --limit"
    assert command_meant(["qqq"], known) is None


def test_tables_and_families_that_were_meant() -> None:
    assert table_meant({"table": "Home", "row": "pages"}, ["pages"]) == (
        "the table comes first: did you mean 'pages Home'?"
    )
    assert table_meant({"table": "page"}, ["parts", "pages"]) == "did you mean 'pages'?"
    assert table_meant({"name": "x"}, ["pages"]) is None
    assert family_meant({"row": "r", "cells": ("text:a=1", "txet:b=2")}, ["text"]) == "did you mean 'text'?"
    assert family_meant({"row": "text:a", "columns": ("r",)}, ["text"]) == (
        "the row comes before the columns: is 'text:a' one of them?"
    )
    assert family_meant({"row": "r", "columns": ("zzz",)}, ["text"]) is None
