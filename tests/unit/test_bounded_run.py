"""Commands of tools for tests end with all that they started."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.bounded_run import OVER, TOO_MANY

ROOT = Path(__file__).parents[2]
# In a process of its own: it adopts orphans and ends all its descendants.
PROGRAM = """
import os, sys
from pathlib import Path
from tests.support.bounded_run import bounded_run
script, folder, seconds, processes = sys.argv[1:]
command = ["sh", "-c", script]
print(*bounded_run(command, Path(folder), os.environ, seconds=float(seconds), processes=int(processes)), sep="\\n")
"""


def run(folder: Path, script: str, *, seconds: float = 30, processes: int = 20) -> list[str]:
    command = [sys.executable, "-c", PROGRAM, script, str(folder), str(seconds), str(processes)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.split("\n")


def test_what_left_the_session_ends_with_the_command(tmp_path: Path) -> None:
    status, pid, *_ = run(tmp_path, "setsid sleep 600 & echo $!; exit 3")
    assert status == "3"
    assert not os.path.exists(f"/proc/{pid}")


def test_a_command_ends_when_its_time_is_over(tmp_path: Path) -> None:
    assert run(tmp_path, "sleep 600", seconds=0.3)[0] == OVER


def test_a_command_that_starts_too_many_processes_ends_and_they_are_named(tmp_path: Path) -> None:
    status, *said = run(tmp_path, "for each in 1 2 3 4 5 6 7 8 9; do sleep 600 & done; wait", processes=5)
    assert status == TOO_MANY
    assert any(line.endswith(" of sleep 600 ") for line in said)
