"""The worker's side of its socket: what functions print, raise and are."""

from __future__ import annotations

import logging
import socket
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from columnar.model.effect import Put
from columnar.triggers import slices, threads
from columnar.triggers.frames import Frames, pack
from columnar.triggers.slices import OUTPUT, SLICE_EFFECTS
from columnar.triggers.worker import OUTPUT_BYTES, Worker
from tests.support.yielding_functions import effects_of

STEPS = [[1, b"f:a", 5, b"v"], [3, b"f", 5, b""]]
CHANGE: list[Any] = [b"t", b"r", 7, "1-1-1", STEPS, {b"f:a": b"v"}, {}, 2, False, 5, 3, None, None, False]


class Store:
    """The other end of a worker that runs in threads of the test."""

    def __init__(self) -> None:
        self.ours, theirs = socket.socketpair()
        self.ours.settimeout(10)
        self._frames = Frames()
        self._held: list[list[Any]] = []
        self._outcomes: list[list[Any]] = []
        self.began: list[int] = []
        self.alive = 0
        worker = Worker(theirs, "127.0.0.1", 1, frozenset({"allowed_triggers"}))
        self._thread = threading.Thread(target=worker.serve)
        self._theirs = theirs
        self._thread.start()

    def ask(self, *parts: Any) -> list[Any]:
        self.ours.sendall(pack(*parts))
        return self.heard()

    def heard(self) -> list[Any]:
        while not self._held:
            self._held += self._frames.feed(self.ours.recv(1 << 16))
        return self._held.pop(0)

    def send(self, number: int, function: str, side_by_side: int = 8, progress: list[Any] | None = None) -> None:
        call = [number, function, f"allowed_triggers:{function}", side_by_side, [CHANGE], progress, False, ""]
        self.ours.sendall(pack("run", [call]))

    def outcome(self) -> list[Any]:
        """The next outcome of a call."""
        while not self._outcomes:
            self.hear()
        return self._outcomes.pop(0)

    def hear(self) -> None:
        kind, told = self.heard()
        if kind == "did":
            self._outcomes += told
        elif kind == "began":
            self.began += told
        else:
            assert kind == "alive"
            self.alive += 1

    def call(self, number: int, function: str) -> list[Any]:
        self.send(number, function)
        return self.outcome()

    def close(self) -> None:
        self.ours.close()
        self._thread.join(10)
        self._theirs.close()  # a process would close it by ending


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Store]]:
    """Call it within the test: pytest gives each phase a standard output of its own."""
    module = types.ModuleType("allowed_triggers")

    def prints(change: Any, _client: Any) -> None:
        print("first", change.row, change.changes[1].kind, change.attempt)
        print("to stderr", file=sys.stderr)

    def prints_much(_change: Any, _client: Any) -> None:
        for _ in range(1_000):
            print("x" * 100)

    def raises(_change: Any, _client: Any) -> None:
        raise ValueError("lone \udcff surrogate")

    def exits(_change: Any, _client: Any) -> None:
        raise SystemExit(3)

    vars(module).update(prints=prints, prints_much=prints_much, raises=raises, exits=exits, number=5)
    vars(module).update(effects_of(vars(module)))
    monkeypatch.setitem(sys.modules, "allowed_triggers", module)
    monkeypatch.setattr(
        "columnar.triggers.worker.Connection", lambda *_, user: types.SimpleNamespace(user=user, close=lambda: None)
    )
    started: list[Store] = []

    def start_worker() -> Store:
        monkeypatch.setattr(sys, "stdout", sys.stdout)  # the worker takes both
        monkeypatch.setattr(sys, "stderr", sys.stderr)
        started.append(Store())
        assert started[0].heard() == ["ready", 0]
        return started[0]

    yield start_worker
    started[0].close()


