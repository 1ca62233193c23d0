"""Which rows belong together, by the attribute ROW_GROUP; and that no region between groups cuts one."""

from __future__ import annotations

import random

import pytest

from columnar.errors import IllegalArgument
from columnar.model.row_groups import RowGroups, groups_of
from columnar.model.schema import Family, checked_attributes, from_json, make_table, to_json


@pytest.mark.parametrize(
    ("text", "row", "group"),
    [
        ("length:3", b"abcdef", b"abc"),
        ("length:3", b"abc", b"abc"),
        ("length:3", b"ab", b"ab"),
        ("until:/", b"alice/a/b", b"alice/"),
        ("until:/", b"alice/", b"alice/"),
        ("until:/", b"alice", b"alice"),
        ("until:/", b"/x", b"/"),
        ("until:\\x00", b"a\x00b", b"a\x00"),
        ("until:::", b"a:b::c::d", b"a:b::"),
        ("until:ä", "größe".encode(), "größe".encode()),
        ("until:ö", "größe".encode(), "grö".encode()),
    ],
)
def test_the_group_of_a_row(text: str, row: bytes, group: bytes) -> None:
    assert groups_of(text).group_of(row) == group


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("LENGTH:08", "length:8"),
        ("until:/", "until:/"),
        ("Until:\\x2f", "until:/"),
        ("until:\\x00\\xff", "until:\\x00\\xFF"),
        ("until:a b", "until:a\\x20b"),
        ("until:\\", "until:\\x5C"),
        ("length:32767", "length:32767"),
    ],
)
def test_the_attribute_is_kept_in_one_form(text: str, kept: str) -> None:
    table = make_table("t", [Family("f")], {"ROW_GROUP": text})
    assert table.attributes["ROW_GROUP"] == kept
    assert checked_attributes({"row_group": kept}) == {"ROW_GROUP": kept}
    assert from_json(to_json(table)).row_groups == groups_of(text) == table.row_groups
    assert make_table("t", [Family("f")]).row_groups is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("length:0", "is length:N, with N from 1 to 32767, or until:DELIMITER, not 'length:0'"),
        ("length:32768", "not 'length:32768'"),
        ("length:000008", "not 'length:000008'"),
        ("length:-1", "is length:N"),
        ("until:", "is length:N"),
        ("/", "is length:N"),
        ("until:" + "x" * 17, "has a delimiter of 17 bytes, at most 16 go"),
    ],
)
def test_a_wrong_attribute_is_refused(text: str, said: str) -> None:
    with pytest.raises(IllegalArgument) as refused:
        checked_attributes({"ROW_GROUP": text})
    assert refused.value.text.startswith("table attribute ROW_GROUP ")
    assert said in refused.value.text


RULES = ["length:1", "length:2", "length:3", "until:/", "until:\\xFF", "until:\\x00", "until:/a", "until:aa"]


def random_row(rng: random.Random) -> bytes:
    return bytes(rng.choice(b"/a\x00\xff") for _ in range(rng.randrange(1, 7)))


@pytest.mark.parametrize("text", RULES)
def test_rows_of_a_group_are_neighbours_and_begin_with_it(text: str) -> None:
    rng = random.Random(f"row groups {text}")
    groups = groups_of(text)
    rows = sorted({random_row(rng) for _ in range(600)})
    seen: list[bytes] = []
    for row in rows:
        group = groups.group_of(row)
        assert groups.group_of(group) == group <= row
        assert row.startswith(group)
        if not seen or seen[-1] != group:
            seen.append(group)
    assert len(set(seen)) == len(seen) > 3, "no row of another group is between two rows of a group"
    assert seen == sorted(seen)
    for group in seen:
        end = groups.end_of(group)
        held = [row for row in rows if group <= row and (not end or row < end)]
        assert held == [row for row in rows if groups.group_of(row) == group]


@pytest.mark.parametrize("text", RULES)
def test_a_boundary_cuts_a_group_or_begins_one(text: str) -> None:
    rng = random.Random(f"boundaries {text}")
    groups = groups_of(text)
    rows = sorted({random_row(rng) for _ in range(300)})
    for start in rows:
        below = {groups.group_of(row) for row in rows if row < start}
        above = {groups.group_of(row) for row in rows if row >= start}
        if groups.cut_by([b"", start]) is None:
            assert not below & above, start
    assert groups.cut_by([b"", groups.group_of(rows[50])]) is None


def test_a_group_without_an_end() -> None:
    assert RowGroups(2).end_of(b"\xff\xff") == b""
    assert RowGroups(2).end_of(b"a\xff") == b"b"
    assert RowGroups(2).end_of(b"a") == b"a\x00"
    assert groups_of("until:/").end_of(b"a/") == b"a0"
