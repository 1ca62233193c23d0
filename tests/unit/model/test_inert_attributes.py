"""Attributes of HBase that change nothing here; times and sizes as ``describe`` writes them."""

from __future__ import annotations

import re

import pytest

from columnar.errors import IllegalArgument
from columnar.limits import INERT_ATTRIBUTES, INERT_TEXT_BYTES
from columnar.model.attributes import attributes_of, merged_attributes, whole, with_attributes
from columnar.model.inert_attributes import (
    FAMILY_INERT,
    TABLE_INERT,
    checked_configuration,
    name_from_hbase,
    name_in_hbase,
)
from columnar.model.schema import Family, checked_attributes, from_json, make_table, to_json
from columnar.model.written_amounts import bytes_written, seconds_written
from columnar.shell.text import attribute_of


@pytest.mark.parametrize("name", sorted(FAMILY_INERT))
def test_the_default_of_each_attribute_of_a_family_is_taken_and_says_nothing(name: str) -> None:
    assert with_attributes(Family("f"), {name: FAMILY_INERT[name].default}) == Family("f")
    assert with_attributes(Family("f"), {name: FAMILY_INERT[name].default.lower()}) == Family("f")
    assert with_attributes(Family("f"), {name: ""}) == Family("f")


@pytest.mark.parametrize("name", sorted(TABLE_INERT))
def test_the_default_of_each_attribute_of_a_table_is_taken_and_says_nothing(name: str) -> None:
    assert checked_attributes({name: ""}) == {}
    assert checked_attributes({name: TABLE_INERT[name].default}) == {}


@pytest.mark.parametrize("name", ["MAX_FILESIZE", "MEMSTORE_FLUSHSIZE", "NORMALIZER_TARGET_REGION_COUNT"])
def test_a_number_that_hbases_clients_write_for_none(name: str) -> None:
    """``getMaxFileSize`` of a table where nothing is set is -1, and programs write it back."""
    assert checked_attributes({name: "-1"}) == {}
    assert merged_attributes({name: "5000000"}, {name: "-1"}) == {}
    assert attribute_of(f"{name}=-1") == (name, "-1")
    with pytest.raises(IllegalArgument, match=name):
        checked_attributes({name: "-2"})


@pytest.mark.parametrize(
    ("name", "text", "kept"),
    [
        ("DATA_BLOCK_ENCODING", "fast_diff", "FAST_DIFF"),
        ("INDEX_BLOCK_ENCODING", "PREFIX_TREE", "PREFIX_TREE"),
        ("CACHE_DATA_ON_WRITE", "TRUE", "true"),
        ("COMPRESS_TAGS", "false", "false"),
        ("MOB_THRESHOLD", "1 MB", "1048576"),
        ("IN_MEMORY_COMPACTION", "basic", "BASIC"),
        ("hbase.hstore.blockingStoreFiles", "20", "20"),
        ("METADATA.team", "a", "a"),
    ],
)
def test_what_nobody_sees_is_kept(name: str, text: str, kept: str) -> None:
    family = with_attributes(Family("f"), {name: text})
    assert attributes_of(family)[name] == kept
    assert from_json(to_json(make_table("t", [family]))).families[0].inert == ((name, kept),)
    assert with_attributes(family, {name: ""}).inert == ()
    assert with_attributes(family, whole(Family("f"), family)).inert == ()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("KEEP_DELETED_CELLS", "TTL"),
        ("REPLICATION_SCOPE", "1"),
        ("NEW_VERSION_BEHAVIOR", "true"),
        ("DFS_REPLICATION", "3"),
        ("DATA_BLOCK_ENCODING", "FASTDIFF"),
        ("ENCRYPTION", "AES"),
        ("VERSION", "3"),
        ("CACHE_DATA_ON_WRITE", "yes"),
        ("METADATA.x", "v" * (INERT_TEXT_BYTES + 1)),
    ],
)
def test_what_would_promise_an_effect_is_refused_by_name(name: str, text: str) -> None:
    with pytest.raises(IllegalArgument, match=name):
        with_attributes(Family("f"), {name: text})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("REGION_REPLICATION", "2"),
        ("SPLIT_ENABLED", "false"),
        ("SPLIT_POLICY", "org.apache.hadoop.hbase.regionserver.KeyPrefixRegionSplitPolicy"),
        ("coprocessor$1", "|a.B|1|"),
        ("MAX_FILE_SIZE", "1"),
    ],
)
def test_attributes_of_a_table_that_are_refused(name: str, text: str) -> None:
    with pytest.raises(IllegalArgument, match=re.escape(name.upper())):
        checked_attributes({name: text})


