"""The examples of docs/views.md, as they stand and in their order, against one store: they print what the page says."""

from __future__ import annotations

import io
import re
import shlex
from contextlib import redirect_stdout
from pathlib import Path

from tests.support.readme_blocks import blocks_of
from tests.support.serving import Serving
from tests.support.shell import Shell

PAGE = Path(__file__).parents[2] / "docs" / "views.md"


def run(code: str, port: int) -> list[str]:
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(code.replace("9090", str(port)), str(PAGE), "exec"), {})
    return printed.getvalue().splitlines()


def test_the_examples(tmp_path: Path) -> None:
    commands, reading, declaring, prints = blocks_of(PAGE.read_text())
    serving = Serving(tmp_path / "store").start()
    try:
        port = serving.store.port
        shell = Shell(f"127.0.0.1:{port}")
        for line in commands.text.replace("\\\n", " ").splitlines():
            shell.out(*shlex.split(line)[1:])
        connection = serving.connect()
        assert connection.views.wait("authors", timeout_ms=60_000)
        said = re.findall(r"^print\(.*?\)(?: +# (.*))?$", reading.text, re.MULTILINE)
        printed = run(reading.text, port)
        assert len(printed) == len(said)
        assert [line for line, comment in zip(printed, said, strict=True) if comment] == [one for one in said if one]
        assert run(declaring.text, port) == prints.text.splitlines()
        for name in ("authors", "top_pages", "tags", "tags_of_authors", "authors_of_tags"):
            assert connection.views.check(name).wrong == 0
    finally:
        serving.stop()
