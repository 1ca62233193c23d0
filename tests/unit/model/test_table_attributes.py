"""Attributes as text, changes of a schema, its JSON, and split points."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from columnar.errors import DamagedData, IllegalArgument, NoSuchColumnFamily
from columnar.model.attributes import (
    FAMILY_ATTRIBUTES,
    TableChange,
    altered,
    attributes_of,
    expiry_changes,
    merged_attributes,
    with_attributes,
)
from columnar.model.region_info import hex_splits, uniform_splits
from columnar.model.schema import Family, checked_attributes, from_json, make_table, to_json

EVERY = {
    "VERSIONS": "5",
    "MIN_VERSIONS": "2",
    "TTL": "3600",
    "COMPRESSION": "ZSTD",
    "BLOOMFILTER": "ROWCOL",
    "IN_MEMORY": "true",
    "BLOCKCACHE": "false",
    "BLOCKSIZE": "65536",
    "DURABILITY": "ASYNC_WAL",
}


def test_every_attribute_goes_in_and_comes_out() -> None:
    assert EVERY.keys() == FAMILY_ATTRIBUTES.keys()
    family = with_attributes(Family("f"), EVERY)
    assert attributes_of(family) == EVERY
    assert with_attributes(Family("f"), {name.lower(): text.lower() for name, text in EVERY.items()}) == family
    assert with_attributes(family, dict.fromkeys(EVERY, "")) == Family("f", compression="LZ4")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"VERSIONS": "0"}, "must be positive"),
        ({"VERSIONS": "many"}, "VERSIONS takes a whole number, not 'many'"),
        ({"MIN_VERSIONS": "2"}, "MIN_VERSIONS is 0 to VERSIONS, which is 1"),
        ({"TTL": "0"}, "TTL is a positive number of seconds"),
        ({"COMPRESSION": "gzip"}, "COMPRESSION is one of NONE, SNAPPY, LZ4, GZ, ZSTD"),
        ({"BLOOMFILTER": "ROWPREFIX"}, "BLOOMFILTER is one of"),
        ({"IN_MEMORY": "yes"}, "IN_MEMORY is true or false"),
        ({"BLOCKSIZE": "10"}, "BLOCKSIZE is 1024 to"),
        ({"DURABILITY": "NEVER"}, "DURABILITY is one of"),
        ({"KEEP_DELETED_CELLS": "true"}, "KEEP_DELETED_CELLS is none of"),
    ],
)
def test_wrong_attributes_are_named(given: dict[str, str], said: str) -> None:
    with pytest.raises(IllegalArgument, match=said):
        with_attributes(Family("f"), given)


@pytest.mark.parametrize(
    "given", [{"NOPE": "1"}, {"READONLY": "1"}, {"MAX_FILESIZE": "big"}, {"DURABILITY": "x"}, {"CHANGE_LOG": "-1"}]
)
def test_wrong_attributes_of_a_table(given: dict[str, str]) -> None:
    with pytest.raises(IllegalArgument, match=next(iter(given))):
        checked_attributes(given)


def test_attributes_of_a_table() -> None:
    table = make_table("t", [Family("f")], {"READONLY": "TRUE", "MAX_FILESIZE": "1000"})
    assert (table.is_read_only, table.max_filesize) == (True, 1_000)
    assert merged_attributes(table.attributes, {"READONLY": "", "CHANGE_LOG": "5"}) == {
        "MAX_FILESIZE": "1000",
        "CHANGE_LOG": "5",
    }
    with pytest.raises(IllegalArgument, match="NOPE"):
        merged_attributes({}, {"NOPE": ""})


def test_a_family_says_its_own_durability() -> None:
    families = [Family("a"), Family("b", durability="ASYNC_WAL"), Family("c", durability="SYNC_WAL")]
    assert make_table("t", families).unsynced_families == {b"b"}
    assert make_table("t", families, {"DURABILITY": "SKIP_WAL"}).unsynced_families == {b"a", b"b"}


def test_what_the_idl_says_unasked_does_not_act() -> None:
    family = Family("f", bloom_filter="NONE", block_cache=False, unsaid=("BLOCKCACHE", "BLOOMFILTER"))
    assert (family.uses_block_cache, family.uses_bloom_filter) == (True, True)
    assert (attributes_of(family)["BLOCKCACHE"], attributes_of(family)["BLOOMFILTER"]) == ("true", "ROW")
    said = with_attributes(family, {"BLOCKCACHE": "false"})
    assert (said.uses_block_cache, said.uses_bloom_filter) == (False, True)
    assert attributes_of(with_attributes(family, {"BLOOMFILTER": "NONE"}))["BLOOMFILTER"] == "NONE"


# --- changes -------------------------------------------------------------------------------------


def test_numbers_and_spaces_are_never_given_twice() -> None:
    table = make_table("t", [Family("a"), Family("b"), Family("c")])
    seen = {(family.number, family.space) for family in table.families}
    for change in (
        TableChange(drop=frozenset({"c"})),
        TableChange(add=(Family("c"),)),
        TableChange(drop=frozenset({"c", "a"}), add=(Family("d"),)),
        TableChange(drop=frozenset({"d"}), add=(Family("d"), Family("a"))),
    ):
        table = from_json(to_json(altered(table, change)))
        fresh = {(f.number, f.space) for f in table.families if f.name in {one.name for one in change.add}}
        assert not fresh & seen
        assert not {number for number, _ in fresh} & {number for number, _ in seen}
        seen |= fresh
    assert [family.name for family in table.families] == ["a", "b", "d"]


def test_a_change_is_whole_and_keeps_the_rest() -> None:
    table = make_table("t", [Family("a", max_versions=3, ttl_s=60), Family("b")], {"READONLY": "true"})
    after = altered(
        table,
        TableChange(
            add=(Family("c", compression="zstd"),),
            change={"a": {"VERSIONS": "5"}},
            drop=frozenset({"b"}),
            attributes={"READONLY": ""},
        ),
    )
    assert after.families[0] == Family("a", 1, max_versions=5, ttl_s=60)
    assert after.families[1] == Family("c", 3, compression="ZSTD", added=True)
    assert (after.attributes, after.next_number) == ({}, 4)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (TableChange(drop=frozenset({"x"})), NoSuchColumnFamily),
        (TableChange(change={"x": {}}), NoSuchColumnFamily),
        (TableChange(add=(Family("a"),)), IllegalArgument),
        (TableChange(drop=frozenset({"a"})), IllegalArgument),  # the only one
        (TableChange(drop=frozenset({"a"}), change={"a": {}}), IllegalArgument),
        (TableChange(attributes={"DELETE_MARKERS": "5"}, change={"a": {"VERSIONS": "2"}}), IllegalArgument),
        (TableChange(add=(Family("b", compression="gzip"),)), IllegalArgument),
        (TableChange(add=tuple(Family(f"f{n}") for n in range(256))), IllegalArgument),
    ],
)
def test_changes_that_cannot_be(change: TableChange, error: type[Exception]) -> None:
    with pytest.raises(error):
        altered(make_table("t", [Family("a")]), change)


def test_numbers_end() -> None:
    table = replace(make_table("t", [Family("a")]), next_number=0xFFFF)
    table = altered(table, TableChange(add=(Family("last"),)))
    with pytest.raises(IllegalArgument, match="takes no more"):
        altered(table, TableChange(add=(Family("one more"),)))


def test_expiry_changes() -> None:
    table = make_table("t", [Family("a"), Family("b", ttl_s=5)])
    change = TableChange(change={"a": {"VERSIONS": "3"}, "b": {"VERSIONS": "2", "MIN_VERSIONS": "1"}})
    assert expiry_changes(table, altered(table, change)) == ["b"]


# --- JSON ----------------------------------------------------------------------------------------


def test_older_json_is_read_and_written_as_it_was() -> None:
    older = {
        "name": "t",
        "attributes": {},
        "families": [
            {
                "name": "f", "number": 1, "max_versions": 3, "ttl_s": None, "compression": "NONE",
                "bloom_filter": "ROW", "in_memory": False, "block_cache": True,
            }
        ],
    }  # fmt: skip
    table = from_json(json.dumps(older).encode())
    assert table.families == (Family("f", 1, max_versions=3),)
    assert table.number_to_give == 2
    assert json.loads(to_json(table)) == older


def test_json_keeps_everything() -> None:
    table = altered(
        make_table("t", [with_attributes(Family("f"), EVERY), Family("g", unsaid=("BLOCKCACHE",))]),
        TableChange(add=(Family("h"),)),
    )
    assert from_json(to_json(table)) == table


def test_json_of_a_newer_version_is_refused() -> None:
    held = json.loads(to_json(make_table("t", [Family("f")])))
    held["families"][0]["mob"] = True
    with pytest.raises(DamagedData, match=r"newer version \(mob\): upgrade"):
        from_json(json.dumps(held).encode())


# --- split points --------------------------------------------------------------------------------


def test_hex_splits() -> None:
    assert hex_splits(4) == [b"40000000", b"80000000", b"c0000000"]
    assert hex_splits(1) == []
    assert hex_splits(3) == [b"55555555", b"aaaaaaaa"]


def test_uniform_splits() -> None:
    assert uniform_splits(4) == [bytes([n]) + bytes(7) for n in (0x40, 0x80, 0xC0)]
    many = uniform_splits(1_000)
    assert (len(set(many)), many) == (999, sorted(many))
    for wrong in (0, -1, 10_001):
        with pytest.raises(IllegalArgument):
            uniform_splits(wrong)
