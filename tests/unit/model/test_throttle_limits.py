"""The attribute THROTTLE: what it takes, how it is kept, and how it refuses."""

from __future__ import annotations

import pytest

from columnar.errors import IllegalArgument
from columnar.model.attributes import merged_attributes
from columnar.model.schema import Family, checked_attributes, from_json, make_table, to_json
from columnar.model.throttle_limits import canonical, limits_of


@pytest.mark.parametrize(
    ("text", "scope", "of_bytes", "amount", "period_s", "kept"),
    [
        ("1000req/s", "", False, 1000, 1, "1000req/s"),
        ("10MB/s", "", True, 10 << 20, 1, "10MB/s"),
        ("read:500req/s", "read", False, 500, 1, "read:500req/s"),
        ("WRITE:1G/hour", "write", True, 1 << 30, 3_600, "write:1GB/hour"),
        ("10req/sec", "", False, 10, 1, "10req/s"),  # as the HBase shell writes it
        ("5k/min", "", True, 5 << 10, 60, "5KB/min"),
        ("7B/day", "", True, 7, 86_400, "7B/day"),
        ("2tb/d", "", True, 2 << 40, 86_400, "2TB/day"),
        ("3P/h", "", True, 3 << 50, 3_600, "3PB/hour"),
    ],
)
def test_a_limit(text: str, scope: str, of_bytes: bool, amount: int, period_s: int, kept: str) -> None:
    (limit,) = limits_of(text)
    assert (limit.scope, limit.of_bytes, limit.amount, limit.period_s) == (scope, of_bytes, amount, period_s)
    assert checked_attributes({"THROTTLE": text}) == {"THROTTLE": kept}
    assert limits_of(kept) == (limit,)


def test_several_limits_keep_their_order() -> None:
    limits = limits_of(" write:2mb/s , 1000req/s,READ:5 req/min")
    assert canonical(limits) == "write:2MB/s,1000req/s,read:5req/min"


@pytest.mark.parametrize(
    "text",
    ["", "0", "10", "req/s", "10req", "10req/", "-1req/s", "1.5req/s", "10req/month", "10reqs/s", "10XB/s",
     "all:1req/s", "10req/s,", ",", "10req/s;5MB/s", "read:", "10CU/s", "\u0661req/s", "1req/s\n2"],
)  # fmt: skip
def test_what_is_no_limit_is_refused_with_the_right_form(text: str) -> None:
    with pytest.raises(IllegalArgument, match=r"THROTTLE takes limits such as 1000req/s,10MB/s,read:500req/s"):
        checked_attributes({"THROTTLE": text})


@pytest.mark.parametrize("text", ["0req/s", "read:0MB/s", "10req/s,write:000B/day"])
def test_a_limit_of_nothing_is_refused(text: str) -> None:
    with pytest.raises(IllegalArgument, match="1 or more"):
        checked_attributes({"THROTTLE": text})


def test_each_kind_of_limit_stands_there_once() -> None:
    with pytest.raises(IllegalArgument, match="once; read:7req/min is the second"):
        limits_of("read:5req/s,5req/s,read:5MB/s,read:7req/min")
    assert len(limits_of("1req/s,1B/s,read:1req/s,read:1B/s,write:1req/s,write:1B/s")) == 6


def test_it_is_kept_over_an_alter_of_others_and_taken_away_by_an_empty_text() -> None:
    table = make_table("t", [Family("f")], {"THROTTLE": "10 REQ/SEC"})
    assert table.throttle == "10req/s"
    assert from_json(to_json(table)) == table
    assert merged_attributes(table.attributes, {"READONLY": "true"})["THROTTLE"] == "10req/s"
    assert merged_attributes(table.attributes, {"THROTTLE": ""}) == {}
    assert make_table("t", [Family("f")]).throttle == ""
