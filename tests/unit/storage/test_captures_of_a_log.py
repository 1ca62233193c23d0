"""The server's log finds the captures of a region without a look at those of all others."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from columnar.storage.capture import Capture
from columnar.storage.server_log_files import ServerLog

REGIONS = ("r0", "r1", "r2")
STEPS = st.lists(
    st.tuples(st.sampled_from(["round", "round", "next segment", "opened anew", "brought in", "free"]),
              st.sets(st.sampled_from(REGIONS), min_size=1)),
    max_size=40,
)  # fmt: skip


@settings(max_examples=100)
@given(steps=STEPS)
def test_a_region_that_was_brought_in_waits_for_nothing_and_others_do(
    steps: list[tuple[str, set[str]]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    log = ServerLog(str(tmp_path_factory.mktemp("log") / "none"), (b"l" * 16, 1))
    stamp = count(1).__next__
    captures = {region: Capture(region, 1, log.era, stamp) for region in REGIONS}
    for what, regions in steps:
        if what == "round":
            for region in regions:
                captures[region].last = stamp()
            log.round_stands(log._segment, {captures[region]: captures[region].last for region in regions})
        elif what == "next segment":
            log._segment += 1
        elif what == "opened anew":
            captures |= {region: Capture(region, 1, log.era, stamp) for region in regions}
        elif what == "free":
            log.free()
        else:
            before = {one for one in log.waited_for() if one.region not in regions}
            for region in regions:
                log.brought_in(region)
            assert set(log.waited_for()) == before
        log.check_invariants()


def test_a_region_of_many_costs_its_own_captures(tmp_path: Path) -> None:
    log = ServerLog(str(tmp_path / "none"), (b"l" * 16, 1))
    looked_at = 0

    class Counted(Capture):
        __slots__ = ()

        def __getattribute__(self, name: str) -> object:
            nonlocal looked_at
            looked_at += name == "region"
            return super().__getattribute__(name)

    stamp = count(1).__next__
    log.round_stands(0, {Counted(f"r{number}", 1, log.era, stamp): 5 for number in range(1_000)})
    looked_at = 0
    for number in range(100):
        log.brought_in(f"r{number}")
    assert looked_at <= 100
