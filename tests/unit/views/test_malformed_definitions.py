"""Definitions of views that are none: every one is answered with an error that a caller can act on."""

from __future__ import annotations

import contextlib
import json
import random
from typing import Any

import pytest

from columnar.errors import CallerError, IllegalArgument
from columnar.model.derivations import ViewSet
from columnar.model.flow_graph import Graph
from columnar.model.schema import Family, make_table
from columnar.views.declaring import declared
from tests.support.seeds import seed

TABLES = {"t": make_table("t", [Family("f")]), "u": make_table("u", [Family("f")])}
SOURCE: dict[str, Any] = {
    "table": "t", "key": ["f:a"], "where": ["f:b=1"], "sums": [["n", "f:n"]], "averages": [["m", "f:n"]],
    "order": "f:n desc", "include": ["f:c"], "families": ["f"],
}  # fmt: skip
JOIN = {"table": "u", "key": ["f:a"]}
GOOD: dict[str, Any] = {"version": 1, "name": "v", "sources": [SOURCE], "spread": 1}
STRANGE: tuple[Any, ...] = (
    None, True, 5, -1, 1.5, 10**30, "", "x", "\ud800", "\x00", "é", "f:", ":", "a" * 70_000, [], [None], [5], [[]], {},
    {"a": 1}, [["n"]], [["n", 5]], [[5, "f:n"]], [["n", "f:n", "x"]], ["\udcff"], ["row[" + "9" * 5_000 + ":]"],
    ["row.split(':', " + "9" * 5_000 + ")"], ["key[" + "9" * 5_000 + "]"], [["n", "decimal(f:n, " + "9" * 5_000 + ")"]],
    "decimal(f:n, " + "9" * 5_000 + ") desc", ["number(f:n)>" + "9" * 5_000], ["''"], ["'" + "x" * 5_000 + "'"],
    [["n", "f:n"]] * 2, ["f:a"] * 9,
)  # fmt: skip


def asked(definition: Any) -> None:
    """Whatever is wrong with it is the caller's to change."""
    data = definition if isinstance(definition, bytes) else json.dumps(definition).encode()
    with contextlib.suppress(CallerError):
        declared(data, ViewSet(), TABLES, Graph([]))


@pytest.mark.parametrize("field", [*GOOD, *(f"sources.{name}" for name in (*SOURCE, "key_parts"))])
def test_a_field_of_another_kind_is_named(field: str) -> None:
    for value in STRANGE:
        for source in (SOURCE, JOIN):
            changed = {**GOOD, "sources": [dict(source)]}
            (changed["sources"][0] if "." in field else changed)[field.rpartition(".")[2]] = value
            asked(changed)
            asked({**changed, "sources": [*(changed["sources"] if isinstance(changed["sources"], list) else []), JOIN]})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": 5}, "name is a text, not 5"),
        ({"spread": "2"}, "spread is a whole number, not '2'"),
        ({"spread": True}, "spread is a whole number"),
        ({"sources": {}}, "sources is a list"),
        ({"sources": ["t"]}, r"sources\[0\] is an object"),
        ({"sources": [{**SOURCE, "key": "f:a"}]}, r"sources\[0\]\.key is a list of texts, not 'f:a'"),
        ({"sources": [{**SOURCE, "sums": {"n": "f:n"}}]}, r"sources\[0\]\.sums is a list of pairs"),
        ({"sources": [{**SOURCE, "where": [5]}]}, r"sources\[0\]\.where is a list of texts"),
        ({"sources": [JOIN, {"table": "u"}]}, r"sources\[1\]\.key is a list of texts, not left out"),
        ({"sources": []}, r"sources is a list of one source or two, not \[\]"),
        ({"sources": [JOIN] * 3}, "sources is a list of one source or two"),
        ({"spred": 2}, "view v has what is no field of this version \\('spred'\\)"),
        ({"sources": [{**SOURCE, "wher": []}]}, r"sources\[0\] has what is no field of this version \('wher'\)"),
        ({"name": "\ud800"}, "name is a text, not '"),
        ({"sources": [{**SOURCE, "sums": [["n", "f:n"], ["n", "f:m"]]}]}, r"sources\[0\]\.sums has a name twice"),
        ({"sources": [{**SOURCE, "averages": [["m", "f:n"]] * 2}]}, r"sources\[0\]\.averages has a name twice"),
        ({"sources": [{**SOURCE, "key_parts": -1}]}, r"sources\[0\]\.key_parts is 0 or more, not -1"),
        ({"sources": [{**SOURCE, "where": ["f:a exists"] * 101}]}, "where has at most 100 conditions, not 101"),
        ({"sources": [{**SOURCE, "key": ["row[0:0]"]}]}, r"key 'row\[0:0\]' is empty for every row"),
        ({"sources": [{**SOURCE, "key": ["row[5:2]"]}]}, r"key 'row\[5:2\]' is empty for every row"),
        ({"sources": [{**SOURCE, "key": ["row[-2:-4]"]}]}, r"key 'row\[-2:-4\]' is empty for every row"),
        ({"sources": [{**SOURCE, "key": ["row[-4:0]"]}]}, r"key 'row\[-4:0\]' is empty for every row"),
    ],
)
def test_the_message_names_the_field(change: dict[str, Any], message: str) -> None:
    with pytest.raises(IllegalArgument, match=message):
        declared(json.dumps({**GOOD, **change}).encode(), ViewSet(), TABLES, Graph([]))


@pytest.mark.parametrize("key", ["row[0:1]", "row[:3]", "row[2:]", "row[-4:]", "row[:-1]", "row[-4:2]", "row[3:-1]"])
def test_a_slice_that_some_row_has_is_a_key(key: str) -> None:
    declared(json.dumps({**GOOD, "sources": [{**SOURCE, "key": [key]}]}).encode(), ViewSet(), TABLES, Graph([]))


def test_bytes_that_are_no_definition() -> None:
    whole = json.dumps(GOOD).encode()
    for data in (b"x", b"5", b"null", b"[]", b"\xff", b"[" * 100_000, b'{"version": 1}', whole[:-1], whole * 2):
        with pytest.raises(IllegalArgument, match="definition of a view"):
            declared(data, ViewSet(), TABLES, Graph([]))


def test_random_fields_of_random_kinds() -> None:
    rng = random.Random(seed(331))
    for _ in range(2_000):
        changed: dict[str, Any] = {**GOOD, "sources": [dict(SOURCE), *([dict(JOIN)] if rng.random() < 0.3 else [])]}
        for _ in range(rng.randrange(1, 4)):
            place = rng.choice([changed, *changed["sources"]]) if isinstance(changed["sources"], list) else changed
            if isinstance(place, dict):
                place[rng.choice([*place, "strange"])] = rng.choice(STRANGE)
        asked(changed)
        data = bytearray(json.dumps(GOOD).encode())
        data[rng.randrange(len(data))] = rng.randrange(256)
        asked(bytes(data))
