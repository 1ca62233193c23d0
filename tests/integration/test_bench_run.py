"""The benchmark against a real store, for a second."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from benchmarks import __main__ as main
from columnar.bench import commands, limits, measuring
from columnar.bench.address import parse_endpoint
from columnar.bench.endpoint import client_of
from tests.support.forked_program import FORKS

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _forked_generators(monkeypatch: pytest.MonkeyPatch) -> None:
    """Generators within this process's commands are forks: a new interpreter for each costs more than the load."""
    for module in (measuring, limits):
        monkeypatch.setattr(module, "get_context", lambda _method: FORKS)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    """A store of this module, which each benchmark leaves empty: (address, process id)."""
    data = tmp_path_factory.mktemp("bench") / "data"
    command = [sys.executable, "-m", "columnar", "standalone", "--data", str(data)]
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


def bench(*arguments: str) -> Result:
    return CliRunner().invoke(commands.bench, list(arguments))


def benchmarks(*arguments: str) -> Result:
    return CliRunner().invoke(main.benchmarks, list(arguments))


def by_process(*words: str) -> str:
    """What ``python -m`` these words says."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", *words]
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_a_short_run_measures_every_kind_of_work(store: tuple[str, int], tmp_path: Path) -> None:
    address, pid = store
    figures = tmp_path / "figures.json"
    load = ("--rows", "200", "--rounds", "1", "--seconds", "0.05", "-c", "2", "--json", str(figures))
    assert "get one small cell" in by_process("columnar", "bench", "run", address, "--pid", str(pid), *load)
    found = json.loads(figures.read_text())
    assert len(found["lines"]) == 9
    for line in found["lines"]:
        side = line["endpoints"][address]
        assert side["rate"] > 0, line["workload"]
        assert set(side["latency_us"]) == {"p50", "p95", "p99", "p99.9", "max"}
    assert all(line["endpoints"][address]["server_us"] for line in found["lines"]), "--pid: its processor time too"
    assert 20 < found["footprints"][0]["resident_mb_idle"] < 500


def test_open_loop_follows_the_closed_one(store: tuple[str, int], tmp_path: Path) -> None:
    address, _ = store
    figures = tmp_path / "figures.json"
    load = ("--rows", "200", "--rounds", "1", "--seconds", "0.3", "-c", "4", "--open", "0.3", "--json", str(figures))
    said = by_process("benchmarks", "compare", address, "-w", "get-cell,ycsb-e,scan-small", *load)
    assert "p99.9 / max" in said
    assert "No open loop for scan-small" in said
    found = json.loads(figures.read_text())
    assert [line["workload"] for line in found["opened"]] == ["get-cell", "ycsb-e"]
    closed_lines = [line for line in found["lines"] if line["workload"] != "scan-small"]
    for closed, opened in zip(closed_lines, found["opened"], strict=True):
        one = opened["endpoints"][address]
        assert round(one["rate"], 3) == round(0.3 * closed["endpoints"][address]["rate"], 3)
        assert one["calls"] > 0
        assert one["latency_us"]["p50"] <= one["latency_us"]["p99.9"] <= one["latency_us"]["max"] * 1.01


def test_ycsb_has_its_six_workloads_and_leaves_no_table(store: tuple[str, int], tmp_path: Path) -> None:
    address, _ = store
    figures = tmp_path / "figures.json"
    load = ("--rows", "200", "--rounds", "1", "--seconds", "0.05", "-c", "3", "--json", str(figures))
    ran = benchmarks("compare", address, "-w", "ycsb", *load)
    assert ran.exit_code == 0, ran.stderr
    found = json.loads(figures.read_text())
    names = [f"ycsb-{letter}" for letter in "abcdef"]
    assert [line["workload"] for line in found["lines"]] == names
    assert found["opened"] == []
    assert all(line["endpoints"][address]["rate"] > 0 for line in found["lines"])
    with client_of(parse_endpoint(address)) as client:
        assert client.getTableNames() == []


def test_the_compact_protocol_is_measured_too(store: tuple[str, int], tmp_path: Path) -> None:
    address, _ = store
    figures = tmp_path / "figures.json"
    load = ("--rows", "100", "--rounds", "1", "--seconds", "0.05", "-c", "2", "--json", str(figures))
    ran = benchmarks(
        "compare", address, "-w", "get-row,put,increment,scan-small,load,ycsb-e", "--protocol", "compact", *load
    )
    assert ran.exit_code == 0, ran.stderr
    assert "compact protocol" in ran.stdout
    found = json.loads(figures.read_text())
    assert found["plan"]["protocol"] == "compact"
    assert [line["endpoints"][address]["rate"] > 0 for line in found["lines"]] == [True] * 6


def test_growth_measures_all_its_parts(store: tuple[str, int], tmp_path: Path) -> None:
    figures = tmp_path / "growth.json"
    small = ("--rows", "1000", "--regions", "4", "--overwrites", "10", "--seconds", "0.05", "--calls", "4")
    ran = benchmarks("growth", store[0], *small, "--json", str(figures))
    assert ran.exit_code == 0, ran.stderr
    assert "10 puts and deletes" in ran.stdout
    groups = json.loads(figures.read_text())["groups"]
    assert [group["part"] for group in groups] == ["rows", "regions", "puts", *["histories"] * 3]
    assert [step["what"] for step in groups[2]["steps"]] == ["1 region", "4 regions"]
    for group in groups:
        assert min(group["worst_over_best"].values()) >= 1
    with client_of(parse_endpoint(store[0])) as client:
        assert client.getTableNames() == []


def test_one_part_of_growth_alone(store: tuple[str, int]) -> None:
    ran = benchmarks("growth", store[0], "--only", "puts", "--regions", "1", "--seconds", "0.05", "--calls", "4")
    assert ran.exit_code == 0, ran.stderr
    assert "Durable puts" in ran.stdout
    assert "Rows of a table" not in ran.stdout


def test_a_command_of_a_checkout_says_so() -> None:
    ran = bench("growth", "127.0.0.1:1")
    assert ran.exit_code == 2
    assert "in a checkout of Columnar: python -m benchmarks growth" in ran.stderr


def test_an_endpoint_that_is_not_there_is_said_in_one_line() -> None:
    ran = bench("run", "127.0.0.1:1", "-w", "get-cell")
    assert ran.exit_code == 1
    assert ran.stderr.strip().startswith("columnar bench: 127.0.0.1:1: ")
    assert "Traceback" not in ran.stderr


def test_forwarded_calls_are_measured_beside_direct_ones(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    load = ("--rows", "100", "--rounds", "1", "--seconds", "0.2", "-c", "2", "--folder", str(tmp_path))
    ran = benchmarks("forwarding", "-w", "get-cell,put", *load, "--json", str(figures))
    assert ran.exit_code == 0, ran.stderr
    assert "get one small cell" in ran.stdout
    found = json.loads(figures.read_text())
    assert [line["workload"] for line in found["lines"]] == ["get-cell", "put"]
    for line in found["lines"]:
        forwarded, direct = line["endpoints"]["forwarded"], line["endpoints"]["direct"]
        assert forwarded["rate"] > 0
        assert direct["rate"] > 0
    assert os.listdir(tmp_path) == ["figures.json"], "the store's folder is gone"


def test_stores_of_more_and_more_servers_are_measured_in_turn(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    load = ("--rows", "120", "--rounds", "1", "--seconds", "0.2", "-c", "4", "--folder", str(tmp_path))
    ran = benchmarks("scale", "--servers", "1,2", "-w", "get-cell,scan-small", *load, "--json", str(figures))
    assert ran.exit_code == 0, ran.stderr
    assert "2 servers" in ran.stdout
    found = json.loads(figures.read_text())["lines"]
    assert [line["workload"] for line in found] == ["get-cell", "scan-small"]
    for line in found:
        assert set(line["servers"]) == {"1", "2"}
        assert line["servers"]["1"]["rate_ratio"] == 1.0
        assert line["servers"]["2"]["rate_ratio"] > 0


def test_the_limits_of_the_machine(tmp_path: Path) -> None:
    figures = tmp_path / "limits.json"
    ran = bench("limits", "--seconds", "0.2", "--folder", str(tmp_path), "--json", str(figures))
    assert ran.exit_code == 0, ran.stderr
    assert "append of 150 bytes and its fsync" in ran.stdout
    kinds = [limit["kind"] for limit in json.loads(figures.read_text())["limits"]]
    assert sorted(set(kinds)) == ["core", "fsync", "round trip"]
    assert os.listdir(tmp_path) == ["limits.json"]
    refused = bench("limits", "--folder", str(tmp_path / "none"))
    assert refused.exit_code == 2
    assert "does not exist" in refused.stderr
