"""Whatever a function raises, sets or changes later is the end of its call, and never of the worker."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from columnar.client.errors import IOError as ClientError
from columnar.errors import ColumnarError
from columnar.flows.effect_contributions import ChangeContributions, Giver
from columnar.flows.effects import writes_of
from columnar.model.effect import Contribute, Effect, Put, Tally
from columnar.triggers.api import FailedChanges, Later
from columnar.triggers.frames import Frames
from columnar.triggers.slices import Call, Function
from columnar.triggers.worker import Worker
from tests.unit.triggers.test_worker import CHANGE


def outcome_of(function: Callable[[Any], Any], *, changes: int = 0) -> list[Any]:
    """Of one slice; ``changes``: of a batch."""
    call = Call([1, "t", "m:f", 8, [CHANGE] * (changes or 1), None, changes > 0, ""])
    return call.run(lambda _: Function(function, False), lambda: None)  # type: ignore[arg-type,return-value]


class Quiet(Later):
    def __init__(self) -> None:
        """It says no time."""


class Evasive(Later):
    def __init__(self) -> None: ...

    @property
    def seconds(self) -> float:  # type: ignore[override]
        raise SystemExit(3)


class Unlike(Exception):
    @property
    def __class__(self) -> Any:
        raise RuntimeError("it has no class")


class Closed(Exception):
    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(f"it has no {name}")


class Told(ClientError):
    def __init__(self, message: Any) -> None:
        self.message = message


@pytest.mark.parametrize(
    ("raised", "what", "error"),
    [
        (Quiet, "failed", "AttributeError"),
        (Evasive, "failed", "SystemExit"),
        (Unlike, "failed", "no traceback can be made of what was raised: RuntimeError"),
        (Closed, "failed", "no traceback can be made of what was raised: RuntimeError"),
        (lambda: Told("text"), "failed", "Told"),
        (lambda: Told(None), "failed", "Told"),
        (lambda: Told(5), "failed", "Told"),
        (lambda: Told("a.b.NotServingRegionException: moved"), "blocked", "NotServingRegionException: moved"),
        (lambda: FailedChanges({0: "no"}), "failed", "FailedChanges"),
    ],
)
def test_an_exception_that_is_unlike_others_is_the_end_of_its_call(
    raised: Callable[[], BaseException], what: str, error: str
) -> None:
    def raises(_change: Any) -> None:
        raise raised()

    outcome = outcome_of(raises)
    assert outcome[1:3] == [what, []]
    assert error in outcome[3]


class Named(FailedChanges):
    def __init__(self, *failed: Any) -> None:
        for one in failed:
            self.failed = one


@pytest.mark.parametrize(
    ("named", "error"),
    [
        (Named(), "AttributeError"),
        (Named(None), "names no change of the batch: None"),
        (Named({}), "names no change of the batch: {}"),
        (Named({2: "no"}), "names the change at 2 of a batch of 2"),
        (Named({-1: "no"}), "names the change at -1 of a batch of 2"),
        (Named({"x": "no"}), "names the change at 'x' of a batch of 2"),
        (Named({True: "no"}), "names the change at True of a batch of 2"),
        (Named({0: None}), "says None of the change at 0, which is no text"),
    ],
)
def test_failed_changes_that_name_none_of_the_batch_are_a_failure_of_all(named: Named, error: str) -> None:
    """A batch that fails by none of its changes would come again at once, for ever."""

    def raises(_changes: Any) -> None:
        raise named

    outcome = outcome_of(raises, changes=2)
    assert outcome[1:3] == ["failed", []]
    assert error in outcome[3]


def test_failed_changes_of_the_batch_are_named() -> None:
    def raises(_changes: Any) -> None:
        raise Named({1: "no"})

    assert outcome_of(raises, changes=2)[1:4] == ["named", [], [[1, "no"]]]


@pytest.mark.parametrize("changes", [0, 2])
def test_a_function_that_yields_what_is_no_effect_clears_up_within_its_call(changes: int) -> None:
    cleared = list[str]()

    def yields(_argument: Any) -> Iterator[Any]:
        try:
            yield "text"
        finally:
            cleared.append("up")

    assert outcome_of(yields, changes=changes)[1] == "failed"
    assert cleared == ["up"]


def test_a_function_whose_gifts_are_refused_clears_up_within_its_call() -> None:
    cleared = list[str]()

    def yields(_change: Any) -> Iterator[Any]:
        try:
            yield Tally("t", b"r", {b"n:x": 1})
            yield Contribute("t", b"r", {b"n:x": 1})
        finally:
            cleared.append("up")

    assert "keep different books" in outcome_of(yields)[3]
    assert cleared == ["up"]


def put(value: Any) -> Effect:
    made = Put("out", b"r", {b"f:a": b"1"})
    made[3][b"f:a"] = value
    return made


def tally(amount: Any) -> Effect:
    made = Tally("out", b"r", {b"n:a": 1})
    made[3][b"n:a"] = amount
    return made


@pytest.mark.parametrize("effect", [put(object()), put("\ud800"), put({1, 2}), put("text"), put(5), tally(1 << 70)])
@pytest.mark.parametrize("what", ["done", "more"])
@pytest.mark.parametrize("is_batch", [False, True])
def test_an_effect_that_was_changed_after_it_was_made_is_refused_by_the_store(
    effect: Effect, what: str, is_batch: bool
) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        good = Put("out", b"q", {b"f:a": b"1"})
        held: list[Any] = [good, effect]
        worker = Worker(theirs, "127.0.0.1", 1, frozenset())
        worker.send_frame("did", [[1, what, [[0, one] for one in held] if is_batch else held, None, "", None, 5, 5]])
        ((kind, (outcome,)),) = Frames().feed(ours.recv(1 << 16))
    assert (kind, outcome[:2]) == ("did", [1, what])
    first, second = [one[1] for one in outcome[2]] if is_batch else outcome[2]
    giving = ChangeContributions(Giver("t"), b"r", (1, 1, 1))
    assert writes_of([first], 5, make_contributions=lambda: giving)
    if isinstance(second, str):
        assert "was changed after it was made" in second
    with pytest.raises(ColumnarError):
        writes_of([second], 5, make_contributions=lambda: giving)
