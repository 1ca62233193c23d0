"""The measure of dealing runs: its workers stand in the place of real ones and have to keep up with their arguments."""

from __future__ import annotations

import subprocess
import sys


def test_the_measure_of_dealing_deals_each_request_to_workers_that_stay() -> None:
    command = [sys.executable, "-m", "tests.measure.crew", "--rate", "1000", "--seconds", "1", "--workers", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert "1000 requests of seed 1, 1000/s for 1 s to 2 workers" in done.stdout, done.stderr
    assert "lost workers 0, lost requests 0" in done.stdout
