"""The benchmark against a real store, for a second."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from columnar.bench.endpoint import client_of, parse_endpoint

ROOT = Path(__file__).parents[2]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[tuple[str, int]]:
    """A store of its own: (address, process id)."""
    command = [sys.executable, "-m", "columnar", "standalone", "--data", str(tmp_path / "data")]
    process = subprocess.Popen(
        [*command, "--port", "0", "--web-port", "-1", "--log-level", "error"], cwd=ROOT, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        words = dict(word.split("=", 1) for word in process.stdout.readline().decode().split() if "=" in word)
        yield words["store"], process.pid
    finally:
        process.terminate()
        process.wait(20)
        process.stdout.close()


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "columnar", "bench", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=60)


def test_a_short_run_measures_every_kind_of_work(store: tuple[str, int], tmp_path: Path) -> None:
    address, pid = store
    figures = tmp_path / "figures.json"
    load = ("--rows", "200", "--rounds", "1", "--seconds", "0.05", "-c", "2", "--json", str(figures))
    ran = bench("run", address, "--pid", str(pid), *load)
    assert ran.returncode == 0, ran.stderr
    assert "get one small cell" in ran.stdout
    found = json.loads(figures.read_text())
    assert len(found["lines"]) == 9
    for line in found["lines"]:
        assert line["endpoints"][address]["rate"] > 0, line["workload"]
    assert 20 < found["footprints"][0]["resident_mb_idle"] < 500


def test_growth_measures_all_its_parts(store: tuple[str, int], tmp_path: Path) -> None:
    figures = tmp_path / "growth.json"
    small = ("--rows", "1000", "--regions", "4", "--overwrites", "10", "--seconds", "0.05", "--calls", "4")
    ran = bench("growth", store[0], *small, "--json", str(figures))
    assert ran.returncode == 0, ran.stderr
    assert "10 puts and deletes" in ran.stdout
    groups = json.loads(figures.read_text())["groups"]
    assert [group["part"] for group in groups] == ["rows", "regions", "puts", *["histories"] * 3]
    assert [step["what"] for step in groups[2]["steps"]] == ["1 region", "4 regions"]
    for group in groups:
        assert min(group["worst_over_best"].values()) >= 1
    with client_of(parse_endpoint(store[0])) as client:
        assert client.getTableNames() == []


def test_one_part_of_growth_alone(store: tuple[str, int]) -> None:
    ran = bench("growth", store[0], "--only", "puts", "--regions", "1", "--seconds", "0.05", "--calls", "4")
    assert ran.returncode == 0, ran.stderr
    assert "Durable puts" in ran.stdout
    assert "Rows of a table" not in ran.stdout


def test_an_endpoint_that_is_not_there_is_said_in_one_line() -> None:
    ran = bench("run", "127.0.0.1:1", "-w", "get-cell")
    assert ran.returncode == 1
    assert ran.stderr.strip().startswith("columnar bench: 127.0.0.1:1: ")
    assert "Traceback" not in ran.stderr
