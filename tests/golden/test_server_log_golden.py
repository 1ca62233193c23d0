"""The bytes of docs/formats/server-log.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from columnar.errors import DamagedData
from columnar.storage.data_folder import DataFolder
from columnar.storage.recovery import has_hole, missing
from columnar.storage.server_log import (
    BEFORE_EPOCHS,
    Framing,
    Operation,
    Record,
    Written,
    era,
    era_of,
    head,
    mark,
    pack_floor,
    records_in,
)
from tests.support.golden import golden, hold_to

ERA = era(b"the log's name 1", 7)
PUT: Written = ("0" * 32, 9, 5, 0, [("f:a", b"row\x00\x01q", b"value", None)])
_ALL: list[Operation] = [("f:a", b"k", b"", None), ("versions", b"k", None, None), ("f:a", b"b", None, b"d")]
ALL: Written = ("meta", 2**33, 6, 3, _ALL)
_framing = Framing()


def frame(records: list[Written]) -> bytes:
    return bytes(_framing.frame(records))


SEGMENT = head(ERA) + frame([PUT]) + frame([PUT, ALL])
A_RECORD = Record("0" * 32, 9, 5, 0, b"")


def written(record: Record) -> Written:
    """As it was before it was packed."""
    return (*record[:4], record.operations)


def records_of(segment: bytes) -> list[Written]:
    return [written(record) for record in records_in(segment)[0]]


def test_the_bytes() -> None:
    found = {"head": head(ERA), "mark": mark(ERA, 5), "floor": pack_floor(4)}
    hold_to("server-log.txt", found | {"a put": frame([PUT]), "two regions": frame([PUT, ALL])})
    assert era_of(SEGMENT) == ERA
    assert records_of(SEGMENT) == [PUT, PUT, ALL]
    assert records_in(SEGMENT)[1] == len(SEGMENT)


def test_the_bytes_of_format_1_are_read_as_records_before_epochs() -> None:
    held = golden("server-log-1.txt")
    segment = held["head"] + held["a put"] + held["two regions"]
    assert era_of(segment) == ERA
    put, every = ((region, BEFORE_EPOCHS, *rest) for region, _, *rest in (PUT, ALL))
    assert records_of(segment) == [put, put, every]
    assert records_of(segment[:-1]) == [put]
    assert records_in(segment[:-1])[1] == len(held["head"] + held["a put"])


def test_a_segment_cut_anywhere_gives_its_whole_frames() -> None:
    first, second = len(head(ERA)), len(head(ERA) + frame([PUT]))
    for length in range(len(SEGMENT)):
        cut = SEGMENT[:length]
        if length < first:
            assert era_of(cut) is None
        else:
            assert era_of(cut) == ERA
            assert records_of(cut) == ([PUT] if length >= second else [])
            assert records_of(cut + bytes(100)) == records_of(cut), "blocks that were never written"
        assert era_of(bytes(length)) is None
        assert era_of(bytes(max(length, first)) + SEGMENT[length:]) is None, "nor was the first page"


def test_a_changed_byte_ends_a_segment() -> None:
    at = len(head(ERA) + frame([PUT]))
    for place in range(at, len(SEGMENT)):
        changed = SEGMENT[:place] + bytes([SEGMENT[place] ^ 1]) + SEGMENT[place + 1 :]
        assert records_of(changed) == [PUT]


def test_what_is_no_segment_is_damage() -> None:
    with pytest.raises(DamagedData, match="begins as none"):
        era_of(b"columnar-server-log 9\n" + bytes(100))


def test_what_a_store_with_some_marks_misses() -> None:
    rising = [mark(era(b"a" * 16, run), number) for run in (1, 2, 256) for number in (1, 255, 256)]
    assert rising == sorted(rising)
    found = [(wanted, A_RECORD) for wanted in rising]

    def lost(held: dict[int, int]) -> tuple[list[int], bool]:
        """``held``: places in ``rising``, with the floor that stands there."""
        marks = {rising[place]: pack_floor(floor) for place, floor in held.items()}
        without = missing(found, marks)
        return [rising.index(wanted) for wanted, _ in without], has_hole(without, marks)

    assert lost({}) == (list(range(9)), False)
    assert lost({8: 256}) == ([], False)
    assert lost({4: 1}) == ([5, 6, 7, 8], False), "all of an earlier run was brought in at the start of the next"
    assert lost({4: 0}) == ([3, 5, 6, 7, 8], True)
    assert lost({3: 0, 4: 0}) == ([5, 6, 7, 8], False)
    assert lost({3: 0, 5: 0}) == ([4, 6, 7, 8], True)


def test_a_folder_of_an_older_format_is_raised_to_what_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "FORMAT").write_text("columnar-data 1\n")
    (tmp_path / "regions").mkdir()
    folder = DataFolder.locked(str(tmp_path))
    assert folder.format == 1
    found = {}
    for number, wanted in enumerate((1, 2, 3, 2)):
        folder.raise_format(wanted)
        found[f"{number} asked for {wanted}"] = (tmp_path / "FORMAT").read_text().replace("\n", "\\n")
    hold_to("folder-raised.txt", found)
    folder.close()
    again = DataFolder.locked(str(tmp_path))
    assert again.format == 3
    again.close()
