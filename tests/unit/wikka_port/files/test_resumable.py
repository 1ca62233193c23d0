"""Resumable uploads: headers as clients of tus send them, and no part at a wrong place."""

from __future__ import annotations

import random

import pytest

from wikka_port.files import resumable
from wikka_port.files.chunks import CHUNK_BYTES, Chunker
from wikka_port.files.resumable import PART_TYPE, Progress, Rejected


def rejected(status: int, call: object, *arguments: object) -> None:
    with pytest.raises(Rejected) as refused:
        call(*arguments)  # type: ignore[operator]
    assert refused.value.status == status


def test_the_version() -> None:
    resumable.check_version({"Tus-Resumable": "1.0.0"})
    for headers in ({}, {"Tus-Resumable": "0.2.2"}):
        rejected(412, resumable.check_version, headers)


def test_lengths() -> None:
    assert resumable.length_in({"Upload-Length": "100"}, 100) == 100
    rejected(413, resumable.length_in, {"Upload-Length": "101"}, 100)
    for value in ("", "-1", "1.0", "0x10", "٣", "9" * 16, "+1"):
        rejected(400, resumable.length_in, {"Upload-Length": value}, 100)


def test_metadata() -> None:
    header = "filename d29ybGRfZG9taW5hdGlvbl9wbGFuLnBkZg==,is_confidential"  # the example of the protocol
    assert resumable.metadata_in({"Upload-Metadata": header}) == {
        "filename": "world_domination_plan.pdf",
        "is_confidential": "",
    }
    assert resumable.metadata_in({"Upload-Metadata": "name R3LDvMOfZQ== , note "}) == {"name": "Grüße", "note": ""}
    assert resumable.metadata_in({}) == {}
    for value in ("a !!", "a /w==", "ä YQ==", "a YQ==,a YQ==", ",", "a YQ=", ",".join(f"k{n}" for n in range(21))):
        rejected(400, resumable.metadata_in, {"Upload-Metadata": value})
    rejected(413, resumable.metadata_in, {"Upload-Metadata": "a " + "A" * resumable.METADATA_CHARS_MAX})


def part(offset: int, **further: str) -> dict[str, str]:
    return {"Content-Type": PART_TYPE, "Upload-Offset": str(offset), **further}


def test_parts() -> None:
    progress = Progress(2 * CHUNK_BYTES, 3 * CHUNK_BYTES)
    resumable.check_part(part(2 * CHUNK_BYTES), CHUNK_BYTES, progress)
    resumable.check_part(part(2 * CHUNK_BYTES), 0, progress)
    rejected(415, resumable.check_part, {**part(2 * CHUNK_BYTES), "Content-Type": "text/plain"}, 1, progress)
    rejected(400, resumable.check_part, {"Content-Type": PART_TYPE}, 1, progress)
    for offset in (0, 2 * CHUNK_BYTES - 1, 3 * CHUNK_BYTES):
        rejected(409, resumable.check_part, part(offset), 1, progress)
    rejected(411, resumable.check_part, part(2 * CHUNK_BYTES), None, progress)
    rejected(413, resumable.check_part, part(2 * CHUNK_BYTES), CHUNK_BYTES + 1, progress)


def test_the_short_chunk_of_a_part_that_broke_off() -> None:
    length = 2 * CHUNK_BYTES + 5
    offsets = (0, 7, CHUNK_BYTES, 2 * CHUNK_BYTES + 4, length)
    assert [Progress(offset, length).short_chunk for offset in offsets] == [(0, 0), (0, 7), (1, 0), (2, 4), (2, 5)]
    assert [Progress(offset, length).is_whole for offset in offsets] == [False] * 4 + [True]
    assert Progress(0, 0).is_whole


@pytest.mark.parametrize("largest", [CHUNK_BYTES // 3, 3 * CHUNK_BYTES])
def test_an_upload_that_breaks_off_at_random_places_is_whole_in_the_end(largest: int) -> None:
    rng = random.Random(394)
    content = rng.randbytes(4 * CHUNK_BYTES + 321)
    stored: dict[int, bytes] = {}
    progress, parts = Progress(0, len(content)), 0
    while not progress.is_whole:
        sent = content[progress.offset :][:largest]
        resumable.check_part(part(progress.offset), len(sent), progress)
        arrived = sent[: rng.choice([0, 1, CHUNK_BYTES - 1, rng.randint(0, len(sent)), len(sent)])]
        number, there = progress.short_chunk
        chunker = Chunker(number, stored.get(number, b"")[:there])
        stored.update([*chunker.feed(arrived), *chunker.finish()])
        if rng.random() < 0.8:  # else a crash before u:stored was written
            progress = Progress(progress.offset + len(arrived), len(content))
        parts += 1
    assert b"".join(stored[number] for number in sorted(stored)) == content
    assert all(len(stored[number]) == CHUNK_BYTES for number in range(4))
    assert parts > 3