def test_attributes_of_a_table_come_and_go() -> None:
    held = merged_attributes({}, {"MEMSTORE_FLUSHSIZE": "256 MB", "OWNER": "anna", "MAX_FILESIZE": "10 GB"})
    assert held == {"MEMSTORE_FLUSHSIZE": "268435456", "OWNER": "anna", "MAX_FILESIZE": str(10 << 30)}
    assert merged_attributes(held, {"OWNER": ""}) == {"MEMSTORE_FLUSHSIZE": "268435456", "MAX_FILESIZE": str(10 << 30)}
    assert "MEMSTORE_FLUSHSIZE" not in merged_attributes(held, {"MEMSTORE_FLUSHSIZE": "134217728 B (128MB)"})


def test_they_are_bounded() -> None:
    most = {f"METADATA.k{n}": "v" for n in range(INERT_ATTRIBUTES)}
    assert len(with_attributes(Family("f"), most).inert) == INERT_ATTRIBUTES
    for refuse in (lambda more: with_attributes(Family("f"), more), checked_attributes, checked_configuration):
        with pytest.raises(IllegalArgument, match=f"at most {INERT_ATTRIBUTES}"):
            refuse({**most, "METADATA.one": "v"})


@pytest.mark.parametrize("key", ["mykey", "hbase.x", "OWNER", "a key"])
def test_names_of_metadata_go_in_and_come_out(key: str) -> None:
    assert name_in_hbase(name_from_hbase(key, TABLE_INERT)) == key


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("86400", 86_400),
        ("86400 SECONDS (1 DAY)", 86_400),
        ("90061 SECONDS (1 DAY 1 HOUR 1 MINUTE 1 SECOND)", 90_061),
        ("59 SECONDS", 59),
        ("1 SECOND", 1),
        ("1 DAY", 86_400),
        ("2 days 3 hours 4 minutes 5 seconds", 2 * 86_400 + 3 * 3_600 + 4 * 60 + 5),
        ("7d", 604_800),
        ("1 DAY (86400 SECONDS)", 86_400),
        (" 60 ", 60),
    ],
)
def test_times(text: str, seconds: int) -> None:
    assert seconds_written(text) == seconds


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("65536", 65_536),
        ("65536 B (64KB)", 65_536),
        ("64 KB (65536B)", 65_536),
        ("10737418240 B (10GB)", 10 << 30),
        ("10763632640 B (10GB 25MB)", (10 << 30) + (25 << 20)),
        ("10 GB 20 MB", (10 << 30) + (20 << 20)),
        ("100 B", 100),
        ("64k", 65_536),
        ("2T", 2 << 40),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert bytes_written(text) == size


@pytest.mark.parametrize(
    "text", ["", "x", "1 WEEK", "86400 SECONDS (2 DAYS)", "-1", "1.5 DAYS", "1 DAY (", "٣", "1" * 200]
)
def test_texts_that_are_no_time(text: str) -> None:
    with pytest.raises(IllegalArgument):
        seconds_written(text)


@pytest.mark.parametrize("text", ["", "KB", "64 XB", "65536 B (65KB)", "-1", "64 KB KB", "9" * 200])
def test_texts_that_are_no_size(text: str) -> None:
    with pytest.raises(IllegalArgument):
        bytes_written(text)
