"""What the store refuses of a function, its test refuses too, and a test of any function ends."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from columnar.client import Connection
from columnar.errors import TriggerError
from columnar.model.effect import Checkpoint, Contribute, Delete, Effect, Put, Tally
from columnar.triggers.api import Change, Later, on
from columnar.triggers.slices import ONE_EFFECT_BYTES
from columnar.triggers.testing import assert_converges, effects_of

TAGS = {"pages": {"m:tags": [b"x", b"x,y", b"y,z", b""]}}


class Quiet(Later):
    def __init__(self) -> None:
        """It says no time."""


@on("pages", columns=["m:tags"])
def put_off_for_ever(_change: Change) -> None:
    raise Later(5)


@on("pages", columns=["m:tags"], batch=5)
def batch_put_off_for_ever(_changes: Sequence[Change]) -> None:
    raise Later(5)


@on("pages", columns=["m:tags"])
def put_off_without_a_time(_change: Change) -> None:
    raise Quiet


@on("pages", columns=["m:tags"])
def exits(_change: Change) -> None:
    raise SystemExit(3)


@on("pages", columns=["m:tags"])
def follows_itself(change: Change) -> Iterator[Effect]:
    yield Put("pages", change.row, {b"m:seen": b"1"})


@on("pages", columns=["m:tags"])
def deletes_its_row(change: Change) -> Iterator[Effect]:
    yield Delete("pages", change.row)


@on("pages", columns=["m:tags"], batch=5)
def batch_follows_itself(changes: Sequence[Change]) -> Iterator[Any]:
    for change in changes:
        yield change, Put("pages", change.row, {b"m:seen": b"1"})


@on("pages", columns=["m:tags"])
def totals_of_its_own(change: Change) -> Iterator[Effect]:
    yield Contribute("pages", change.row, {b"m:n": 1}, members="o", ordered="p")


@on("pages", columns=["m:tags"])
def too_large(change: Change) -> Iterator[Effect]:
    value = bytes(9 << 20)
    yield Put("tags", change.row, {b"p:%d" % number: value for number in range(ONE_EFFECT_BYTES // len(value) + 1)})


@on("pages", columns=["m:tags"])
def both_books(change: Change) -> Iterator[Effect]:
    yield Tally("n", change.row, {b"n:x": 1})
    yield Checkpoint(b"1")
    yield Contribute("n", change.row, {b"n:x": 1})


@on("pages", columns=["m:tags"], before=True)
def cut_keys(change: Change) -> Iterator[Effect]:
    for tag in change.gone("m:tags", split=","):
        yield Delete("tags", tag, [b"p:" + change.row[:1]])
    for tag in change.came("m:tags", split=","):
        yield Put("tags", tag, {b"p:" + change.row[:1]: b""})


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (put_off_for_ever, "off 100 times in a row"),
        (batch_put_off_for_ever, "off 100 times in a row"),
        (put_off_without_a_time, "AttributeError"),
        (exits, "it raises SystemExit: 3"),
        (follows_itself, "would run for its own changes: pages/m"),
        (deletes_its_row, "would run for its own changes: pages"),
        (batch_follows_itself, "would run for its own changes: pages/m"),
        (totals_of_its_own, "would run for its own changes: pages/m"),
        (too_large, f"at most {ONE_EFFECT_BYTES} are taken as one step: yield several"),
        (both_books, "by a Tally and by a Contribute, which keep different books"),
        (cut_keys, "A cell is missing"),
    ],
)
def test_the_kit_refuses_what_the_store_refuses(function: Callable[..., Any], why: str) -> None:
    with pytest.raises(AssertionError, match="does not converge") as raised:
        assert_converges(function, TAGS)
    assert why in str(raised.value)


def test_effects_of_a_function_that_follows_itself_are_refused() -> None:
    with pytest.raises(TriggerError, match="would run for its own changes"):
        effects_of(follows_itself, after={b"m:tags": b"x"})


@on("pages", columns=["m:tags"])
def another_family_of_its_table(change: Change) -> Iterator[Effect]:
    if change.after:
        yield Put("pages", change.row, {b"n:tags": change.after[b"m:tags"]})
    else:
        yield Delete("pages", change.row, [b"n:tags"])


@on("pages", columns=["m:tags"], allow_cycle=True)
def goes_round(change: Change) -> Iterator[Effect]:
    yield Put("pages", change.row, {b"m:tags": b"x"})


@on("pages", columns=["m:tags"])
def reads_a_counter(change: Change, client: Connection) -> Iterator[Effect]:
    if client.table("limits").counter_get(b"all", b"n:most") == 0:
        yield from another_family_of_its_table(change)


@pytest.mark.parametrize("function", [another_family_of_its_table, reads_a_counter])
def test_the_kit_passes_what_the_store_writes(function: Callable[..., Any]) -> None:
    assert_converges(function, TAGS)


def test_effects_where_a_cycle_is_allowed_are_listed() -> None:
    assert effects_of(goes_round, after={b"m:tags": b"y"}) == [Put("pages", b"row", {b"m:tags": b"x"})]


FORKS = """
import os
from columnar.triggers.api import on
from columnar.triggers.testing import assert_converges, effects_of

forks = 3  # at most eight processes where copies do not end

def fork():
    global forks
    if forks:
        forks -= 1
        os.fork()

@on("pages", columns=["m:tags"])
def function(_change):
    fork()

@on("pages", columns=["m:tags"], batch=5)
def in_batches(_changes):
    fork()

effects_of(function, after={b"m:tags": b"x"})
for one in (function, in_batches):
    forks = 1
    assert_converges(one, {"pages": {"m:tags": [b"x", b"y"]}}, seeds=2)
os.write(1, b"the test goes on\\n")
"""


def test_a_copy_that_a_function_makes_ends_with_the_call() -> None:
    """It would go on with the test, and double at each further call."""
    done = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.returncode) == ("the test goes on\n", 0), done.stderr
