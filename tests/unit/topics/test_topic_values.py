"""Names, bounds and keys of topics."""

from __future__ import annotations

import pytest

from columnar.errors import IllegalArgument
from columnar.model.topic import (
    FOREVER,
    TOPIC_PARTITIONS,
    TopicDescription,
    TopicSettings,
    checked_name,
    checked_partitions,
    checked_settings,
)


def test_a_name_is_one_that_kafka_takes() -> None:
    assert checked_name("wiki.edits-2_x") == "wiki.edits-2_x"
    for name in ("", ".", "..", "a b", "ä", "a" * 250, "a\x00", "a\n"):
        with pytest.raises(IllegalArgument, match="topic's name"):
            checked_name(name)


def test_bounds_of_partitions_and_settings() -> None:
    assert checked_partitions(TOPIC_PARTITIONS) == TOPIC_PARTITIONS
    for count in (0, -1, TOPIC_PARTITIONS + 1):
        with pytest.raises(IllegalArgument, match="partitions"):
            checked_partitions(count)
    forever = TopicSettings(FOREVER, FOREVER)
    assert checked_settings(forever) == forever
    for wrong in (TopicSettings(retention_ms=0), TopicSettings(retention_bytes=-2), TopicSettings(1 << 62)):
        with pytest.raises(IllegalArgument, match="retention"):
            checked_settings(wrong)


def test_a_partition_is_named_by_topic_id_and_number() -> None:
    topic = TopicDescription("edits", 7, 2, TopicSettings())
    assert topic.key(1) == b"edits\x00" + (7).to_bytes(8, "big") + (1).to_bytes(4, "big")
    assert topic.key(0) != TopicDescription("edits", 8, 2, TopicSettings()).key(0)
    for partition in (-1, 2):
        with pytest.raises(IllegalArgument, match="partitions 0 to 1"):
            topic.key(partition)
