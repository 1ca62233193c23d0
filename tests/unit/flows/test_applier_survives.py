"""The applier goes on after an exception at any of its calls: one job fails by it at most."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from columnar.errors import NoSuchColumnFamily, ProgramFault
from columnar.flows import applier, governor
from tests.support.injected_faults import DRAWN, Calls, survived
from tests.unit.flows.test_applier import Bench, put


async def jobs_of_all_kinds(calls: Calls) -> None:
    bench = Bench()
    try:
        bench.region(b"a")  # open: the other one has its jobs go aside
        with calls.armed():
            bench.apply("both", put(b"a", b"1"), put(b"z", b"1"))
            bench.apply("row twice", put(b"b", b"1"), put(b"b", b"2"))
            bench.apply("refused", put(b"c", column=b"none:q"), put(b"c"))
            bench.apply("shared", put(b"d"))
            bench.apply("erased", put(b"e"), [2, b"t", b"e", None])
            bench.apply("many", *(put(b"f%d" % n) for n in range(6)))
            await bench.until_told(6)
        bench.apply("afterwards", put(b"g", b"2"))
        await bench.until_told(7)
        check(bench)
    finally:
        bench.background.close()
        await bench.close()


def check(bench: Bench) -> None:
    told = dict(bench.told)
    assert len(told) == len(bench.told), "each is told once"
    assert isinstance(told.pop("refused"), NoSuchColumnFamily | ProgramFault)
    faults = [name for name, error in bench.told if isinstance(error, ProgramFault)]
    assert len(faults) <= 1, "one job is at fault"
    assert [name for name, error in told.items() if error is not None and name not in faults] == []
    rows = {
        "both": [(b"a", [b"1"]), (b"z", [b"1"])], "row twice": [(b"b", [b"2"])], "shared": [(b"d", [b"1"])],
        "erased": [(b"e", [])], "afterwards": [(b"g", [b"2"])],
        "many": [(b"f%d" % n, [b"1"]) for n in range(6)],
    }  # fmt: skip
    for name, found in rows.items():
        if name not in faults:
            assert [(row, bench.values(row)) for row, _ in found] == found, name
    assert bench.applier._pending_bytes == 0
    assert not bench.applier._line


def test_the_applier_survives_an_exception_at_each_of_its_calls(
    monkeypatch: pytest.MonkeyPatch, expected_faults: Callable[[], dict[str, int]]
) -> None:
    monkeypatch.setattr(applier, "STEP_OPERATIONS", 4)
    assert survived(jobs_of_all_kinds, applier, governor) > 50
    assert expected_faults()[applier.LOOP] > DRAWN // 2
