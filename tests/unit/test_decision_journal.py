"""Decisions outlive their master: the file, its bounds, and what a crash may leave of it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from columnar.master.instructions import DECISIONS_KEPT
from columnar.model.cluster_status_records import DecisionStatus
from columnar.model.region_info import RegionInfo
from columnar.roles import decision_journal
from columnar.roles.decision_journal import NAME, DecisionJournal, line_of, parse_decision
from tests.support.operated_cluster import OperatedCluster

TEXT = "t 8f14e45f goes to s2: s1 is gone"
LOOK = DecisionStatus(0, "give", ("8f14e45f",), "s2", "s1 is gone", TEXT, 1_764_176_531_000)
LINE = (
    b'{"at_ms": 1764176531000, "kind": "give", "regions": ["8f14e45f"], "server": "s2", '
    b'"text": "t 8f14e45f goes to s2: s1 is gone", "why": "s1 is gone"}\n'
)


def operated() -> OperatedCluster:
    return OperatedCluster([RegionInfo("t", 5, b"", b"m"), RegionInfo("t", 6, b"m", b"")], 3)


def numbered(*numbers: int) -> list[DecisionStatus]:
    return [DecisionStatus(0, "say", (), "", "", f"number {number}", number) for number in numbers]


def test_the_bytes_of_a_line() -> None:
    assert line_of(LOOK) == LINE
    assert parse_decision(LINE) == LOOK


def test_decisions_are_read_again_in_their_order(tmp_path: Path) -> None:
    assert DecisionJournal(str(tmp_path)).read_decisions() == []
    for part in ((1, 2), (3,)):
        DecisionJournal(str(tmp_path)).append(numbered(*part))
    assert DecisionJournal(str(tmp_path)).read_decisions() == numbered(1, 2, 3)
    assert (tmp_path / NAME).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("left", [b'{"at_ms": 17', b"\xff\xfe\n", b"[]\n", b'{"at_ms": "x", "regions": 3}\n'])
def test_a_line_that_is_not_whole_is_passed_over(tmp_path: Path, left: bytes) -> None:
    journal = DecisionJournal(str(tmp_path))
    journal.append(numbered(1))
    with (tmp_path / NAME).open("ab") as held:
        held.write(left)
    assert journal.read_decisions() == numbered(1)


def test_the_file_is_bounded_and_keeps_the_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decision_journal, "JOURNAL_BYTES", 40_000)
    journal = DecisionJournal(str(tmp_path))
    for number in range(1_000):
        journal.append(numbered(number))
        assert (tmp_path / NAME).stat().st_size <= 40_000
    assert journal.read_decisions() == numbered(*range(1_000 - DECISIONS_KEPT, 1_000))


def test_a_disk_that_refuses_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    journal = DecisionJournal(str(tmp_path / "gone"))
    for _ in range(3):
        journal.append(numbered(1))
    assert [record.message.startswith("decisions are not kept") for record in caplog.records] == [True]


def test_a_master_shows_what_those_before_it_decided() -> None:
    first = operated()
    wall_ms = 1_000_000
    first.control.reports._wall_ms = lambda: wall_ms
    moved = first.control.reports.decisions()
    assert moved
    assert first.control.reports.take_decisions() == moved[::-1]
    assert first.control.reports.take_decisions() == []
    assert all(one.at_ms == wall_ms - one.ago_ms for one in moved)

    second = operated()
    second.control.reports._wall_ms = lambda: wall_ms + 60_000
    own = len(second.control.reports.decisions())
    second.control.reports.follow_decisions(moved[::-1])
    shown = second.control.reports.decisions()
    assert [one.text for one in shown[own:]] == [one.text for one in moved]
    assert shown[own].ago_ms == 60_000 + moved[0].ago_ms
    assert second.control.reports.take_decisions() == shown[:own][::-1], "its own alone are written"


def test_a_move_is_taken_once() -> None:
    cluster = operated()
    cluster.control.reports._wall_ms = lambda: 1
    cluster.control.reports.take_decisions()
    asyncio.run(cluster.control.switch("balancer", False, False))
    region = next(iter(cluster.state.current.places.values()))
    asyncio.run(cluster.control.unassign(region.info, False))
    assert [one.kind for one in cluster.control.reports.take_decisions()] == ["close"]


@pytest.mark.parametrize("at_ms", ["1e999", "[" * 100_000, '"x"', "null", "{}"])
def test_a_line_that_was_damaged_does_not_keep_the_store_from_starting(tmp_path: Path, at_ms: str) -> None:
    whole = line_of(DecisionStatus(0, "give", ("ab",), "s1", "new", "t ab goes to s1: new", 5))
    damaged = whole.replace(b'"at_ms": 5', b'"at_ms": ' + at_ms.encode())
    assert damaged != whole
    (tmp_path / NAME).write_bytes(damaged + whole)
    assert [look.text for look in DecisionJournal(str(tmp_path)).read_decisions()] == ["t ab goes to s1: new"]


def test_a_line_that_a_full_disk_cut_off_costs_no_later_one(tmp_path: Path) -> None:
    whole = line_of(DecisionStatus(0, "give", ("ab",), "s1", "new", "t ab goes to s1: new", 5))
    (tmp_path / NAME).write_bytes(whole + whole[:30])
    journal = DecisionJournal(str(tmp_path))
    journal.append([DecisionStatus(0, "fence", (), "s2", "it ended", "s2 is fenced", 6)])
    assert [look.kind for look in journal.read_decisions()] == ["give", "fence"]
