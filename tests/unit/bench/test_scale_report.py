"""What more servers bring, as ratios and remarks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from io import StringIO

import pytest
from rich.console import Console

from benchmarks.scale_report import as_json, remarks_of_scale, scaled, table_of_scale
from columnar.bench.generator import Outcome
from columnar.bench.report import Side, side_of
from columnar.bench.workloads import STANDARD
from gauge.processes import children_of, cpu_s_of


def side(*rounds: tuple[int, tuple[float, ...]], generator_cpu: float = 0.5) -> Side:
    """``rounds``: units, and the processor time of each server."""
    return side_of([Outcome(Counter({100: units}), units, 1.0, generator_cpu, cpu) for units, cpu in rounds])


ALONE = side((1_000, (0.1,)), (1_000, (0.2,)), (500, (0.1,)))
TWO = side((1_500, (0.09, 0.06)), (3_000, (0.1, 0.2)), (1_000, (0.1, 0.1)))


def test_ratios_are_of_the_same_round_and_of_the_busiest_server() -> None:
    alone, two = scaled([ALONE, TWO])
    assert (alone.rate_ratio, alone.busiest_ratio) == (1.0, 1.0)
    assert two.rate_ratio == 2.0  # of 1.5, 3 and 2
    assert two.busiest_us == pytest.approx(66.7, abs=0.1)  # of 60, 66.7 and 100
    assert two.busiest_ratio == pytest.approx(0.5)  # of 60 / 100, 66.7 / 200 and 100 / 200


def test_a_time_below_a_tick_has_no_ratio() -> None:
    assert scaled([side(*[(10, (0.0,))] * 3), TWO])[1].busiest_ratio == 0.0


def test_a_table_has_a_place_for_each_number_of_servers() -> None:
    lines = [(STANDARD["get-cell"], scaled([ALONE, TWO]))]
    console = Console(width=160, record=True, file=StringIO())
    console.print(table_of_scale("then", (1, 2), lines))
    text = console.export_text()
    assert "1 server " in text
    assert "2 servers" in text
    assert "2.00" in text
    assert as_json((1, 2), lines)[0]["servers"]["2"]["rate_ratio"] == 2.0


def test_remarks_name_what_was_the_limit() -> None:
    assert remarks_of_scale([(STANDARD["put"], scaled([ALONE]))], generators=1, cores=8, most=3) == []
    lines = [(STANDARD["put"], scaled([side((1_000, (0.1,)), generator_cpu=0.95)]))]
    busy, cores = remarks_of_scale(lines, generators=1, cores=2, most=3)
    assert "put; take --generators 2" in busy
    assert "3 servers and 1 generator share 2 cores" in cores


BUSY = "n = 0\nfor one in range(4_000_000): n += one\nprint(n, flush=True)\nimport time\ntime.sleep(60)"
PARENT = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {BUSY!r}])"


def test_a_family_of_processes_counts_once() -> None:
    """The parent's children are those of the first that is named: a process is in one family only."""
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline(), "the child has computed, and sleeps"
        (child,) = children_of(parent.pid)
        both, alone = cpu_s_of((child, parent.pid)), cpu_s_of((parent.pid,))
        os.kill(child, signal.SIGKILL)
    assert both[0] > 0
    assert abs(sum(both) - alone[0]) <= 0.05
