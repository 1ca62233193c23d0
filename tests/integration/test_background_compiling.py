"""A store that ``make run`` starts from a checkout has the hot modules compiled beside its work, and says so."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

ROOT = Path(__file__).parents[2]
PATIENCE_S = 30.0
# In place of columnar/runtime/compiling.py: says that it runs, and ends as the file ``end`` beside it says.
COMPILES = """
import os, pathlib, sys, threading
def end_with_parent():
    while os.read(0, 4096):
        pass
    os._exit(1)
threading.Thread(target=end_with_parent, daemon=True).start()
here = pathlib.Path(__file__).parents[2]
(here / "pid.new").write_text(str(os.getpid()))
(here / "pid.new").rename(here / "pid")
while not (here / "end").exists():
    threading.Event().wait(0.02)
sys.exit((here / "end").read_text() or 0)
"""


class Checkout:
    """A copy of the package, with ``COMPILES`` as its compiler, and a store that runs from it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(ROOT / "columnar", folder / "columnar", ignore=shutil.ignore_patterns("_compiled"))
        (folder / "columnar" / "runtime" / "compiling.py").write_text(COMPILES)
        self.pid_file = folder / "pid"
        self.page = ""
        self._store: subprocess.Popen[str] | None = None

    def become_one(self) -> None:
        for name in ("setup.py", "pyproject.toml"):
            shutil.copy(ROOT / name, self.folder / name)

    def start(self, servers: int = 1, **env: str) -> None:
        options = ["--data", "data", "--port", "0", "--web-port", "0", "--log-level", "warning"]
        options += ["--servers", str(servers)]
        with open(self.folder / "log", "w") as log:
            self._store = subprocess.Popen(
                [sys.executable, "-m", "columnar", "standalone", *options],
                cwd=self.folder,
                env={**os.environ, "PYTHONPATH": str(self.folder), **env},
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self._store.stdout is not None
        ready = re.search(r"web=(\S+)", self._store.stdout.readline())
        assert ready is not None, self.log()
        self.page = ready[1]

    def compiler(self) -> int:
        await_that(self.pid_file.exists)
        return int(self.pid_file.read_text())

    def log(self) -> str:
        return (self.folder / "log").read_text()

    def await_line(self, words: str) -> None:
        """A thread of the store writes its lines: the page may be ahead of them."""
        await_that(lambda: words in self.log())

    def says(self, words: str) -> bool:
        with urlopen(self.page, timeout=10) as answer:
            return words in answer.read().decode()

    def end(self, number: signal.Signals) -> int:
        assert self._store is not None
        self._store.send_signal(number)
        self._store.communicate(timeout=PATIENCE_S)
        return self._store.returncode

    def clean_up(self) -> None:
        if self._store is not None and self._store.poll() is None:
            self.end(signal.SIGKILL)


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Checkout]:
    made = Checkout(tmp_path)
    made.become_one()
    yield made
    made.clean_up()


def await_that(happens: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    pause = threading.Event()
    while not happens():
        assert time.monotonic() < deadline, "it did not happen"
        pause.wait(0.02)


def is_running(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize("servers", [1, 2])
def test_the_page_and_the_log_say_when_to_restart(checkout: Checkout, servers: int) -> None:
    checkout.start(servers, COLUMNAR_COMPILED="background")
    checkout.compiler()
    assert checkout.says("compiling in the background")
    checkout.await_line("compiling the hot modules in the background")
    (checkout.folder / "end").touch()
    await_that(lambda: checkout.says("compiled modules ready: restart to use them"))
    checkout.await_line("compiled modules ready: restart to use them")
    assert checkout.end(signal.SIGTERM) == 0


def test_a_failure_is_told_in_one_line(checkout: Checkout) -> None:
    checkout.start(COLUMNAR_COMPILED="background")
    checkout.compiler()
    (checkout.folder / "end").write_text("a line before\nnot compiled: no C compiler")
    await_that(lambda: checkout.says("; not compiled: no C compiler"))
    checkout.await_line("not compiled: no C compiler")
    lines = [line for line in checkout.log().splitlines() if "columnar.runtime.compiling" in line]
    assert len(lines) == 2
    assert lines[1].endswith("not compiled: no C compiler")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_compiling_ends_with_the_store(checkout: Checkout, number: signal.Signals) -> None:
    checkout.start(COLUMNAR_COMPILED="background")
    compiler = checkout.compiler()
    checkout.end(number)
    await_that(lambda: not is_running(compiler))


@pytest.mark.parametrize(("env", "is_checkout"), [({}, True), ({"COLUMNAR_COMPILED": "background"}, False)])
def test_nothing_is_compiled_unasked_or_where_it_is_installed(
    tmp_path: Path, env: dict[str, str], is_checkout: bool
) -> None:
    made = Checkout(tmp_path)
    if is_checkout:
        made.become_one()
    made.start(**env)
    try:
        assert made.says("hot modules interpreted")
        assert made.end(signal.SIGTERM) == 0
    finally:
        made.clean_up()
    assert not made.pid_file.exists()
