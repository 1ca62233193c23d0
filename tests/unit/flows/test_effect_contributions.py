"""Effects that give to totals: one contribution for each source and row, refused where one would be lost."""

from __future__ import annotations

from typing import Any

import pytest

from columnar.errors import IllegalArgument
from columnar.flows import effect_contributions
from columnar.flows.effect_contributions import ChangeContributions, Giver
from columnar.flows.effects import for_table, writes_of
from columnar.model.effect import Contribute as ContributeEffect
from columnar.model.effect import Put as PutEffect
from columnar.model.effect import Tally
from columnar.model.mutation import Contribute, Put, RowMutation
from columnar.model.schema import Family, make_table

SEQUENCE = (7, 1, 42)
SOURCE = b"edits\x00\x01page"
EDITS, BYTES = (b"n", b"bytes"), (b"n", b"edits")


def written(
    *effects: Any, giver: Giver | None = None, of: Any = (b"page", SEQUENCE)
) -> list[tuple[bytes, RowMutation]]:
    run = giver or Giver("edits")
    return writes_of([list(effect) for effect in effects], 77, 2, lambda: ChangeContributions(run, *of))


def said(*effects: Any) -> list[Contribute]:
    return [operation for _, mutation in written(*effects) for operation in mutation.operations]  # type: ignore[misc]


def test_the_source_is_the_row_behind_the_triggers_name_and_the_sequence_the_changes() -> None:
    tally = Contribute(b"m", SOURCE, SEQUENCE, (1,), ((b"n", b"edits"),), relative=True)
    gives = Contribute(b"mm", b"s", SEQUENCE, (3,), ((b"n", b""),), b"oo", b"1", ((b"c:d", b"v"),))
    assert written(
        Tally("t", b"alice", {b"n:edits": 1}),
        PutEffect("t", b"alice", {b"f:a": b"1"}),
        ContributeEffect(
            "t", b"bob", {b"n:": 3}, {b"c:d": b"v"}, members="mm", order=b"1", ordered="oo", source=b"s",
        ),
        ContributeEffect("t", b"carol", None),
    ) == [
        (b"t", RowMutation(b"alice", (tally,), hops=3)),
        (b"t", RowMutation(b"alice", (Put(b"f", b"a", b"1", 77),), hops=3)),
        (b"t", RowMutation(b"bob", (gives,), hops=3)),
        (b"t", RowMutation(b"carol", (Contribute(b"m", SOURCE, SEQUENCE, None, ()),), hops=3)),
    ]  # fmt: skip


def test_other_sources_tables_and_members_are_gifts_of_their_own() -> None:
    found = said(
        Tally("t", b"alice", {b"n:edits": 1}), Tally("t", b"alice", {b"n:edits": 1}, source=b"x"),
        Tally("u", b"alice", {b"n:edits": 1}), Tally("t", b"alice", {b"n:edits": 1}, members="mm"),
        Tally("t", b"bob", {b"n:edits": 1, b"n:bytes": -4}),
    )  # fmt: skip
    assert [one.amounts for one in found] == [(1,)] * 4 + [(-4, 1)]
    assert found[-1].totals == (EDITS, BYTES)


def test_a_change_gives_there_again_in_a_later_part_only() -> None:
    giver = Giver("edits")
    tally = Tally("t", b"alice", {b"n:edits": 1})
    written(tally, giver=giver)
    written(Tally("t", b"bob", {b"n:edits": 1}), giver=giver)
    with pytest.raises(IllegalArgument, match="gave to row alice of t already in the same part"):
        written(tally, giver=giver)
    for again in (ContributeEffect("t", b"alice", None), ContributeEffect("t", b"alice", {b"n:pages": 1}).in_part(1)):
        with pytest.raises(IllegalArgument, match=r"row alice of t by a Tally and by a Contribute.*another source="):
            written(again, giver=giver)
    ((_, mutation),) = written(tally.in_part(1), giver=giver)
    assert mutation.operations == (
        Contribute(b"m", SOURCE, SEQUENCE, (1,), ((b"n", b"edits"),), relative=True, part=1),
    )
    with pytest.raises(IllegalArgument):
        written(tally, giver=giver)
    written(tally, giver=Giver("edits"))


def test_changes_of_a_batch_give_in_their_order() -> None:
    giver = Giver("edits")
    first, second, tally = (b"page", SEQUENCE), (b"page", (7, 1, 43)), Tally("t", b"alice", {b"n:edits": 1})
    written(tally, giver=giver, of=first)
    written(tally, giver=giver, of=(b"other", SEQUENCE))
    written(tally, giver=giver, of=second)
    with pytest.raises(IllegalArgument, match="a later change of the row tallied row alice of t already"):
        written(tally, giver=giver, of=first)
    gives = ContributeEffect("t", b"bob", {b"n:pages": 1})
    written(gives, giver=giver, of=second)
    written(gives, giver=giver, of=first)
    with pytest.raises(IllegalArgument, match="already in the same part"):
        written(gives, giver=giver, of=second)


def test_rows_of_one_run_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effect_contributions, "GIVEN_ROWS", 3)
    giver = Giver("edits")
    written(*[Tally("t", b"%d" % n, {b"n:edits": 1}) for n in range(3)], giver=giver)
    with pytest.raises(IllegalArgument, match="at most 3 rows"):
        written(Tally("t", b"x", {b"n:edits": 1}), giver=giver)


def test_missing_families_are_named_with_the_command_that_makes_them() -> None:
    table = make_table("t", [Family("n"), Family("m")])
    for effect, why in (
        (Tally("t", b"r", {b"n:a": 1}, members="mm"), "no family mm for members: columnar alter t --add mm"),
        (Tally("t", b"r", {b"x:a": 1}), "no family x for totals: columnar alter t --add x"),
        (
            ContributeEffect("t", b"r", {b"n:a": 1}, order=b"1"),
            "no family o for ordered cells: columnar alter t --add o",
        ),
    ):
        ((_, mutation),) = written(effect)
        with pytest.raises(IllegalArgument, match=why):
            for_table(mutation, table)
    ((_, mutation),) = written(Tally("t", b"r", {b"n:a": 1}))
    assert for_table(mutation, table) is mutation


@pytest.mark.parametrize(
    "effect",
    [
        [5, b"t", b"r", {b"n:a": 1}], [5, b"t", b"", {b"n:a": 1}, b"m", None, {}, None, b"", 0],
        [5, b"t", b"r", None, b"m", None, {}, None, b"", 0], [5, b"t", b"r", {}, b"m", None, {}, None, b"", 0],
        [5, b"t", b"r", {b"n:a": "1"}, b"m", None, {}, None, b"", 0],
        [5, b"t", b"r", {b"n": 1}, b"m", None, {}, None, b"", 0],
        [4, b"t", b"r", {5: 1}, b"m", None, {}, None, b"", 0],
        [5, b"t", b"r", {b"n:a": 1}, b"m", None, {}, None, b""],
        [5, b"t", b"r", {b"n:a": 1}, b"m", None, {}, None, b"", -1],
        [5, b"t", b"r", {b"n:a": 1}, b"m", None, {}, None, b"", 1 << 32],
        [4, b"t", b"r", {b"m:a": 1}, b"m", None, {}, None, b"", 0],
    ],
)  # fmt: skip
def test_what_is_no_effect_is_refused(effect: Any) -> None:
    with pytest.raises(IllegalArgument):
        writes_of([effect], 77, 0, lambda: ChangeContributions(Giver("edits"), b"page", SEQUENCE))
