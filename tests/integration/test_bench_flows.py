"""The ETH experiment in small: every variant, faults among them, with the oracle."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def flows(folder: Path, *arguments: str, path: str | None = None) -> tuple[subprocess.CompletedProcess[str], Any]:
    figures = folder / "figures.json"
    command = [sys.executable, "-m", "benchmarks", "flows", "--quick", "--folder", str(folder), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)} | ({} if path is None else {"PATH": path})
    ran = subprocess.run(
        [*command, "--json", str(figures)], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=100
    )
    found = json.loads(figures.read_text()) if figures.exists() else None
    figures.unlink(missing_ok=True)
    assert os.listdir(folder) == [], "the stores' folders are gone"
    return ran, found


def assert_all_delivered(found: Any, *variants: str) -> None:
    assert set(found["oracle"]) == set(variants)
    for variant in variants:
        verdict = found["oracle"][variant]
        assert verdict["tweets"] > 10
        assert verdict["copies"] > verdict["tweets"]
        assert verdict["missing"] == verdict["strange"] == verdict["lost"] == verdict["spoiled"] == 0
        reads, misses = found["session_reads"][variant]
        assert reads > 0
        assert misses == 0
    for load in found["loads"]:
        for round_ in load["rounds"]:
            assert round_["rate"] > 0
            assert round_["unanswered"] == 0
            assert round_["is_drained"]


def test_doing_it_oneself_beside_a_trigger_also_when_everything_is_killed(tmp_path: Path) -> None:
    ran, found = flows(tmp_path, "--variant", "sync,integrated", "--workload", "W1,W2,W4", "--kills", "1")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "W1, saturating" in ran.stdout
    assert_all_delivered(found, "sync", "integrated")
    assert [(load["workload"], load["variant"]) for load in found["loads"]] == [
        (workload, variant) for workload in ("W1", "W2", "W4") for variant in ("sync", "integrated")
    ]
    (sync,), (integrated,) = (load["rounds"] for load in found["loads"][:2])
    assert set(sync["cpu_us"]) == {"app", "store"}
    assert set(integrated["cpu_us"]) == {"app", "store", "worker"}
    executions = (sync["executions"], integrated["executions"])
    assert executions == pytest.approx((0, 1)), "nothing failed: each tweet is spread once"
    assert integrated["app_bytes"] < sync["app_bytes"]
    assert integrated["propagation_ms"]
    for killed in found["loads"][4:]:
        assert killed["load"] == "all killed 1 times"
        assert killed["rounds"][0]["breaks"] >= 8, "every connection of the application broke"
        assert list(map(len, killed["pauses_ms"])) == [1]


def test_a_worker_behind_a_queue(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if shutil.which("redis-server") is None:
        why = "there is no redis-server (apt-get install redis-server): the variant external is NOT TESTED"
        with capsys.disabled():
            print(f"\n{why}", file=sys.stderr)
        pytest.skip(why)
    load = ("--workload", "W4,W6", "--kills", "1", "--saturation", "300")
    ran, found = flows(tmp_path, "--variant", "external", *load)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert_all_delivered(found, "external")
    beside, killed, poisoned = (load["rounds"][0] for load in found["loads"])
    assert beside["executions"] == 1
    assert killed["executions"] >= 1
    assert poisoned["poison"]["given_up"] == poisoned["poison"]["tweets"] > 0
    assert poisoned["poison"]["executions"] == 3


def test_a_celebrity_poison_and_changes_of_regions_beside_a_trigger(tmp_path: Path) -> None:
    load = ("--workload", "W5,W6,W7", "--saturation", "300")
    ran, found = flows(tmp_path, "--variant", "integrated", *load)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert_all_delivered(found, "integrated")
    plain, celebrity, poisoned, changed = (load["rounds"][0] for load in found["loads"])
    assert found["oracle"]["integrated"]["copies"] > 2_000
    assert (celebrity["celebrity"]["tweets"], len(celebrity["celebrity"]["completion_ms"])) == (1, 7)
    assert poisoned["poison"]["given_up"] == found["oracle"]["integrated"]["poison"] > 0
    assert poisoned["poison"]["executions"] == 3
    assert changed["changes"]["splits"] > 0
    assert "celebrity" not in plain


def test_without_a_queue_the_variant_says_what_to_install(tmp_path: Path) -> None:
    ran, found = flows(tmp_path, "--variant", "external", path="/nowhere")
    assert ran.returncode == 1
    assert found is None
    assert "apt-get install redis-server" in ran.stderr
    assert "Traceback" not in ran.stderr
