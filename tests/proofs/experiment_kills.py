"""``python -m tests.proofs.experiment_kills``: an experiment whose runner is killed at random moments goes on.

``wikibench experiment`` runs short replays on each of two systems, which are servers that answer at once.  Its
runner is killed with -9 at random moments, and the same command begins again: at once, or once all its processes have
ended.  Then it runs to its end.

    1  after a kill all processes of the experiment end within 10 s
    2  each cell has one result, which is whole, and whose replay was valid or is said not to be
    3  a result that is there is not written again, and no file of a result is half written at any time
    4  the last run ends with status 0, and its page has every cell

10 kills take half a minute to a minute; --kills 3 takes 15 s.  The exit status is 0 if all of this holds.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import click
from rich.console import Console

from tests.proofs.verdict import end_report
from tests.support.noted_load import Command, command, even_plan, wait_until

END_S: Final = 10.0
SYSTEMS: Final = ("one", "two")
MARK: Final = "WIKIBENCH_PROOF"
SYSTEM: Final = """
title = "{name}"
url = "http://127.0.0.1:{{port.web}}"
fill = [["cp", "{titles}", "{{folder}}/titles.txt"]]
[[roles]]
name = "web"
start = ["{{python}}", "-m", "wikibench.null_server", "100", "{{port.web}}"]
ready = {{ address = "127.0.0.1:{{port.web}}" }}
"""
EXPERIMENT: Final = """
title = "Short replays"
[sizes.quick]
rate = 100
"""
LOAD: Final = """
[[loads]]
name = "{name}"
seconds = {{ quick = 1 }}
result = "{{cell}}/report.json"
statuses = [0, 3]
steps = [["{{wikibench}}", "replay", "{trace}", "--target", "{{url}}", "--json", "{{cell}}/report.json"]]
"""
TABLE: Final = """
[[tables]]
title = "Answered"
columns = [{columns}]
"""


@dataclass
class Found:
    counts: Counter[str] = field(default_factory=Counter)
    longest_s: float = 0.0  # from a kill to the end of the last process
    wrong: list[str] = field(default_factory=list)


def write_files(folder: Path, loads: Sequence[str]) -> list[object]:
    """Write systems and experiment; return the words of the command."""
    plan, titles = even_plan(folder, 100.0, 0.5), folder / "titles"
    titles.write_text("Page_1\nPage_2\n")
    systems = {name: folder / f"{name}.toml" for name in SYSTEMS}
    for name, file in systems.items():
        file.write_text(SYSTEM.format(name=name, titles=titles))
    columns = ", ".join(f'{{ head = "{name}", value = "{name}.figures.requests.counted" }}' for name in loads)
    steps = "".join(LOAD.format(name=name, trace=plan.trace) for name in loads)
    (folder / "short.toml").write_text(EXPERIMENT + steps + TABLE.format(columns=columns))
    return [
        "experiment",
        folder / "short.toml",
        "--systems",
        ",".join(map(str, systems.values())),
        "--out",
        folder / "out",
    ]


def processes_of(mark: str) -> list[int]:
    """Return the processes that run with ``mark`` in their environment, whatever their session."""
    return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _has_mark(pid, mark.encode())]


def _has_mark(pid: int, mark: bytes) -> bool:
    try:
        return mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


class Results:
    """The results of cells, looked at after each kill."""

    def __init__(self, folder: Path, found: Found) -> None:
        self._folder = folder
        self._found = found
        self._seen: dict[str, tuple[int, int]] = {}  # of good ones: file and moment of its change

    def check(self, about: str) -> None:
        for file in sorted(self._folder.glob("*.json")):
            try:
                is_good = json.loads(file.read_text())["ok"]
            except (ValueError, KeyError) as error:
                self._found.wrong.append(f"{about}: {file.name} is not whole: {error}")
                continue
            now = file.stat().st_ino, file.stat().st_mtime_ns
            if self._seen.get(file.name, now) != now:
                self._found.wrong.append(f"{about}: {file.name} was written again")
            if is_good:
                self._seen[file.name] = now

    @property
    def good(self) -> int:
        return len(self._seen)


def prove(folder: Path, kills: int, seed: int, tell: Callable[[str], None]) -> Found:
    found, rng = Found(), random.Random(f"experiment {seed}")
    loads = [f"L{number}" for number in range(1, 1 + max(3, kills // 2))]  # enough to be killed so often
    words, mark = write_files(folder, loads), f"{MARK}={os.getpid()}-{seed}"
    before = ("env", mark)
    results = Results(folder / "out" / "cells", found)
    cells = len(SYSTEMS) * (1 + len(loads))
    try:
        for number in range(1, kills + 1):
            with command(folder / "said", *words, before=before) as runner:
                _kill_at_random(found, rng, runner)
                if rng.random() < 0.5:
                    _wait_for_end(found, mark, f"kill {number}")
            results.check(f"kill {number}")
            tell(f"{number} kills, {results.good} of {cells} cells")
        with command(folder / "said", *words, before=before) as runner:
            status = runner.wait()
            output = runner.output
        _wait_for_end(found, mark, "the end")
        results.check("the end")
        _judge(found, folder / "out", loads, results.good, cells)
        if status != 0:
            found.wrong.append(f"the last run ended with status {status}: {output[-1000:]}")
    finally:
        for pid in processes_of(mark):
            os.kill(pid, 9)
    return found


def _kill_at_random(found: Found, rng: random.Random, runner: Command) -> None:
    """Kill the runner alone, at a random moment of the work that it does in some seconds."""
    until_s = time.monotonic() + rng.uniform(0.2, 3.0)
    while time.monotonic() < until_s and runner.process.poll() is None:
        time.sleep(0.01)
    found.counts["kills" if runner.process.poll() is None else "runs that had ended"] += 1
    runner.process.kill()
    runner.process.wait()


def _wait_for_end(found: Found, mark: str, about: str) -> None:
    try:
        found.longest_s = max(found.longest_s, wait_until(lambda: not processes_of(mark), END_S))
    except TimeoutError:
        found.wrong.append(f"{about}: processes run {END_S:g} s later: {processes_of(mark)}")


def _judge(found: Found, out: Path, loads: Sequence[str], good: int, cells: int) -> None:
    if good != cells:
        found.wrong.append(f"{good} of {cells} cells have a result")
    known = json.loads((out / "results.json").read_text())["cells"] if (out / "results.json").exists() else {}
    for name in (f"{load}.{system}" for load in loads for system in SYSTEMS):
        counted = known.get(name, {}).get("figures", {}).get("requests", {}).get("counted")
        found.counts["cells with all their requests"] += counted == 50
        if counted != 50:
            found.wrong.append(f"the page has no whole result of {name}: {counted} of 50 requests")


@click.command(
    help=(__doc__ or "").replace("\n\n", "\n\n\b\n"), context_settings={"help_option_names": ["-h", "--help"]}
)
@click.option("--kills", default=10, show_default=True, type=click.IntRange(1))
@click.option("--seed", default=1, show_default=True)
def main(kills: int, seed: int) -> None:
    console = Console(soft_wrap=True, highlight=False, markup=False)
    folder = Path(tempfile.mkdtemp(prefix="columnar-experiment-kills-"))
    with console.status("starting") as status:
        found = prove(folder, kills, seed, status.update)
    counted = ", ".join(f"{count} {name}" for name, count in found.counts.items())
    console.print(f"seed {seed}: {counted}; after a kill the last process ended within {found.longest_s:.2f} s")
    end_report(console, found.wrong, folder)


if __name__ == "__main__":
    sys.exit(main())
