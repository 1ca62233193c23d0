"""The image of ``packaging/Containerfile``: it is built, is small, serves as its own user, and stops in order.

``make test-deep`` runs this where podman or docker can pull the base image.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import uuid
from collections.abc import Iterator

import pytest

from tests.support.deep import IS_DEEP
from tests.support.readme_blocks import await_that
from tests.support.standalone_store import ROOT

BUILD_S = 1_200.0  # it compiles the hot modules
RUN_S = 120.0
MOST_BYTES = 250_000_000
OWN_BYTES = 120_000_000  # without the base image, which has 125 MB, and may be another one of that name here
BASE = "docker.io/library/python:3.11-slim-bookworm"
PROGRAM = shutil.which("podman") or shutil.which("docker")


def run(*words: str, within_s: float = RUN_S) -> subprocess.CompletedProcess[str]:
    assert PROGRAM is not None, "the fixture has looked"
    return subprocess.run([PROGRAM, *words], cwd=ROOT, capture_output=True, text=True, timeout=within_s, check=False)


def output_of(*words: str, within_s: float = RUN_S) -> str:
    ended = run(*words, within_s=within_s)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


@pytest.fixture
def image() -> Iterator[str]:
    if not IS_DEEP:
        pytest.skip("the build takes minutes: make test-deep")
    if PROGRAM is None:
        pytest.skip("neither podman nor docker")
    is_there = run("image", "inspect", BASE).returncode == 0
    pulled = run("pull", BASE, within_s=BUILD_S)
    if pulled.returncode and not is_there:
        pytest.skip(f"the base image cannot be pulled: {pulled.stderr.strip().rpartition(': ')[2]}")
    name = f"columnar-test-{uuid.uuid4().hex[:12]}"
    output_of("build", "--file", "packaging/Containerfile", "--tag", name, ".", within_s=BUILD_S)
    yield name
    run("rmi", "--force", name)


def test_the_image_is_small_serves_as_its_own_user_and_stops_in_order(image: str) -> None:
    (made,) = json.loads(output_of("image", "inspect", image))
    (base,) = json.loads(output_of("image", "inspect", BASE))
    assert made["Size"] - base["Size"] < OWN_BYTES
    assert made["Size"] < MOST_BYTES or base["Size"] > MOST_BYTES - OWN_BYTES
    assert made["Config"]["User"] == "951:951"
    container = output_of("run", "--detach", "--read-only", "--tmpfs", "/tmp", "--volume", "/var/lib/columnar", image)

    def logs() -> subprocess.CompletedProcess[str]:
        return run("logs", container)

    try:
        await_that(lambda: "columnar ready " in logs().stdout, RUN_S, lambda: logs().stderr)
        assert "hot modules: compiled" in logs().stderr
        output_of("exec", container, "columnar", "status")
        (check,) = [line for line in (ROOT / "packaging/Containerfile").read_text().splitlines() if '"-c"' in line]
        output_of("exec", container, *json.loads(check.strip().removeprefix("CMD ")))
        output_of("stop", "--time", "60", container)
        assert output_of("inspect", "--format", "{{.State.ExitCode}}", container) == "0"
    finally:
        run("rm", "--force", "--volumes", container)
