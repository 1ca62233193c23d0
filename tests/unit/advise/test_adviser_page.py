"""The worked example of docs/adviser.md: the files of the page, the command, and every line that the page shows."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.support.readme_blocks import blocks_of
from tests.support.shell import command

PAGE = Path(__file__).parents[3] / "docs" / "adviser.md"


def test_the_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _install, schema, queries, typed, *shown = blocks_of(PAGE.read_text())
    (tmp_path / "schema.sql").write_text(schema.text)
    (tmp_path / "queries.sql").write_text(queries.text)
    monkeypatch.chdir(tmp_path)
    done = command(*shlex.split(typed.text)[1:])
    assert done.returncode == 0
    assert len(shown) == 5
    lines = set(done.stdout.splitlines())
    for block in shown:
        assert [line for line in block.text.splitlines() if line and line not in lines] == []
