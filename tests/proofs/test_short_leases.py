"""The proof of leases for some kills, and what it finds wrong; ``python -m tests.proofs.leases`` is the long form."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.proofs.kill_runs import SEED, check_short_run
from tests.proofs.killed_cluster import KilledCluster
from tests.proofs.leases import FencedWrite, Holding, LeaseHistory, prove
from tests.proofs.verdict import Plan


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # sockets whose server was shot
def test_it_holds_over_servers(tmp_path: Path) -> None:
    plan = Plan(0, 4, SEED, 1.5, upheaval_pause_s=0.1, most_kills=2, servers=2)
    check_short_run(prove, KilledCluster, plan, tmp_path)


def kinds(history: LeaseHistory) -> list[str]:
    return [problem.partition(":")[0] for problem in history.problems(b"job")]


def test_holders_one_after_the_other_are_right() -> None:
    assert kinds(LeaseHistory([Holding(1, 0.0, 1.0, 2.0), Holding(2, 0.5, 2.0, 3.0), Holding(4, 3.0, 3.5, 4.0)])) == []


@pytest.mark.parametrize(
    ("second", "found"),
    [
        (Holding(1, 2.5, 3.0, 4.0), ["twice"]),
        (Holding(2, 0.5, 1.5, 4.0), ["two hold"]),
        (Holding(0, 2.5, 3.0, 4.0), ["two hold", "backwards"]),
    ],
)
def test_what_is_wrong_with_holders_is_noticed(second: Holding, found: list[str]) -> None:
    history = LeaseHistory([Holding(1, 0.0, 1.0, 2.0), second])
    if second.token == 0:
        second.ends_s = 5.0
    assert kinds(history) == found


def test_a_write_of_an_earlier_holder_is_noticed() -> None:
    late, new = FencedWrite(1, 2.0, 3.0), FencedWrite(2, 0.0, 1.0)
    assert kinds(LeaseHistory(writes=[new, late])) == ["unfenced"]
    assert kinds(LeaseHistory(writes=[FencedWrite(2, 0.0, 2.5), late])) == [], "they were under way together"
