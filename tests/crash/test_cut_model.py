"""The foundations of ``tests.crash.cuts``: the model of a disk, the reader of strace's lines, the reader of logs."""

from __future__ import annotations

from random import Random

import pytest

from tests.crash.cuts.disk import Disk
from tests.crash.cuts.order import BLOCK_BYTES, LogReader, Places
from tests.crash.cuts.system_calls import (
    Event,
    FolderMade,
    Linked,
    Made,
    NotUnderstood,
    Removed,
    Renamed,
    Sent,
    Synced,
    Written,
    events_of,
)


def after(*events: Event) -> Disk:
    disk = Disk()
    for event in events:
        disk.happen(event)
    return disk


def hexed(text: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in text.encode())


def test_synced_bytes_without_a_synced_name_are_lost() -> None:
    events = [Made("f", False), Written("f", b"abc"), Synced("f", 2)]
    assert after(*events).left("lost", Random(1)) == {}
    assert after(*events, Synced("", 3)).left("lost", Random(1)) == {"f": b"abc"}
    assert after(*events).left("kept", Random(1)) == {"f": b"abc"}


def test_a_store_that_is_current_has_the_files_that_were_made_for_it() -> None:
    made = [FolderMade("d"), Synced("", 1), Made("d/M-5", False), Made("d/t", False), Renamed("d/t", "d/CURRENT")]
    disk = after(*made, Made("d/late", False))
    outcomes = {tuple(sorted(disk.left("mixed", Random(seed)))) for seed in range(60)}
    assert ("d/CURRENT", "d/M-5") in outcomes
    assert ("d/CURRENT", "d/M-5", "d/late") in outcomes
    assert {("d/",), ("d/M-5",), ("d/late",), ("d/t",)} < outcomes
    assert not any("d/CURRENT" in outcome and "d/M-5" not in outcome for outcome in outcomes)


def test_a_sync_covers_what_was_written_before_it_began() -> None:
    disk = after(Made("f", False), Synced("", 1), Written("f", b"abc"), Written("f", b"def"), Synced("f", 3))
    assert disk.left("lost", Random(1)) == {"f": b"abc"}


def test_a_rename_is_there_wholly_or_not_at_all() -> None:
    made = [Made("old", False), Written("old", b"1"), Synced("old", 2), Made("new", False), Written("new", b"2")]
    disk = after(*made, Synced("new", 5), Synced("", 6), Renamed("new", "old"))
    assert disk.left("lost", Random(1)) == {"old": b"1", "new": b"2"}
    assert disk.left("kept", Random(1)) == {"old": b"2"}
    outcomes = [disk.left("mixed", Random(seed)) for seed in range(20)]
    assert all(outcome in ({"old": b"1", "new": b"2"}, {"old": b"2"}) for outcome in outcomes)
    assert len({len(outcome) for outcome in outcomes}) == 2


def test_a_folder_that_was_not_synced_takes_all_in_it_along() -> None:
    disk = after(FolderMade("d"), Made("d/f", False), Written("d/f", b"1"), Synced("d/f", 3), Synced("d", 4))
    assert disk.left("lost", Random(1)) == {}
    disk.happen(Synced("", 5))
    assert disk.left("lost", Random(1)) == {"d/f": b"1"}


def test_a_link_shares_the_bytes_and_outlives_the_first_name() -> None:
    disk = after(Made("f", False), Linked("f", "g"), Written("g", b"1"), Synced("f", 3), Removed("f"), Synced("", 5))
    assert disk.left("lost", Random(1)) == {"g": b"1"}


def test_what_tears_is_never_what_was_synced() -> None:
    disk = after(Made("f", False), Synced("", 1), Written("f", b"s" * 5000), Synced("f", 3), Written("f", b"u" * 9000))
    lengths = set()
    for seed in range(60):
        data = disk.left("mixed", Random(seed))["f"]
        assert data.startswith(b"s" * 5000)
        assert set(data[5000:]) <= {0, ord("u")}
        lengths.add(len(data))
    assert {5000, 14000} < lengths


def test_calls_that_overlap_are_put_together() -> None:
    f, d, peer = hexed("/r/d/f"), hexed("/r/d"), "TCP:[127.0.0.1:1->127.0.0.1:4000]"
    lines = [
        f'7 1.0 openat(AT_FDCWD<{hexed("/")}>, "{f}", O_WRONLY|O_CREAT|O_CLOEXEC, 0644) = 5<{f}>',
        f'7 1.1 write(5<{f}>, "{hexed("one")}", 3) = 3',
        f"8 1.2 fdatasync(5<{f}> <unfinished ...>",
        f'7 1.3 write(5<{f}>, "{hexed("two")}", 3) = 3',
        "8 1.4 <... fdatasync resumed>) = 0",
        f"7 1.5 fsync(6<{d}>) = -1 EIO (Input/output error)",
        f'7 1.6 write(9<{peer}>, "{hexed("ok")}", 2 <unfinished ...>',
        f'8 1.7 rename("{f}", "{hexed("/r/d/g")}") = 0',
        "7 1.8 <... write resumed>) = 2",
        "7 1.9 +++ exited with 0 +++",
    ]
    assert list(events_of(lines, "/r")) == [
        Made("d/f", False),
        Written("d/f", b"one"),
        Written("d/f", b"two"),
        Synced("d/f", 2),
        Sent(4000, b"ok"),
        Renamed("d/f", "d/g"),
    ]


def test_a_call_without_a_rule_is_refused() -> None:
    path = hexed("/r/f")
    with pytest.raises(NotUnderstood, match="pwrite64"):
        list(events_of([f'7 1.0 pwrite64(5<{path}>, "{hexed("x")}", 1, 4096) = 1'], "/r"))


def test_marks_are_found_across_blocks_of_a_log() -> None:
    def record(payload: bytes, kind: int) -> bytes:
        return b"crc!" + len(payload).to_bytes(2, "little") + bytes([kind]) + payload

    first = BLOCK_BYTES - 7 - 3  # three bytes of the mark's record fit into the first block
    filler = b"." * (first - 7 - 0)
    log = record(filler, 1) + record(b"<ma", 2)
    assert len(log) == BLOCK_BYTES
    log += record(b"rk>", 4)
    places: Places = {}
    reader = LogReader(in_blocks=True)
    for at, piece in enumerate((log[:100], log[100:-5], log[-5:])):
        reader.feed(piece, {b"<mark>": 0}, places, ("f.log", at))
    assert places == {0: [("f.log", 2)]}