def test_levels_of_the_store_decide_what_functions_log(
    start: Callable[[], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    def logs(_change: Any, _client: Any) -> None:
        logging.getLogger("of.functions").debug("a detail")
        logging.getLogger("of.others").info("nothing special")
        logging.getLogger("of.others").warning("something special")

    vars(sys.modules["allowed_triggers"]).update(logs=logs)
    monkeypatch.setattr(logging.root, "handlers", [])  # pytest's own
    monkeypatch.setattr(logging.root, "level", logging.WARNING)
    store = start()
    assert store.call(1, "logs")[OUTPUT].strip() == "something special"
    store.ours.sendall(pack("levels", {"of.functions": "DEBUG"}))
    said = store.call(2, "logs")[OUTPUT]
    assert "a detail" in said
    assert "nothing" not in said
    assert "something special" in said
    store.ours.sendall(pack("levels", {"root": "INFO"}))
    said = store.call(3, "logs")[OUTPUT]
    assert "a detail" not in said, "it has no level of its own any more"
    assert "nothing special" in said
    store.ours.sendall(pack("levels", {}))
    assert "nothing special" not in store.call(4, "logs")[OUTPUT]
    assert logging.getLogger("of.functions").level == logging.NOTSET


def test_the_client_of_a_call_between_two_slices_is_no_other_calls(start: Callable[[], Store]) -> None:
    held: dict[str, list[Any]] = {"rests": [], "calls": []}

    def rests(_change: Any, client: Any) -> Iterator[Any]:
        for number in range(2 * SLICE_EFFECTS):
            held["rests"].append(client)
            yield Put("out", b"%d" % number, {b"f:a": b"1"})

    def calls(_change: Any, client: Any) -> None:
        held["calls"].append(client)

    vars(sys.modules["allowed_triggers"]).update(rests=rests, calls=calls)
    store = start()
    assert store.call(1, "rests")[1] == "more"
    for number in range(2, 6):  # whichever thread runs it
        assert store.call(number, "calls")[1] == "done"
    store.ours.sendall(pack("go", 1))
    assert store.outcome()[1] == "more"
    assert len({id(client) for client in held["rests"]}) == 1
    assert not any(client is held["rests"][0] for client in held["calls"]), "two threads on one connection"
    store.ours.sendall(pack("go", 1))
    assert store.outcome()[1] == "done"
    for number in range(6, 12):
        assert store.call(number, "calls")[1] == "done"
    assert len({id(client) for client in held["calls"]}) <= 3, "connections are used again"


def test_what_is_printed_comes_with_the_answer(start: Callable[[], Store]) -> None:
    store = start()
    outcome = store.call(1, "prints")
    assert outcome[:6] == [1, "done", [], None, "first b'r' delete family 2\nto stderr\n", None]
    assert store.call(2, "prints")[1] == "done"


def test_output_is_bounded(start: Callable[[], Store]) -> None:
    store = start()
    assert len(store.call(1, "prints_much")[4]) == OUTPUT_BYTES


@pytest.mark.parametrize(
    ("function", "error"), [("raises", "ValueError: lone ? surrogate"), ("exits", "SystemExit: 3")]
)
def test_whatever_is_raised_is_told_and_the_thread_lives(start: Callable[[], Store], function: str, error: str) -> None:
    store = start()
    for call_id in range(20):  # more than there are threads
        outcome = store.call(call_id, function)
        assert outcome[:3] == [call_id, "failed", []]
        assert error in outcome[3]


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        ("allowed_triggers:prints", None),
        ("allowed_triggers:number", "is no function"),
        ("allowed_triggers:absent", "AttributeError"),
        ("allowed_triggers:one", None),
        ("allowed_triggers:none_of_it", "write def none_of_it(change) or def none_of_it(change, client)"),
        ("allowed_triggers:awaits", "awaits is no trigger: it is async"),
        ("allowed_triggers:awaits_and_yields", "awaits_and_yields is no trigger: it is async"),
        ("os:getcwd", "module os is not among --trigger-modules"),
    ],
)
def test_functions_are_checked(start: Callable[[], Store], function: str, problem: str | None) -> None:
    store = start()
    kind, call_id, found = store.ask("check", 7, function)
    assert (kind, call_id) == ("checked", 7)
    assert found is None if problem is None else problem in found


def test_a_call_whose_function_cannot_be_imported_is_blocked(start: Callable[[], Store]) -> None:
    outcome = start().call(1, "absent")
    assert outcome[:3] == [1, "blocked", []]
    assert "its function allowed_triggers:absent cannot be imported: AttributeError: " in outcome[3]


PUT_ONE = [1, b"out", b"r", {b"f:a": b"1"}]


