"""What a change gives to totals: decided by what its function yields, wherever slices are cut."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from columnar.model.effect import Barrier, Checkpoint, Contribute, Effect, Put, Tally
from columnar.triggers import contribution_buffer, slices
from columnar.triggers.api import Change, FailedChanges, Later
from columnar.triggers.contribution_buffer import buffer_contribution_pairs, buffer_contributions
from columnar.triggers.slices import Call, Function

ONE, TWO = Tally("t", b"alice", {b"n:edits": 1}), Tally("t", b"alice", {b"n:edits": 1, b"n:twice": 2})
BOTH = Tally("t", b"alice", {b"n:edits": 2, b"n:twice": 2})
PUT = Put("out", b"r", {b"f:a": b"1"})
NONE, GIVES = Contribute("t", b"alice", None), Contribute("t", b"alice", {b"n:pages": 1})
SEEDS = 300


def change(row: bytes, sequence: str) -> list[Any]:
    return [b"t", row, 7, sequence, [], {}, {}, 1, False, 5, 0, None, None, False]


def run(function: Callable[[Any], Any], *rows: bytes, progress: list[Any] | None = None) -> list[list[Any]]:
    """The outcomes of the call's slices; with rows, of a batch."""
    changes = [change(row, f"1-1-{at}") for at, row in enumerate(rows)] or [change(b"r", "1-1-1")]
    call = Call([1, "t", "m:f", 8, changes, progress, bool(rows), ""])
    found = []
    while not found or call.has_next_slice:
        found.append(call.run(lambda _: Function(function, wants_client=False), lambda: None))  # type: ignore[arg-type, return-value]
    return found


def sent(outcomes: list[list[Any]]) -> list[Any]:
    return [effect for outcome in outcomes for effect in outcome[2]]


class Clock:
    """``perf_counter`` that goes on a second with each look."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        self.now_s += 1.0
        return self.now_s


@pytest.fixture(params=["by effects", "by time", "by bytes", "not at all"])
def cut(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Slices end as soon as they may, for each reason."""
    monkeypatch.setattr(slices, "SLICE_S", 1e9)
    if request.param == "by effects":
        monkeypatch.setattr(slices, "SLICE_EFFECTS", 1)
    elif request.param == "by time":
        monkeypatch.setattr(slices, "SLICE_S", 0.02)
        monkeypatch.setattr(slices, "perf_counter", Clock())
    elif request.param == "by bytes":
        monkeypatch.setattr(slices, "EFFECT_BYTES", 1)
    return str(request.param)


def test_a_slice_that_ends_between_two_tallies_sends_neither(cut: str) -> None:
    def function(_: Change) -> Iterator[Effect]:
        yield from (ONE, PUT, TWO)

    found = run(function)
    assert sent(found) == [PUT, BOTH]
    assert (len(found) > 1) == (cut != "not at all"), "it was cut"
    assert [outcome[1] for outcome in found] == ["more"] * (len(found) - 1) + ["done"]


def test_a_function_that_only_gives_is_cut_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "perf_counter", Clock())
    found = run(lambda _: iter([ONE] * 3))
    assert len(found) == 5
    assert sent(found) == [Tally("t", b"alice", {b"n:edits": 3})]


@pytest.mark.usefixtures("cut")
@pytest.mark.parametrize("yields", [(NONE, GIVES), (GIVES, NONE), (GIVES, GIVES), (NONE, NONE, GIVES)])
def test_amounts_win_over_none_whichever_comes_first(yields: tuple[Effect, ...]) -> None:
    """The listing of Slatkin's talk: what leaves a group and what enters it may be one group."""
    assert sent(run(lambda _: iter(yields))) == [GIVES]
    assert sent(run(lambda _: list(yields))) == [GIVES]


@pytest.mark.usefixtures("cut")
@pytest.mark.parametrize(("error", "what"), [(ValueError("as told"), "failed"), (Later(2.5), "later")])
def test_an_end_in_error_or_later_drops_what_was_given_since_the_last_checkpoint(error: Exception, what: str) -> None:
    def gives(_: Change) -> Iterator[Effect]:
        yield from (ONE, TWO)
        raise error

    def checks(_: Change) -> Iterator[Effect]:
        yield from (ONE, TWO, Checkpoint(b"half"), Tally("t", b"bob", {b"n:edits": 1}))
        raise error

    found = run(gives)
    assert (sent(found), found[-1][1]) == ([], what)
    found = run(checks)
    assert (sent(found), found[-1][1]) == ([BOTH], what)
    assert [outcome[5] for outcome in found if outcome[5]] == [[b"half", 1]]


