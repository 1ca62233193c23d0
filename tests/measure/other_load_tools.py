"""Run load generators that others have made, each at a steady rate, and read their figures.

    wrk2   github.com/giltene/wrk2; ``make`` needs libssl-dev and zlib1g-dev, and names the program ``wrk``
    k6     go install go.k6.io/k6@v0.57.0
    wrk    Debian's package

None of them comes with this repository.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from tests.support.stop_schedule import PERCENTS, Figures

CALIBRATION_S: Final = 10  # of wrk2: then it forgets what it has recorded, and begins anew
CONNECT_S: Final = 0.005  # of wrk2: between two of its first connections, by which its calibration is longer
FEW: Final = 10  # connections, clients, or virtual users

_DONE_LUA: Final = """
done = function(summary, latency, requests)
  io.write(string.format("FOUND %%d %%f %%f", %s, latency.max, latency.mean))
  for _, percent in ipairs({%s}) do io.write(string.format(" %%d", latency:percentile(percent))) end
  io.write("\\n")
end
"""
_DELAY_LUA: Final = "delay = function() return %d end\n"
_K6_SCRIPT: Final = """
import http from 'k6/http';
export const options = {
  scenarios: {
    steady: { executor: 'constant-arrival-rate', rate: %d, timeUnit: '1s', duration: '%ds', preAllocatedVUs: %d },
  },
  summaryTrendStats: ['avg', 'max', %s],
};
export default function () { http.get('%s/'); }
export function handleSummary(data) { return { stdout: JSON.stringify(data.metrics) }; }
"""


@dataclass(frozen=True, slots=True)
class Measured:
    """The result of a tool, and the part of its run that it counted."""

    done: int
    figures: Figures
    skipped_s: float = 0.0  # at the begin of the run
    remark: str = ""
    is_by_connection: bool = False  # each connection has a plan of its own


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool with settings; ``program`` is a path, or empty if it was not found."""

    kind: str  # wrk, wrk2, k6
    program: str
    parallel: int  # connections, or virtual users

    @property
    def name(self) -> str:
        what = "virtual users" if self.kind == "k6" else "connections"
        return f"{self.kind}, {self.parallel} {what}"

    @property
    def is_open_loop(self) -> bool:
        return self.kind != "wrk"

    def measure(self, url: str, rate: int, seconds: int) -> Measured:
        """Run the tool against ``url`` so that it counts ``seconds``."""
        with tempfile.TemporaryDirectory(prefix="load-tool-") as folder:
            script = Path(folder) / ("load.js" if self.kind == "k6" else "load.lua")
            if self.kind == "k6":
                return _run_k6(self, script, url, rate, seconds)
            return (_run_wrk2 if self.kind == "wrk2" else _run_wrk)(self, script, url, rate, seconds)


def tools_of(rate: int, paths: dict[str, str | None]) -> Iterator[Tool]:
    """Yield the tools in the order in which they run; ``paths`` has those that were given by name."""
    plenty = round(rate * 1.5)  # more than come in a stop of a second
    for kind, parallel in (("wrk2", rate), ("wrk2", FEW), ("k6", plenty), ("k6", FEW), ("wrk", FEW)):
        yield Tool(kind, paths.get(kind) or shutil.which(kind) or "", parallel)


def _run(words: Sequence[str], seconds: float) -> str:
    quiet = {**os.environ, "K6_NO_USAGE_REPORT": "true"}
    done = subprocess.run(words, capture_output=True, text=True, timeout=seconds + 60, env=quiet)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def _run_wrk2(tool: Tool, script: Path, url: str, rate: int, seconds: int) -> Measured:
    skipped_s = CALIBRATION_S + tool.parallel * CONNECT_S
    script.write_text(_DONE_LUA % ("#latency", _percents()))
    lasts_s = round(skipped_s + seconds)
    words = (tool.program, "-t1", f"-c{tool.parallel}", f"-d{lasts_s}s", f"-R{rate}", "-s", str(script), f"{url}/")
    said = _run(words, lasts_s)
    return replace(_of_lua(said, skipped_s), is_by_connection=True)


def _run_wrk(tool: Tool, script: Path, url: str, rate: int, seconds: int) -> Measured:
    script.write_text(_DELAY_LUA % round(tool.parallel / rate * 1000) + _DONE_LUA % ("summary.requests", _percents()))
    words = (tool.program, "-t1", f"-c{tool.parallel}", f"-d{seconds}s", "-s", str(script), f"{url}/")
    return _of_lua(_run(words, seconds), 0.0)


def _percents() -> str:
    return ", ".join(map(str, PERCENTS))


def _of_lua(said: str, skipped_s: float) -> Measured:
    found = re.search(r"^FOUND (.*)$", said, re.MULTILINE)
    if found is None:
        raise SystemExit(f"no figures in:\n{said}")
    done, most_us, mean_us, *by_percent_us = map(float, found[1].split())
    figures = {f"p{percent}": us / 1000 for percent, us in zip(PERCENTS, by_percent_us, strict=True)}
    errors = re.search(r"Socket errors: .*", said)
    figures = {**figures, "max": most_us / 1000, "mean": mean_us / 1000}
    return Measured(round(done), figures, skipped_s, errors[0] if errors else "")


def _run_k6(tool: Tool, script: Path, url: str, rate: int, seconds: int) -> Measured:
    percents = ", ".join(f"'p({percent})'" for percent in PERCENTS)
    script.write_text(_K6_SCRIPT % (rate, seconds, tool.parallel, percents, url))
    metrics = json.loads(_run((tool.program, "run", "--quiet", str(script)), seconds))
    values = metrics["http_req_duration"]["values"]
    figures = {f"p{percent}": float(values[f"p({percent})"]) for percent in PERCENTS}
    dropped = metrics.get("dropped_iterations", {}).get("values", {}).get("count", 0)
    figures = {**figures, "max": float(values["max"]), "mean": float(values["avg"])}
    return Measured(metrics["http_reqs"]["values"]["count"], figures, remark=f"dropped_iterations {dropped:.0f}")