@pytest.mark.parametrize("function", ["one", "returns", "returns_a_tuple"])
def test_what_is_yielded_comes_with_the_outcome(start: Callable[[], Store], function: str) -> None:
    assert start().call(1, function)[:4] == [1, "done", [PUT_ONE], None]


def test_much_comes_in_slices_with_checkpoints(start: Callable[[], Store], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "SLICE_S", 20.0)
    store = start()
    first = store.call(1, "many")
    assert (first[1], len(first[2]), first[5]) == ("more", SLICE_EFFECTS, [b"7", 0])
    assert store.call(2, "one")[:2] == [2, "done"], "others run between two slices"
    store.ours.sendall(pack("go", 1))
    second = store.outcome()
    assert (second[1], len(second[2]), second[5]) == ("more", SLICE_EFFECTS, [b"507", 0])
    store.send(3, "many", progress=second[5])
    again = store.outcome()
    assert again[2][0][2] == b"507", "it begins behind its checkpoint"
    store.ours.sendall(pack("go", 1))
    last = store.outcome()
    assert (last[1], len(last[2])) == ("more", SLICE_EFFECTS)
    store.ours.sendall(pack("go", 1))
    assert store.outcome()[:3] == [1, "done", []]
    assert [effect[2] for one in (first, second, last) for effect in one[2]] == [b"%d" % n for n in range(1_500)]


def test_a_barrier_ends_a_slice_that_has_something_in_it(start: Callable[[], Store]) -> None:
    store = start()
    assert store.call(1, "in_steps")[:3] == [1, "more", [PUT_ONE]]
    store.ours.sendall(pack("go", 1))
    assert store.outcome()[:3] == [1, "done", [[1, b"out", b"after", {b"f:a": b"1"}]]]


def test_a_call_that_is_dropped_between_slices_clears_up(start: Callable[[], Store]) -> None:
    store = start()
    closed = sys.modules["allowed_triggers"].closed
    assert store.call(1, "many")[1] == "more"
    assert closed == []
    store.ours.sendall(pack("drop", 1))
    assert store.outcome()[:3] == [1, "done", []]
    assert closed == [b"r"]