def test_gifts_stand_in_no_later_slice_than_their_checkpoint(cut: str) -> None:
    found = run(lambda _: iter((ONE, Checkpoint(b"1"), Tally("t", b"bob", {b"n:edits": 1}), GIVES, Checkpoint(b"2"))))
    (first,) = [at for at, outcome in enumerate(found) if outcome[2][:1] == [ONE]]
    checks = [at for at, outcome in enumerate(found) if outcome[5]]
    assert sent(found) == [ONE, Tally("t", b"bob", {b"n:edits": 1}).in_part(1), GIVES.in_part(1)]
    assert first <= checks[0]
    assert found[checks[-1]][5] == [b"2", 2]
    assert cut == "not at all" or sent(found[checks[-1] + 1 :]) == []


@pytest.mark.usefixtures("cut")
def test_a_barrier_covers_gifts() -> None:
    """They are in slices before what comes behind it, and what is given there is of another part."""
    found = run(lambda _: iter((ONE, PUT, Barrier(), TWO, Barrier(), Barrier(), PUT)))
    assert sent(found) == [PUT, ONE, TWO.in_part(1), PUT]
    (first,) = [at for at, outcome in enumerate(found) if ONE in outcome[2]]
    (second,) = [at for at, outcome in enumerate(found) if TWO.in_part(1) in outcome[2]]
    assert first < second < len(found) - 1
    assert found[first][1] == "more"


def test_an_end_in_error_behind_a_barrier_keeps_what_was_given_before() -> None:
    def function(_: Change) -> Iterator[Effect]:
        yield from (ONE, Barrier(), TWO)
        raise ValueError("as told")

    found = run(function)
    assert [(outcome[1], outcome[2]) for outcome in found] == [("more", [ONE]), ("failed", [])]


@pytest.mark.usefixtures("cut")
def test_a_run_behind_a_checkpoint_goes_on_with_its_part() -> None:
    found = run(lambda _: iter((PUT, Checkpoint(b"2"), ONE, Checkpoint(b"3"), TWO)), progress=[b"1", 4])
    assert sent(found) == [PUT, ONE.in_part(4), TWO.in_part(5)]
    assert [outcome[5] for outcome in found if outcome[5]][-1] == [b"3", 5]


@pytest.mark.usefixtures("cut")
def test_a_checkpoint_that_says_nothing_is_the_beginning() -> None:
    """A later run gives all of it again, in the same parts."""
    found = run(lambda _: iter((ONE, Checkpoint(b"1"), ONE, Checkpoint(b""), TWO)))
    assert sent(found) == [ONE, BOTH.in_part(1)]
    assert [outcome[5] for outcome in found if outcome[5]][-1] == [b"", 0]


@pytest.mark.usefixtures("cut")
def test_gifts_of_a_batch_belong_to_their_changes_and_come_in_their_order() -> None:
    def function(changes: tuple[Change, ...]) -> Iterator[Any]:
        yield changes[1], ONE
        yield changes[0], ONE
        yield changes[1], PUT
        yield changes[0], TWO

    assert sent(run(function, b"p", b"p")) == [[1, PUT], [0, BOTH], [1, ONE]]


@pytest.mark.usefixtures("cut")
def test_a_barrier_is_the_whole_batchs_and_sends_no_gift() -> None:
    def function(changes: tuple[Change, ...]) -> Iterator[Any]:
        yield Barrier()
        yield changes[1], ONE
        yield changes[0], PUT
        yield Barrier()
        yield changes[1], PUT

    found = run(function, b"p", b"q")
    assert (sent(found), found[0][1]) == ([[0, PUT], [1, PUT], [1, ONE]], "more")
    found = run(lambda changes: iter(((changes[0], Barrier()),)), b"p", b"q")
    assert "yield it without a change" in found[-1][3]


@pytest.mark.usefixtures("cut")
def test_a_batch_that_fails_gives_nothing() -> None:
    def names(changes: tuple[Change, ...]) -> Iterator[Any]:
        yield changes[0], ONE
        raise FailedChanges({1: "no"})

    def wrong(changes: tuple[Change, ...]) -> Iterator[Any]:
        yield changes[0], ONE
        yield "another", TWO

    found = run(names, b"p", b"q")
    assert (sent(found), found[-1][1:4:2]) == ([], ["named", [[1, "no"]]])
    found = run(wrong, b"p", b"q")
    assert sent(found) == []
    assert "an effect is yielded with a change of its batch, not with 'another'" in found[-1][3]


@pytest.mark.usefixtures("cut")
@pytest.mark.parametrize(
    ("yields", "why"),
    [
        ((GIVES, Contribute("t", b"alice", {b"n:pages": 2})), "row alice of t two different Contributes"),
        ((GIVES, Contribute("t", b"alice", {b"n:other": 1})), "row alice of t two different Contributes"),
        ((NONE, ONE), "which keep different books; name another source="),
        ((ONE, GIVES), "which keep different books; name another source="),
        ([Tally("t", b"r", {b"n:%d" % number: 1}) for number in range(256)], "tallies of over 255 totals"),
    ],
)
def test_what_cannot_be_one_gift_is_refused(yields: Any, why: str) -> None:
    found = run(lambda _: iter(yields))
    assert (sent(found), found[-1][1]) == ([], "failed")
    assert why in found[-1][3]


