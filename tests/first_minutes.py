"""The first minutes of a new user, on a fresh clone: every block of the README as it stands, and how long each takes.

    python -m tests.first_minutes [--python PYTHON] [--cold] [--at-most SECONDS] [--wheel] [--tests]

Clones the commit that is checked out here, pastes ``make run`` into one terminal and the other blocks into a
second, in order, in the clone's folder.  Caches of packages are those of the user; ``--cold`` gives it empty
ones.  Ports are the README's, so they must be free.  ``--wheel`` also builds and installs a wheel, compiled
and, without a compiler, pure; ``--tests`` runs ``make test`` too.

Exit status 0: every block succeeded, and the wiki's first page came at most SECONDS after the clone began.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final
from urllib.error import URLError
from urllib.request import urlopen

from tests.support.readme_blocks import RUNNING, Terminal, await_that, blocks_of

ROOT: Final = Path(__file__).parents[1]
PORTS: Final = (9090, 9095, 8080, 9190, 9195)
PAGE: Final = "http://127.0.0.1:8080/HomePage"
PATIENCE_S: Final = 900.0
_ENVIRONMENT_MADE: Final = re.compile(r"packages.*\.\.\. \d+ s$", re.MULTILINE)


class Watch:
    """Prints each part with its time from the beginning, and from the part before."""

    def __init__(self) -> None:
        self._began = self._last = time.monotonic()

    def told(self, what: str) -> float:
        now = time.monotonic()
        print(f"{now - self._began:7.1f} s  (+{now - self._last:.1f})  {what}", flush=True)
        self._last = now
        return now - self._began


def answers() -> bool:
    """Whether the wiki shows its first page."""
    try:
        with urlopen(PAGE, timeout=30) as answer:
            return b"Welcome" in answer.read()
    except (URLError, OSError):
        return False


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def first_minutes(folder: Path, env: dict[str, str], *, with_tests: bool) -> float:
    """Seconds to the first page; AssertionError where a block fails."""
    watch = Watch()
    clone = folder / "clone"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    watch.told("cloned")
    blocks = blocks_of((clone / "README.md").read_text())
    serving, working = (Terminal(clone, folder / name, env) for name in ("first terminal", "second terminal"))
    try:
        serving.stay_in(blocks[0].text)

        def comes(happens: Callable[[], bool], what: str) -> float:
            await_that(lambda: happens() or serving.has_ended(), PATIENCE_S, serving.said)
            assert not serving.has_ended(), serving.said()
            return watch.told(what)

        comes(lambda: _ENVIRONMENT_MADE.search(serving.said()) is not None, "environment installed")
        comes(lambda: listens(PORTS[0]), "the store listens")
        page_s = comes(answers, "the wiki's first page")
        comes(lambda: RUNNING in serving.said(), "make run has said where everything is")
        print(serving.said())
        for block in blocks[1:]:
            if block.text != "make test\n" or with_tests:
                working.paste(block.pasted, PATIENCE_S)
                watch.told(block.pasted.strip().splitlines()[0])
    finally:
        serving.interrupt()
        working.close()
        serving.close(60)
    watch.told("stopped")
    return page_s


def wheels(folder: Path, python: str, env: dict[str, str]) -> None:
    """``pip wheel`` with a compiler and without; each is installed and asked how it runs."""
    asked = "import columnar.runtime.compiled as c; print(c.state)"
    for kind, more, wanted in (("pure", {"CC": "/nonexistent"}, "-py3-none-any.whl"), ("compiled", {}, "linux")):
        watch, made = Watch(), folder / kind
        source, environment = made / "source", made / "env"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(source)], check=True)
        subprocess.run([python, "-m", "venv", str(environment)], check=True)
        pip = [str(environment / "bin" / "python"), "-m", "pip"]
        build = [*pip, "wheel", "--quiet", "--no-deps", "-w", str(made), str(source)]
        subprocess.run(build, check=True, env={**env, **more})
        (wheel,) = made.glob("*.whl")
        watch.told(wheel.name)
        assert wanted in wheel.name, wheel.name
        subprocess.run([*pip, "install", "--quiet", str(wheel)], check=True, env=env)
        done = subprocess.run([*pip[:1], "-c", asked], cwd=made, capture_output=True, text=True, check=True)
        watch.told(f"installed; the hot modules run {done.stdout.strip()}")
        assert done.stdout.startswith("compiled" if kind == "compiled" else "interpreted"), done.stdout


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.first_minutes", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--python", default="python3", help="the Python that make uses, such as /usr/bin/python3")
    parser.add_argument("--cold", action="store_true", help="with empty caches of packages")
    parser.add_argument("--at-most", type=float, default=30.0, metavar="SECONDS", help="to the first page")
    parser.add_argument("--wheel", action="store_true", help="build and install wheels too")
    parser.add_argument("--tests", action="store_true", help="run make test too")
    asked = parser.parse_args()
    taken = [port for port in PORTS if listens(port)]
    if taken:
        print(f"The README's blocks need ports {PORTS}; these are taken: {taken}", file=sys.stderr)
        return 2
    folder = Path(tempfile.mkdtemp(prefix="columnar-first-"))
    # As a user's: none of what the environment of this process brings along.
    env = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH")}
    own = os.path.join(sys.prefix, "bin")
    env["PATH"] = os.pathsep.join(part for part in env["PATH"].split(os.pathsep) if part != own)
    env["MAKEFLAGS"] = f"PYTHON={shutil.which(asked.python, path=env['PATH'])}"
    if asked.cold:
        env |= {name: str(folder / name) for name in ("UV_CACHE_DIR", "PIP_CACHE_DIR")}
    try:
        page_s = first_minutes(folder, env, with_tests=asked.tests)
        if asked.wheel:
            wheels(folder, asked.python, env)
    except AssertionError as error:
        print(f"{error}\nWhat was made is left in {folder}", file=sys.stderr)
        return 1
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"all of it: {spent.ru_utime + spent.ru_stime:.0f} s of CPU; load of the machine {load}")
    shutil.rmtree(folder, ignore_errors=True)
    if page_s > asked.at_most:
        print(f"The first page came after {page_s:.1f} s; {asked.at_most:g} were wanted", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