def test_outcomes_with_large_effects_do_not_wait_for_each_other(
    start: Callable[[], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The outcomes of 64 quick calls of four megabytes each would be a frame that the store does not take."""
    monkeypatch.setattr(threads, "GATHER_S", 60.0)
    store = start()
    store.call(1, "megabyte")  # imported
    calls = [[n, "megabyte", "allowed_triggers:megabyte", 64, [CHANGE], None, False, ""] for n in range(2, 12)]
    store.ours.sendall(pack("run", calls))
    left = len(calls)
    while left:
        kind, told = store.heard()
        if kind == "did":
            assert len(told) == 1
            left -= 1


def test_large_effects_make_short_slices(start: Callable[[], Store]) -> None:
    store = start()
    assert [len(store.call(1, "large")[2])] == [1]
    store.ours.sendall(pack("go", 1))
    assert len(store.outcome()[2]) == 1


@pytest.mark.parametrize(
    ("function", "what", "error"),
    [
        ("wrong", "failed", "yields effects, as Put and Tally, not 'text' of type str"),
        ("returns_numbers", "failed", "yields effects, as Put and Tally, not 1 of type int"),
        ("huge", "failed", "one effect has 94371871 bytes, at most 67108864 are taken as one step: yield several"),
        ("later", "later", 2.5),
        ("looks", "failed", "change.now is not read for this trigger"),
    ],
)
def test_a_call_that_does_not_end_well_has_no_effects(
    start: Callable[[], Store], monkeypatch: pytest.MonkeyPatch, function: str, what: str, error: str | float
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "CHANGE", [*CHANGE[:5], None, *CHANGE[6:]])
    outcome = start().call(1, function)
    assert outcome[1:3] == [what, []]
    assert outcome[3] == error or str(error) in outcome[3]


@pytest.mark.parametrize(("function", "what"), [("checks_and_is_put_off", "later"), ("checks_and_fails", "failed")])
def test_what_was_yielded_up_to_a_checkpoint_is_kept(start: Callable[[], Store], function: str, what: str) -> None:
    outcome = start().call(1, function)
    assert (outcome[1], outcome[2], outcome[5]) == (what, [PUT_ONE], [b"half", 0])


def entered(count: int) -> None:
    """So many calls wait at the gate."""
    for _ in range(count):
        assert sys.modules["allowed_triggers"].entered.acquire(timeout=20)


def no_more_enter() -> bool:
    return not sys.modules["allowed_triggers"].entered.acquire(timeout=0.05)


@pytest.mark.parametrize("function", ["waits", "waits_with_client"])
def test_calls_that_block_hold_up_nobody_and_the_store_hears_of_them(start: Callable[[], Store], function: str) -> None:
    store = start()
    assert store.call(8, "one")[:2] == [8, "done"]
    assert store.began == [8], "the first call of a function says that its import is over"
    store.began.clear()
    for number in range(4):
        store.send(number, function)
    entered(4)
    assert store.call(9, "one")[:2] == [9, "done"]
    while len(store.began) < 4:
        store.hear()
    assert sorted(store.began) == [0, 1, 2, 3]
    sys.modules["allowed_triggers"].gate.set()
    assert sorted(store.outcome()[0] for _ in range(4)) == [0, 1, 2, 3]
    assert store.call(10, "one")[:2] == [10, "done"]


@pytest.mark.parametrize("function", ["waits", "waits_with_client"])
def test_no_more_calls_of_a_trigger_run_than_side_by_side(start: Callable[[], Store], function: str) -> None:
    store = start()
    for number in range(5):
        store.send(number, function, side_by_side=2)
    entered(2)
    assert no_more_enter()
    assert store.call(9, "one")[:2] == [9, "done"], "of another trigger"
    sys.modules["allowed_triggers"].gate.set()
    assert sorted(store.outcome()[0] for _ in range(5)) == [0, 1, 2, 3, 4]
    entered(3)
    sys.modules["allowed_triggers"].gate.clear()
    for number in range(10, 15):
        store.send(number, function, side_by_side=2)
    entered(2)
    assert no_more_enter(), "as many as before"
    sys.modules["allowed_triggers"].gate.set()
    assert sorted(store.outcome()[0] for _ in range(5)) == [10, 11, 12, 13, 14]


def test_a_call_between_two_slices_counts_as_running(start: Callable[[], Store]) -> None:
    store = start()
    store.send(1, "many", side_by_side=1)
    assert store.outcome()[:2] == [1, "more"]
    store.send(2, "many", side_by_side=1)
    assert store.call(9, "one")[:2] == [9, "done"]
    store.ours.sendall(pack("drop", 1))
    assert [store.outcome()[:2] for _ in range(2)] == [[1, "done"], [2, "more"]]


def test_a_worker_whose_calls_block_says_that_it_lives(
    start: Callable[[], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "HEARTBEAT_S", 0.02)
    store = start()
    store.send(1, "waits")
    entered(1)
    while store.alive < 3:
        store.hear()
    sys.modules["allowed_triggers"].gate.set()
    assert store.outcome()[:2] == [1, "done"]


def test_a_worker_whose_calls_block_says_so_no_oftener_than_it_must(
    start: Callable[[], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "HEARTBEAT_S", 600.0)
    looked = threading.Semaphore(0)
    look = threads.Threads._check_leader
    monkeypatch.setattr(threads.Threads, "_check_leader", lambda held, seen: (look(held, seen), looked.release())[0])
    store = start()
    assert store.call(1, "one")[:2] == [1, "done"], "it says something"
    store.send(2, "waits")
    entered(1)
    for _ in range(8):
        assert looked.acquire(timeout=20)
    sys.modules["allowed_triggers"].gate.set()
    assert store.outcome()[:2] == [2, "done"]
    assert store.alive == 0


def test_a_worker_at_rest_is_at_rest(start: Callable[[], Store], monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    look = threads.Threads._check_leader
    monkeypatch.setattr(threads.Threads, "_check_leader", lambda held, seen: (looks.append(1), look(held, seen))[1])
    store = start()
    assert store.call(1, "one")[:2] == [1, "done"]
    deadline_s = time.monotonic() + 10
    count = -1
    while count != len(looks) and time.monotonic() < deadline_s:
        count = len(looks)
        time.sleep(20 * threads.TICK_S)
    assert count == len(looks)
