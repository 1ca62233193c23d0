"""The README's blocks, as they stand and in their order, pasted in one folder beside a ``make run``.

Of the installation this takes what is there, ports are free ones, and the loads are short;
``python -m tests.first_minutes`` takes a fresh clone and nothing else.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.ports import free_port
from tests.support.readme_blocks import RUNNING, Terminal, blocks_of

ROOT = Path(__file__).parents[2]
BLOCKS = blocks_of((ROOT / "README.md").read_text())
PORTS = ("9090", "9095", "9190", "9195", "8080")
PATIENCE_S = 120.0  # for a block; another machine's load is no fault of it
# The loads: as long as they must be to be some, and nothing missed for load alone.
SHORTER = {
    "--duration 1m": "--duration 2s",
    "p95<500ms": "p95<60s",
    "--allow-edits": "--allow-edits --lateness 60s --timeout 60s",
    "p95<200ms": "p95<60s",
    "--duration 40s --loop --report before": "--duration 1s --loop --lateness 60s --timeout 60s --report before",
    "--duration 40s --loop --report after": "--duration 1s --loop --lateness 60s --timeout 60s --report after",
    "--budget 2m": "--from 2 --to 4 --duration 1s --budget 2s --lateness 60s --timeout 60s",
    "--rounds 3 --duration 10s": "--rounds 2 --duration 1s --lateness 60s --timeout 60s",
}
MAKE = """#!/bin/sh
# what make would install is there; the tests that run this are not run by it
case "$1" in
  run) exec {make} -o .venv/.made run PORT={9090} WEB_PORT={9095} WIKI_PORT={8080} ;;
  *) exec {make} -n "$@" >/dev/null ;;
esac
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """What a clone holds, and the environment that runs this."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    folder = tmp_path / "clone"
    for name in listed.split("\0"):
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    (folder / ".venv").symlink_to(sys.prefix)
    return folder


def shim(folder: Path, ports: dict[str, str]) -> None:
    make = shutil.which("make")
    assert make is not None
    text = MAKE
    for name, value in {**ports, "make": make}.items():
        text = text.replace("{" + name + "}", value)
    folder.mkdir()
    (folder / "make").write_text(text)
    (folder / "make").chmod(0o755)


def shortened(text: str, ports: dict[str, str]) -> str:
    for port, free in ports.items():
        text = text.replace(port, free)
    for typed, shorter in SHORTER.items():
        text = text.replace(typed, shorter)
    return text


@pytest.mark.timeout(600)  # some twenty commands, each an interpreter
@pytest.mark.skipif(shutil.which("make") is None, reason="no make: the README's blocks were not run")
def test_every_block_works_in_order_in_one_folder(clone: Path, tmp_path: Path) -> None:
    ports = dict(zip(PORTS, (str(free_port()) for _ in PORTS), strict=True))
    shim(tmp_path / "shim", ports)
    env = {
        "PATH": f"{tmp_path / 'shim'}:{os.environ['PATH']}",
        "COLUMNAR_COMPILED": "no",  # nor is anything compiled beside the tests
        "WIKKA_STORE": f"127.0.0.1:{ports['9090']}",
    }
    first, second = (Terminal(clone, tmp_path / f"terminal{number}", env) for number in (1, 2))
    try:
        assert BLOCKS[0].text == "make run\n"
        first.stay_in(BLOCKS[0].text)
        first.wait_for(RUNNING, PATIENCE_S)
        for block in BLOCKS[1:]:
            second.paste(shortened(block.pasted, ports), PATIENCE_S)
    finally:
        first.interrupt()
        second.close()
        first.close()
    said = second.said()
    assert "Hello" in said
    assert "b'text:body': b'Hello'" in said, "the scan in Python"
    assert "page:HomePage" in said, "what the trigger wrote"
    assert "Stopping" in first.said()


def test_the_blocks_are_all_of_them() -> None:
    """A block in another form, indented or with tildes, would not be run."""
    text = (ROOT / "README.md").read_text()
    assert text.count("```") == 2 * len(BLOCKS)
    assert "~~~" not in text
    assert {block.language for block in BLOCKS} == {"", "python"}
    assert len([block for block in BLOCKS if "wikibench replay" in block.text]) == 2
    loads = "".join(block.text for block in BLOCKS if "wikibench" in block.text)
    assert [loads.count(typed) for typed in SHORTER] == [1] * len(SHORTER), "what is shortened is there"
