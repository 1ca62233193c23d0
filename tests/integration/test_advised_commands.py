"""The commands of the adviser's pages, run on a store: each of them is one that the store takes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from columnar.advise.text import page
from tests.support.advised import SYSTEMS, design_for
from tests.support.shell import Shell, store_at


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_commands_of_a_page(system: str, tmp_path: Path) -> None:
    (block,) = re.findall(r"^## Commands\n\n```\n(.*?)^```$", page(design_for(system)), re.M | re.S)
    commands = [shlex.split(line)[1:] for line in block.splitlines()]
    assert commands.pop() == ["trigger", "sync", "my_triggers"]  # its functions run in test_advised_triggers
    with store_at(tmp_path / "store") as address:
        shell = Shell(address)
        for words in commands:
            shell.out(*words)
        made = {line.split("\t")[0] for line in shell.out("tables").splitlines()}
    assert {words[1] for words in commands if words[0] == "create"} <= made
