"""The proofs of a cluster for some seconds each: recovery, moves, the end of a supervisor; and their judges alone."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from columnar.client.cluster import RegionLocation
from tests.proofs import moves, recovery, supervisor
from tests.proofs.deliveries import judge
from tests.proofs.region_clients import Crowd, column_of, quantile, row_of

SEED = int(os.environ.get("COLUMNAR_SEED", "20261123"))


def test_rows_of_a_killed_server_answer_again(tmp_path: Path) -> None:
    plan = recovery.Plan(regions=3, kills=1, stops=0, per_second=60, written_bytes=4_000, seed=SEED)
    found = asyncio.run(recovery.Trial(tmp_path, plan, print).run())
    print(*recovery.report(found), sep="\n")
    assert found.problems == []
    assert [shot.lost_regions for shot in found.shots] == [3]
    assert found.counts["acknowledged writes"]


def test_moves_splits_and_merges_fail_no_call(tmp_path: Path) -> None:
    plan = moves.Plan(clients=3, moves=4, splits=1, merges=1, readers=2, group_members=3, per_second=60, seed=SEED)
    found = asyncio.run(moves.Trial(tmp_path, plan, print).run())
    print(*moves.report(found), sep="\n")
    assert found.problems == []
    assert found.counts["of the group: writes committed"] >= found.counts["acknowledged writes"] > 0
    assert {kind: len(pauses) for kind, pauses in found.pauses_s.items()} == {"move": 4, "split": 1, "merge": 1}


def test_moves_between_nodes_fail_no_call(tmp_path: Path) -> None:
    plan = moves.Plan(nodes=3, clients=4, moves=8, splits=1, merges=1, readers=2, per_second=60, seed=SEED)
    found = asyncio.run(moves.Trial(tmp_path, plan, print).run())
    print(*moves.report(found), sep="\n")
    assert found.problems == []
    assert {kind: len(pauses) for kind, pauses in found.pauses_s.items()} == {"move": 8, "split": 1, "merge": 1}


def test_a_killed_supervisor_leaves_no_process_and_loses_nothing(tmp_path: Path) -> None:
    """A folder is served in turn by a standalone, three servers, two servers and a standalone."""
    plan = supervisor.Plan((1, 3, 2), kills=3, per_second=100, seed=SEED, left_s=10)  # a busy machine's
    found = asyncio.run(supervisor.Trial(tmp_path, plan, print).run())
    print(*supervisor.report(found), sep="\n")
    assert found.problems == []
    assert len(found.ends_s) == 3
    assert found.counts["acknowledged writes"]


# --- the judges ----------------------------------------------------------------------------------------------


@pytest.fixture
def crowd() -> Crowd:
    """Return a client with five writes: write 1 has an unknown outcome, write 3 was refused."""
    made = Crowd(b"t", [b"0000"], per_second=1, seed=1)
    journal = made.clients[0].journal
    journal.sent, journal.unsure, journal.refused = 5, {1}, {3}
    return made


def test_an_acknowledged_write_is_missed(crowd: Crowd) -> None:
    row = row_of(b"0000", 0)
    cells = {column_of(n): b"%d" % n for n in (0, 2, 4)}
    assert crowd.missing([(row, cells)]) == []
    assert crowd.missing([(row, {**cells, column_of(1): b"1"})]) == []
    assert crowd.missing([(row, {**cells, column_of(4): b"0"})]) == ["f:04 of 0000/000000"]
    assert len(crowd.missing([])) == 3


@pytest.mark.parametrize(
    ("log", "missing", "repeats", "wrong"),
    [
        (b"0 2 4 ", 0, 0, ""),
        (b"0 1 2 4 ", 0, 0, ""),
        (b"0 2 1 4 ", 0, 0, ""),  # the write without an answer came late
        (b"0 2 0 2 4 ", 0, 2, ""),
        (b"0 4 2 ", 0, 0, "delivered as [0, 4, 2]"),
        (b"0 4 ", 1, 0, "changes [2] were not delivered"),
        (b"", 3, 0, "changes [0, 2, 4] were not delivered"),
    ],
)
def test_a_change_that_lacks_or_comes_out_of_order_is_found(
    crowd: Crowd, log: bytes, missing: int, repeats: int, wrong: str
) -> None:
    found = judge(crowd.clients, {row_of(b"0000", 0): log})
    assert (found.missing, found.repeats) == (missing, repeats)
    assert [problem.partition(": ")[2] for problem in found.problems] == ([wrong] if wrong else [])


def test_regions_are_shared_out_evenly() -> None:
    def at(server: str, number: int) -> RegionLocation:
        name = b"%s-%d" % (server.encode(), number)
        return RegionLocation(
            name, "", b"", b"", number, b"t", server, 1, "", 0, "OPEN", 0, 1, "", "", "", 0, 0, 0, 0, 0
        )

    regions = [*(at("s1", n) for n in range(3)), *(at("s2", n) for n in range(6))]
    assert recovery.even_moves(regions, 3) == [(b"s2-3", "s3"), (b"s2-4", "s3"), (b"s2-5", "s3")]
    assert recovery.even_moves(regions[:3], 3) == [(b"s1-1", "s2"), (b"s1-2", "s3")]
    assert recovery.even_moves(regions[2:4], 2) == []


def test_a_process_that_outlives_another_is_noticed() -> None:
    command = [sys.executable, "-c", "input()"]
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE) as one,
        subprocess.Popen(command, stdin=subprocess.PIPE) as other,
    ):
        assert supervisor.ended_within([one.pid], one.pid, 10) < 10
        assert supervisor.ended_within([one.pid, other.pid], one.pid, 0.05) == float("inf")
        other.kill()


def test_quantiles() -> None:
    assert [quantile([3, 1, 2, 4], share) for share in (0.5, 0.9, 1)] == [2, 4, 4]
    assert quantile([7], 0.99) == 7
