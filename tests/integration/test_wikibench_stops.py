"""WikiBench's percentiles against a server that stops for a quarter of the time, and writes down when.

``python -m tests.measure.instrument`` is the long form, with wrk2 and k6 beside.
"""

from __future__ import annotations

from pathlib import Path

from tests.measure.instrument import plans, replayed, row_of
from tests.support.stop_schedule import NAMES
from tests.support.stopping_server import stopping_server

IN_STOPS = ("p90", "p95", "p99", "max")  # a quarter of the requests meets a stop, and nine in ten lies within it
SERVICE_S = 0.0  # nothing waits less
RATE = 100
GAP_MS = 1_000 / RATE


def test_percentiles_are_those_of_the_servers_stops(tmp_path: Path) -> None:
    """Eight may be open, so five of six requests of a stop are sent after it, and their wait counts all the same."""
    plan, _ = plans(tmp_path, rate=RATE, seconds=4)
    with stopping_server(first_s=1.0, every_s=2.0, lasting_s=0.5) as notes:
        report = replayed(plan, notes.url, tmp_path / "report.json", "--open", "8", "--lateness", "60s")
    row = row_of("--open 8", plan, report, notes, SERVICE_S)
    assert (row.due, row.done) == (400, 400)
    assert row.reckoned["max"] > 300, "the server has stopped"
    # The loop that reads the answers also sends, at each gap: if it read later than that, a send was late
    late_ms = report["generator"]["own_lateness"]["max_ms"]
    assert row.noted is not None
    for name in NAMES:
        said = (name, row, notes.stops)
        assert row.found[name] >= row.reckoned[name] * 0.98, said
        if name in IN_STOPS:
            assert row.found[name] <= row.noted[name] * 1.02 + late_ms + GAP_MS, said
