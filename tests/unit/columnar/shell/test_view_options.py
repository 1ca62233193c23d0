"""Options of a view, on either side of ``--join``, become the definition that they say."""

from __future__ import annotations

import shlex
from typing import Any

import click
import pytest
from click.testing import CliRunner

from columnar.errors import IllegalArgument
from columnar.model.view_definition import Source, View
from columnar.shell.view_options import SidedCommand, definition_options, sided, view_of

HELD = View("v", Source("t", key=("row",)))


def told(words: str, held: View | None = None) -> View:
    found: list[View] = []

    @click.command(cls=SidedCommand)
    @click.option("--json", "as_json", is_flag=True)
    @definition_options
    def add(as_json: bool, **options: Any) -> None:
        found.append(view_of("v", options, held))

    result = CliRunner().invoke(add, shlex.split(words), standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return found[0]


def test_one_source() -> None:
    words = (
        "--from pages --by f:a --by 'day(f:t)' --where 'f:x absent' --where f:y=1 --sum n=f:n --avg m=f:m "
        "--order f:s:desc --include f:i --include f:j --spread 16 --json"
    )
    source = Source(
        "pages",
        key=("f:a", "day(f:t)"),
        where=("f:x absent", "f:y=1"),
        sums={"n": "f:n"},
        averages={"m": "f:m"},
        order="f:s desc",
        include=("f:i", "f:j"),
    )
    assert told(words) == View("v", source, spread=16)


def test_a_join() -> None:
    words = "--from orders --by f:who --sum n=f:n --json --join people --by=row --include f:city --order text(f:b):asc"
    left = Source("orders", key=("f:who",), sums={"n": "f:n"})
    right = Source("people", key=("row",), include=("f:city",), order="text(f:b) asc")
    assert told(words) == View("v", left, right)


def test_words_behind_the_options_stay() -> None:
    assert sided(["--by", "a", "--join", "t", "--by", "b", "--by=c", "--", "--by"]) == [
        "--by", "a", "--join", "t", "--join-by", "b", "--join-by=c", "--", "--by",
    ]  # fmt: skip


@pytest.mark.parametrize("order", ["f:s", "f:s:desc", "f:s desc", "decimal(f:s, 2):asc", "f:s:d:desc"])
def test_orders(order: str) -> None:
    expected = {"f:s:desc": "f:s desc", "decimal(f:s, 2):asc": "decimal(f:s, 2) asc", "f:s:d:desc": "f:s:d desc"}
    assert told(f"--from t --by row --order '{order}'").source.order == expected.get(order, order)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("", "--from TABLE"),
        ("--by f:a", "--from TABLE"),
        ("--from t", "--by family:qualifier"),
        ("--from t --by row --join u", "rows of u"),
        ("--from t --by row --sum n", "NAME=family:qualifier"),
        ("--from t --by row --avg n=f:a --avg n=f:b", "stands twice"),
    ],
)
def test_what_is_not_whole(words: str, says: str) -> None:
    with pytest.raises(IllegalArgument, match=says):
        told(words)


def test_a_held_view_where_no_option_says_anything() -> None:
    assert told("", HELD) is HELD
    assert told("--from u --by row", HELD) == View("v", Source("u", key=("row",)))
    with pytest.raises(IllegalArgument, match="--from TABLE"):
        told("--by row", HELD)
