"""The bytes of feeds: the definition in the catalogue, a follower's progress, names of records in a topic."""

from __future__ import annotations

import pytest

from columnar.errors import DamagedData
from columnar.master import derivation_rows
from columnar.model import feeds
from columnar.model.derivations import Numbers
from columnar.model.feeds import Feed, FeedSet
from columnar.regions.log.change_record import Sequence
from columnar.topics import feed_progress
from columnar.topics.feed_batch import FeedBatch
from columnar.topics.feed_progress import FeedProgress
from tests.support.golden import hold_to

FEED = Feed("edits", "ns:t", "edits.t", columns=("a", "b:q\xff"), values=("row=base64", "b:=json"), number=3)
FEEDS = FeedSet((FEED, Feed("young", "t", "young", start="beginning", state="adding", number=4)), Numbers(4, ((1, 2),)))
PROGRESS = FeedProgress(b"m\x00", b"c", Sequence(7, 2, 41))


def test_feed_bytes() -> None:
    batch = FeedBatch(3, 9, PROGRESS)
    batch.add_change(Sequence(7, 2, 41), b"row", [{"op": "d", "after": None}, None], 1_764_000_000_000)
    ((producer, (delete, tombstone)),) = batch.producer_parts()
    rows = {
        f"{row.decode()} {column.decode()}": value
        for row, cells in sorted(derivation_rows.rows_of(FEEDS).items())
        for column, value in cells.items()
    }
    hold_to(
        "feeds.txt",
        {
            **{f"catalogue: {name}": value.decode() for name, value in rows.items()},
            "kept": feed_progress.pack(PROGRESS),
            "kept: all rows": feed_progress.pack(FeedProgress()),
            "producer": producer,
            "sequence": delete.sequence,
            "sequence of a tombstone": tombstone.sequence,
            "value": delete.value or b"",
        },
    )
    assert tombstone.value is None
    assert delete.key == tombstone.key == b"row"
    assert delete.headers == (("sequence", b"7-2-41"),)


def test_what_is_packed_is_unpacked() -> None:
    tables = {"ns:t", "t"}
    (found,) = (
        one for one in derivation_rows.sets_from(derivation_rows.rows_of(FEEDS).items(), tables).values() if one.all
    )
    assert found == FEEDS
    for one in (PROGRESS, FeedProgress(), FeedProgress(b"")):
        assert feed_progress.unpack(feed_progress.pack(one)) == one
    assert feeds.list_from_json(feeds.list_to_json(FEEDS)) == list(FEEDS.all)


def test_a_feed_that_cannot_be_read_rests_and_stays_on_disk() -> None:
    rows = derivation_rows.rows_of(FEEDS)
    rows[b"fd/edits"][b"info:feed"] = b"{"
    found = derivation_rows.sets_from(rows.items(), {"t"})[FeedSet]
    assert [bool(one.unusable_reason) for one in found.all] == [True, False]
    assert derivation_rows.rows_of(found) == rows
    there = derivation_rows.sets_from(derivation_rows.rows_of(FEEDS).items(), {"t"})[FeedSet]
    assert there.all[0].unusable_reason == "there is no table ns:t"


@pytest.mark.parametrize("data", [b"", b"\x94\x02\xc0\xc4\x00\xc0", b"\x91\x01", b"\x94\x01\xc0\xc4\x00\x07"])
def test_damaged_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(DamagedData):
        feed_progress.unpack(data)
    with pytest.raises(DamagedData):
        feeds.from_json(data)
