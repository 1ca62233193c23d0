"""What ``python -m tests.proofs.nodes`` judges by: who asks which row, and what no kill may show."""

from __future__ import annotations

import threading
from datetime import datetime
from typing import Any, cast

import pytest

from tests.proofs.node_clients import LATE_S, Load, Probe
from tests.proofs.nodes import NAMED_S, SAID_S, Trial, problems_of, said_after
from tests.support.many_nodes import ManyNodes, NodeProcess, until


class FakeNode:
    """A node that answers while it lives; it notes who asked, and a row may be held."""

    def __init__(self, name: str, held: set[bytes]) -> None:
        self.name = name
        self.lives = True
        self.asked: set[bytes] = set()
        self._held = held
        self._answer = threading.Event()

    def rows(self) -> Any:
        if not self.lives:
            raise ConnectionRefusedError
        return self

    def get(self, _table: bytes, row: bytes) -> bytes | None:
        if not self.lives:
            raise ConnectionResetError
        self.asked.add(row)
        if row in self._held:
            self._answer.wait()
        return None

    def put(self, _table: bytes, row: bytes, value: bytes) -> None:
        pass

    def close(self) -> None:
        pass

    def release(self) -> None:
        self._answer.set()


class FakeCluster:
    def __init__(self, held: set[bytes] | None = None) -> None:
        self.nodes = [FakeNode(f"n{number}", held or set()) for number in (1, 2, 3)]


ROWS = [b"%d" % number for number in range(6)]


def load_of(cluster: FakeCluster) -> Load:
    return Load(cast(ManyNodes, cluster), ROWS)


def test_each_row_is_asked_at_its_own_node_and_at_another_one_only_while_that_is_dead() -> None:
    """All clients called the first node that lived, so a kill of it disturbed every row, and of another one none."""
    cluster = FakeCluster()
    first = cluster.nodes[0]
    with load_of(cluster) as load:
        until(lambda: all(probe.answered_s for probe in load.probes))
        assert [sorted(node.asked) for node in cluster.nodes] == [[b"0", b"3"], [b"1", b"4"], [b"2", b"5"]]
        first.lives = False
        until(lambda: {b"0", b"3"} <= cluster.nodes[1].asked)
        first.asked.clear()
        first.lives = True
        until(lambda: first.asked == {b"0", b"3"})
        assert {probe.asked for probe in load.probes} == {"n1", "n2", "n3"}
        assert not cluster.nodes[2].asked & {b"0", b"3"}, "others stayed where they were"


def test_no_row_waits_behind_one_that_nobody_serves() -> None:
    """Each of eight clients had rows of dead servers among its own, so no other row was asked either."""
    cluster = FakeCluster(held={b"0"})
    with load_of(cluster) as load:
        until(lambda: all(probe.answered_s for probe in load.probes[1:]))
        for probe in load.probes:
            probe.forget()
            probe.killed_s = 0.0
        until(lambda: all(probe.again_s for probe in load.probes[1:]))
        assert not load.probes[0].answered_s
        cluster.nodes[0].release()
        until(lambda: load.probes[0].again_s > 0)


def test_the_first_answer_after_a_kill_counts_and_not_the_last() -> None:
    node = FakeNode("n1", set())
    probe = Probe(b"0", cast(NodeProcess, node))
    probe.forget()
    assert probe.step(node.rows())
    assert not probe.again_s, "nothing was killed"
    probe.killed_s = probe.answered_s
    assert probe.step(node.rows())
    first_s = probe.again_s
    assert probe.step(node.rows())
    assert first_s == probe.again_s < probe.answered_s
    assert not probe.is_disturbed
    node.lives = False
    assert not probe.step(node)  # type: ignore[arg-type]
    assert probe.is_disturbed
    probe.forget()
    assert not probe.is_disturbed
    probe.longest_s = LATE_S + 0.1
    assert probe.is_disturbed


@pytest.mark.parametrize("kind", ["node", "leader", "both"])
def test_a_delay_that_nobody_named_counts_as_late(kind: str) -> None:
    """A leader that never said what it waited for passed."""
    silent = Trial(kind, 5.0, NAMED_S + 0.1)
    assert [text.partition(":")[0] for text in problems_of([Trial(kind), silent], "none")] == [f"kill 2 ({kind})"]
    assert problems_of([silent], "evict") == []
    assert problems_of([Trial(kind, 5.0, NAMED_S - 0.1)], "none") == []
    assert problems_of([Trial(kind, 5.0, 60.0, SAID_S)], "none") == []
    assert "said late" in problems_of([Trial(kind, 5.0, 60.0, SAID_S + 0.1)], "none")[0]
    assert problems_of([Trial("server", 5.0, NAMED_S + 0.1)], "none") == []


@pytest.mark.parametrize("kind", ["server", "node", "leader", "both"])
def test_a_row_that_should_not_notice_a_kill_fails_the_run(kind: str) -> None:
    assert "1 of 20 rows" in problems_of([Trial(kind, spared=20, disturbed=1)], "evict")[0]
    assert problems_of([Trial(kind, spared=20)], "evict") == []


END = "2026-11-27 10:00:{} WARNING server n2-s1.7 has ended: its lease is over"
SAID = "2026-11-27 10:00:{} WARNING the file system has held back the log of server n2-s1.7"


@pytest.mark.parametrize(
    ("lines", "said_s"),
    [
        ([END.format("01,000"), SAID.format("02,500")], 1.5),
        ([END.format("01,000"), SAID.format("02,500"), SAID.format("04,000")], 1.5),
        ([END.format("01,000"), SAID.format("02,500"), END.format("03,000")], None),
        ([SAID.format("02,500")], None),
        ([END.format("01,000")], None),
        (["--- n1", "no time"], None),
    ],
)
def test_a_line_about_a_delay_counts_from_the_last_end_of_a_lease(lines: list[str], said_s: float | None) -> None:
    assert said_after("\n".join(lines), datetime(2026, 11, 27, 10)) == said_s


def test_a_line_of_an_earlier_trial_names_nothing() -> None:
    """With it a silent leader passed every trial after one that spoke."""
    logs = "\n".join([END.format("01,000"), SAID.format("02,500")])
    assert said_after(logs, datetime(2026, 11, 27, 10, 0, 10)) is None
