"""The example of docs/changes.md, as it stands: it prints what the page says."""

from __future__ import annotations

import io
import shlex
from contextlib import redirect_stdout
from pathlib import Path

from tests.support.readme_blocks import blocks_of
from tests.support.serving import Serving
from tests.support.shell import Shell

PAGE = Path(__file__).parents[2] / "docs" / "changes.md"


def test_the_example(tmp_path: Path) -> None:
    commands, reading, prints = blocks_of(PAGE.read_text())[:3]
    serving = Serving(tmp_path / "store").start()
    try:
        shell = Shell(f"127.0.0.1:{serving.store.port}")
        said = [shell.out(*shlex.split(line)[1:]) for line in commands.text.splitlines()]
        assert [line.split("\t")[2:] for line in said[-1].splitlines()] == [
            ["one", "meta:author=alice", "meta:state=draft"],
            ["two", "meta:author=bob", "meta:state=ready"],
        ]
        printed = io.StringIO()
        with redirect_stdout(printed):
            code = reading.text.replace("9090", str(serving.store.port))
            exec(compile(code, str(PAGE), "exec"), {"__name__": "example"})
        assert printed.getvalue() == prints.text
    finally:
        serving.stop()