def test_what_is_held_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contribution_buffer, "GIVEN_ROWS", 3)
    rows = [Tally("t", b"%d" % number, {b"n:edits": 1}) for number in range(4)]
    assert len(sent(run(lambda _: iter([*rows[:3], *rows[:3]])))) == 3
    assert "at most 3 rows" in run(lambda _: iter(rows))[-1][3]
    monkeypatch.setattr(contribution_buffer, "GIVEN_BYTES", 100)
    assert sent(run(lambda _: iter([ONE] * 50))) == [Tally("t", b"alice", {b"n:edits": 50})]
    large = Contribute("t", b"r", {b"n:a": 1}, {b"c:d": bytes(100)})
    assert "at most 100 bytes before it ends or yields a Checkpoint" in run(lambda _: iter([large]))[-1][3]


def test_amounts_wrap_at_64_bits() -> None:
    most = Tally("t", b"r", {b"n:a": (1 << 63) - 1})
    assert sent(run(lambda _: iter([most, Tally("t", b"r", {b"n:a": 1})]))) == [Tally("t", b"r", {b"n:a": -(1 << 63)})]


def test_a_dropped_call_closes_the_function_and_gives_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "SLICE_EFFECTS", 1)
    closed = []

    def function(_: Any) -> Iterator[Any]:
        try:
            yield from (ONE, PUT, TWO)
        finally:
            closed.append(1)

    def of_batch(changes: tuple[Change, ...]) -> Iterator[Any]:
        for effect in function(changes):
            yield changes[0], effect

    for asked, is_batch in ((function, False), (of_batch, True)):
        call = Call([1, "t", "m:f", 8, [change(b"r", "1-1-1")], None, is_batch, ""])
        load = lambda _, asked=asked: Function(asked, wants_client=False)  # noqa: E731
        assert call.run(load, lambda: None)[1] == "more"  # type: ignore[arg-type, return-value]
        call.is_dropped = True
        assert call.run(load, lambda: None)[1:3] == ["done", []]  # type: ignore[arg-type, return-value]
    assert closed == [1, 1]


def test_what_is_closed_closes_what_it_reads_although_somebody_holds_it() -> None:
    for holding in (buffer_contributions, lambda yielded: buffer_contribution_pairs(yielded, ())):
        effects = (effect for effect in (PUT, PUT))
        yielded = holding(effects)
        assert next(yielded) == PUT
        yielded.close()  # type: ignore[attr-defined]
        assert effects.gi_frame is None


def test_slices_and_ends_never_decide_what_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model: of random yields, cut at random, the gifts are the sums between checkpoints and barriers."""
    for seed in range(20261124, 20261124 + SEEDS):
        rng = random.Random(seed)
        steps: list[Effect] = []
        for number in range(rng.randrange(12)):
            row = rng.choice([b"a", b"b"])
            tally = Tally("t", row, {rng.choice([b"n:x", b"n:y"]): rng.randrange(5)})
            steps.append(rng.choice([tally, tally, PUT, Checkpoint(b"%d" % number), Barrier()]))
        fails = rng.random() < 0.3

        def function(_: Change, steps: list[Effect] = steps, fails: bool = fails) -> Iterator[Effect]:
            yield from steps
            if fails:
                raise ValueError("as told")

        monkeypatch.setattr(slices, "SLICE_EFFECTS", rng.randrange(1, 4))
        gifts = [effect for effect in sent(run(function)) if effect != PUT]
        parts = [gift.part for gift in gifts]
        assert parts == sorted(parts)
        assert len({(gift.part, gift[2]) for gift in gifts}) == len(gifts), "one gift to a row in each part"
        gifts = [gift.in_part(0) for gift in gifts]
        assert gifts == expected(steps, fails), f"seed {seed}: {steps}"


def expected(steps: list[Effect], fails: bool) -> list[Effect]:
    found: list[Effect] = []
    sums: dict[bytes, dict[bytes, int]] = {}
    for step in [*steps, *([] if fails else [Barrier()])]:
        if isinstance(step, Tally):
            row = sums.setdefault(step[2], {})
            for total, amount in step[3].items():
                row[total] = row.get(total, 0) + amount
        elif isinstance(step, Checkpoint | Barrier):
            found += [Tally("t", row, totals) for row, totals in sums.items()]
            sums = {}
    return found


def test_nothing_is_held_of_functions_that_give_nothing() -> None:
    assert list(buffer_contributions(iter([PUT, Checkpoint(b"1"), PUT]))) == [PUT, Checkpoint(b"1"), PUT]
