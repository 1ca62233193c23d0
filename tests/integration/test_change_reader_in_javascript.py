"""A reader of change streams in JavaScript, by the published formats alone, reads what our client reads."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from columnar.client.changes import Change, Forget, Row, StreamEvent
from columnar.model.change_events import KINDS
from tests.support.deep import IS_DEEP
from tests.support.serving import Serving

READER = Path(__file__).parents[1] / "other_languages" / "change_reader.js"
KEPT = {"CHANGE_LOG": "3600", "CHANGE_LOG_IMAGES": "true"}
NODE = shutil.which("node")
_NUMBERS = {name: number for number, name in KINDS.items()}


def read(serving: Serving, start: str, *flags: str) -> tuple[list[Any], str]:
    """Return the reader's events up to the log's end, and its position."""
    assert NODE is not None
    words = [NODE, str(READER), str(serving.store.port), "t", start, *flags]
    found = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    *events, position = map(json.loads, found.stdout.splitlines())
    return events, f"0x{position}"


def as_array(event: StreamEvent) -> list[Any]:
    """Return the event as the format has it, bytes in hexadecimal."""
    if isinstance(event, Forget):
        return [3, event.start.hex(), event.stop.hex()]
    assert isinstance(event, Row | Change)
    sequence = [int(n) for n in event.sequence.split("-")]
    if isinstance(event, Row):
        cells = [[column.hex(), timestamp, value.hex()] for column, (value, timestamp) in event.cells.items()]
        return [2, event.row.hex(), sequence, cells]
    entries = [[_NUMBERS[e.kind], e.column.hex(), e.timestamp, e.value.hex()] for e in event.entries]
    images = [
        None if image is None else sorted([column.hex(), value.hex()] for column, value in image.items())
        for image in (event.before, event.after)
    ]
    return [1, event.row.hex(), sequence, event.stamp, event.more, entries, *images]


@pytest.mark.skipif(NODE is None or not IS_DEEP, reason="a language beside ours: with COLUMNAR_DEEP, where node is")
def test_it_reads_what_our_client_reads(tmp_path: Path) -> None:
    serving = Serving(tmp_path / "store").start()
    try:
        connection = serving.connect()
        connection.create_table("t", {"f": {}, "g": {}}, attributes=KEPT, splits=[b"m"])
        table = connection.table("t")
        for n in range(300):
            table.put(b"%c%03d" % (97 + n % 26, n), {b"f:n": b"%d" % n, b"g:\xff": b"\x00" * (n % 300)})
        stream = connection.changes("t", start="beginning", before=True, after=True, follow=False)
        ours = sorted(map(as_array, stream))
        theirs, position = read(serving, "beginning", "--images")
        assert sorted(theirs) == ours
        assert len(ours) == 300
        begun = stream.position
        table.put(b"a000", {b"f:n": b"v" * 70_000})
        table.put(b"b", {b"f:n": b"1"}, timestamp=1 << 40)
        table.delete(b"a000", [b"f:n"])
        table.delete(b"b")
        connection.call("columnarSplit", b"t", b"g")
        table.put(b"z", {b"f:n": b"2"})
        for start, flags in ((position, ["--images"]), (f"0x{begun.hex()}", [])):
            images = bool(flags)
            ours = sorted(
                map(as_array, connection.changes("t", start=begun, before=images, after=images, follow=False))
            )
            theirs, last = read(serving, start, *flags)
            assert sorted(theirs) == ours
            assert len(ours) == 5
            assert read(serving, last)[0] == []
        connection.admin.alter_table("t", attributes={"CHANGE_LOG": "", "CHANGE_LOG_IMAGES": ""})
        table.put(b"unlogged", {b"f:n": b"3"})
        connection.admin.alter_table("t", attributes=KEPT)
        with pytest.raises(subprocess.CalledProcessError) as refused:
            read(serving, position)
        assert "ChangesGone" in refused.value.stderr
        theirs, _ = read(serving, position, "--snapshot")
        assert [one[0] for one in theirs].count(3) >= 1
        assert {bytes.fromhex(one[1]) for one in theirs if one[0] == 2} == {row for row, _ in table.scan()}
    finally:
        serving.stop()
