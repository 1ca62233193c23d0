"""The command line ``columnar``, run in this process, and a store for it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

from click.testing import CliRunner, Result

from columnar.cli import main
from tests.support.serving import Serving


@contextmanager
def store_at(folder: Path) -> Iterator[str]:
    """Yield the address of a store."""
    serving = Serving(folder).start()
    try:
        yield f"127.0.0.1:{serving.store.port}"
    finally:
        serving.stop()


def command(*words: str) -> CompletedProcess[str]:
    """Run a command that starts no store, without the third of a second that an interpreter and its imports take."""
    result = CliRunner().invoke(main, list(words), prog_name="columnar")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return CompletedProcess(words, result.exit_code, result.stdout, result.stderr)


class Shell:
    def __init__(self, address: str) -> None:
        self._address = address

    def __call__(self, *words: str, typed: str | None = None) -> Result:
        return CliRunner().invoke(main, list(words), env={"COLUMNAR_STORE": self._address}, input=typed)

    def out(self, *words: str) -> str:
        result = self(*words)
        assert result.exit_code == 0, result.output
        return result.stdout

    def json(self, *words: str) -> Any:
        return json.loads(self.out(*words, "--json"))

    def error(self, *words: str, status: int = 1) -> str:
        """Return the one line on stderr."""
        result = self(*words)
        assert (result.exit_code, result.stdout) == (status, ""), repr(result.exception)
        (line,) = result.stderr.splitlines()
        assert line.startswith("columnar: ")
        return line.removeprefix("columnar: ")
