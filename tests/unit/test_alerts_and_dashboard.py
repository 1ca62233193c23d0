"""Alert rules and dashboard in ``packaging``: they name what is served, and each alert fires at its fault alone."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from columnar import errors
from columnar.cli import main
from columnar.memory_plan import ordinary
from tests.tidy.test_pages_are_true import served

ROOT = Path(__file__).parents[2]
RULES = ROOT / "packaging" / "prometheus" / "columnar.rules.yml"
DASHBOARD = ROOT / "packaging" / "grafana" / "columnar.json"
CASES = Path(__file__).parents[1] / "data" / "alerts.yml"
COLUMNS = 24  # of a dashboard of Grafana
PARTS_OF_HISTOGRAM = ("_bucket", "_sum", "_count")
PROMTOOL = shutil.which("promtool")


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(DASHBOARD.read_text())["panels"]
    return found


def named(text: str) -> set[str]:
    """Return the names of metrics in an expression, without the suffixes of histograms."""
    names = re.findall(r"\b(?:columnar|process|wikka)_[a-z_]+\b", text)
    return {next((name.removesuffix(one) for one in PARTS_OF_HISTOGRAM if name.endswith(one)), name) for name in names}


def test_rules_and_dashboard_name_metrics_that_are_served() -> None:
    found = {rule["alert"]: named(rule["expr"]) for rule in rules()}
    found |= {one["title"]: set().union(*(named(part["expr"]) for part in one.get("targets", []))) for one in panels()}
    unknown = {where: names - served() for where, names in found.items() if names - served()}
    assert unknown == {}
    assert sum(map(len, found.values())) > 50


def test_rules_name_classes_of_errors_and_parts_of_memory_that_there_are() -> None:
    text = RULES.read_text()
    (classes,) = re.findall(r'outcome=~"([^"]+)"', text)
    found = [getattr(errors, name) for name in classes.split("|")]
    assert not any(issubclass(one, errors.CallerError) for one in found), "a client's mistake wakes nobody"
    (parts,) = re.findall(r'part=~"([^"]+)"', text)
    assert set(parts.split("|")) <= set(ordinary().bounds)


def test_every_rule_says_how_urgent_it_is_and_what_to_do() -> None:
    found = rules()
    assert len({rule["alert"] for rule in found}) == len(found) > 20
    commands = main.list_commands(click.Context(main))
    for rule in found:
        assert rule["labels"]["severity"] in ("page", "ticket"), rule["alert"]
        about = rule["annotations"]
        assert about["summary"], rule["alert"]
        assert about["description"], rule["alert"]
        for command in re.findall(r"'columnar ([a-z-]+)", about["description"]):
            assert command in commands, f"{rule['alert']}: {command}"
        for page in re.findall(r"docs/[a-z-]+\.md", about["description"]):
            assert (ROOT / page).exists(), f"{rule['alert']}: {page}"


def test_every_alert_has_a_case_in_which_it_is_silent_and_one_in_which_it_fires() -> None:
    tests = [one for case in yaml.safe_load(CASES.read_text())["tests"] for one in case["alert_rule_test"]]
    names = {rule["alert"] for rule in rules()}
    assert {one["alertname"] for one in tests if not one.get("exp_alerts")} == names
    assert {one["alertname"] for one in tests if one.get("exp_alerts")} == names


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not there: the alerts did not run (package prometheus)")
def test_each_alert_fires_at_its_fault_alone(tmp_path: Path) -> None:
    assert PROMTOOL is not None
    checked = subprocess.run([PROMTOOL, "check", "rules", str(RULES)], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    bare = yaml.safe_load(RULES.read_text())
    for rule in bare["groups"][0]["rules"]:
        del rule["annotations"]  # promtool would have each case repeat them
    (tmp_path / "rules.yml").write_text(yaml.safe_dump(bare))
    shutil.copy(CASES, tmp_path / "cases.yml")
    ran = subprocess.run(
        [PROMTOOL, "test", "rules", "cases.yml"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_panels_have_places_of_their_own() -> None:
    found = panels()
    assert len({one["id"] for one in found}) == len(found)
    for one, other in itertools.combinations([one["gridPos"] for one in found], 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        above = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or above, (one, other)
    assert all(one["gridPos"]["x"] + one["gridPos"]["w"] <= COLUMNS for one in found)


def test_the_page_has_every_alert_as_it_is() -> None:
    text = (ROOT / "docs" / "observation.md").read_text()
    said = set(re.findall(r"^\| `(\w+)`: .* \| (.+) \| (\w+) \|$", text, re.MULTILINE))
    assert said == {(one["alert"], one.get("for", "at once"), one["labels"]["severity"]) for one in rules()}
