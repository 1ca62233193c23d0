"""The gets of ``get-any-row`` are drawn from the whole data set, and their answers are looked at."""

from __future__ import annotations

import random

import pytest

from columnar.bench import dataset
from columnar.bench.protocols import BINARY, BadReply
from columnar.bench.workloads import FURTHER, PACKED, STANDARD

ROWS = 1_250_000
DRAWN = 20_000


def test_every_part_of_the_table_is_read() -> None:
    workload = FURTHER["get-any-row"]
    first, _second = workload.sessions(ROWS, random.Random(7), 2, BINARY)
    frames = [first.first() for _ in range(DRAWN)]
    numbers = {int(frame[frame.index(b"row-") + 4 :][:8]) for frame in frames}
    assert len(numbers) > 4 * PACKED, "more rows than a ring has"
    parts = [sum(1 for number in numbers if number * 10 // ROWS == part) for part in range(10)]
    assert min(parts) > DRAWN // 12
    assert {len(frame) for frame in frames} == {len(frames[0])}, "the length before a frame is that of all"
    assert [one.name for one in workload.tables] == [dataset.ROWS_TABLE], "no other table is filled for it"


def test_an_answer_without_the_row_is_bad() -> None:
    (session,) = FURTHER["get-any-row"].sessions(ROWS, random.Random(7), 1, BINARY)
    session.first()
    with pytest.raises(BadReply):
        session.take_reply(b"\0\0\0\4none")
    assert "get-any-row" not in STANDARD
