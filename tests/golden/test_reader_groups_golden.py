"""The bytes of docs/formats/reader-groups.md."""

from __future__ import annotations

from columnar.flows.position import Range
from columnar.regions.log.change_record import Sequence
from columnar.streams.group_bytes import pack_group, pack_progress, row_of, rows_of, unpack_group, unpack_progress
from columnar.streams.groups import Group, GroupRange, Member, Progress
from tests.support.golden import hold_to

PLACE = (Range(b"", Sequence(5, 2, 1 << 40), None), Range(b"c", Sequence(6, 1, 7), b"d"))
GROUP = Group(
    b"\x00wanted\xff",
    (Member("host-1", 1 << 41), Member("host-2", 7)),
    (
        GroupRange(b"", "host-2", 3, 9, PLACE, 1 << 41, 0),
        GroupRange(b"m\xff", "host-1", 1, 0, (Range(b"m\xff", None, b"m\xff"),), 5, 1 << 42),
        GroupRange(b"z", "", 1 << 33, 0, (Range(b"z", None, None),), 0),
    ),
)
PROGRESS = [Progress(b"", 3, 10, PLACE), Progress(b"z", 1 << 33, 0, (Range(b"z", None, None),))]


def test_groups() -> None:
    hold_to(
        "reader-groups.txt",
        {
            "row": row_of("ns:t", "search"),
            "state": pack_group(GROUP),
            "state of a new group": pack_group(Group(b"", (), (GroupRange(b"", "", 1, 0, PLACE[:1], 5),))),
            "position": pack_progress(PROGRESS, "ns:t"),
            "position without ranges": pack_progress([], "ns:t"),
        },
    )
    assert unpack_group(pack_group(GROUP)) == GROUP
    assert unpack_progress(pack_progress(PROGRESS, "ns:t"), "ns:t") == PROGRESS
    start, stop = rows_of("ns:t")
    assert start <= row_of("ns:t", "search") < stop
    assert not start <= row_of("ns:t2", "search") < stop
