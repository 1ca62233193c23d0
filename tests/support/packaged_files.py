"""The files of ``packaging``, and the command lines in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from columnar.cli import _SUBCOMMANDS, main
from columnar.limits import CONNECTIONS, OPEN_REGIONS, STOP_REGION_S, STOP_S
from tests.support.systemd_units import environment_in, settings, words_of

ROOT = Path(__file__).parents[2]
PACKAGING = ROOT / "packaging"
MANIFESTS = sorted((PACKAGING / "kubernetes").glob("*.yaml"))
UNITS = sorted((PACKAGING / "systemd").glob("*.service"))
COMPOSE_FILE = yaml.safe_load((PACKAGING / "compose.yaml").read_text())
COMPOSED = COMPOSE_FILE["services"]["columnar"]
IMAGE = (PACKAGING / "Containerfile").read_text()
STOPS_S = STOP_S + STOP_REGION_S * OPEN_REGIONS  # until a server that is told to stop is killed
DESCRIPTORS = OPEN_REGIONS * 12 + CONNECTIONS  # ``config.open_regions`` says what a region needs


def name_of(path: Path) -> str:
    return path.name


def documents(path: Path) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(path.read_text()) if document is not None]


def of_kind(path: Path, kind: str) -> list[dict[str, Any]]:
    return [document for document in documents(path) if document["kind"] == kind]


def pods(path: Path) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield each StatefulSet and the template of its pods."""
    for document in of_kind(path, "StatefulSet"):
        yield document, document["spec"]["template"]


def parsed(words: list[str]) -> dict[str, Any]:
    """The parameters of a command line of ``columnar``; click refuses what the command does not know."""
    if words[0] == "node" and "node" not in _SUBCOMMANDS:
        pytest.skip("this version has no 'columnar node'")
    command = main.get_command(click.Context(main), words[0])
    assert command is not None, words
    return command.make_context("columnar", words[1:]).params


def command_lines() -> Iterator[tuple[str, list[str]]]:
    for path in MANIFESTS:
        for document, pod in pods(path):
            for container in pod["spec"]["containers"]:
                if "command" not in container:
                    words = [word.replace("$(POD_IP)", "10.1.2.3") for word in container["args"]]
                    yield (
                        path.name,
                        [word.replace("$(POD_NAME)", f"{document['metadata']['name']}-0") for word in words],
                    )
    for path in UNITS:
        yield path.name, unit_command(path)
    cmd = re.search(r"^CMD (.*)$", IMAGE, re.M)
    assert cmd is not None
    yield "Containerfile", [str(word) for word in yaml.safe_load(cmd[1])]
    yield "compose.yaml", COMPOSED["command"]


def unit_command(path: Path, setting: str = "ExecStart") -> list[str]:
    """The words after the program, with the settings of the example of the unit's environment file."""
    unit = settings(path)
    (environment,) = unit["EnvironmentFile"]
    example = environment_in((PACKAGING / "systemd" / Path(environment.lstrip("-")).name).read_text())
    (line,) = unit[setting]
    program, *words = words_of(line, environment_in("\n".join(unit["Environment"])) | example)
    assert program.removeprefix("-") == "/opt/columnar/bin/columnar"
    return words
