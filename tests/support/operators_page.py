"""The page of an operator's tasks: its steps, what they print, and a machine in a folder on which they run."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.ports import free_port
from tests.support.readme_blocks import Terminal, await_that, blocks_of
from tests.support.unit_manager import Manager, on_machine

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "operators-tasks.md"
SHIMS: Final = ("systemctl", "journalctl", "systemd-sysusers", "systemd-tmpfiles")
PATIENCE_S: Final = 60.0
LOG_S: Final = 10.0  # a line of the log is written a moment after what it speaks of
READS_LOG: Final = ("journalctl ", "tail ", "ls ")
COLUMNAR: Final = """#!/bin/sh
export PYTHONPATH={source} COLUMNAR_PORT={port} COLUMNAR_WEB_PORT={web} ENVIRONMENT_OF_VERSION={environment}
export COLUMNAR_CONFIG=/dev/null
[ ! -e {root}/etc/columnar/columnar.toml ] || export COLUMNAR_CONFIG={root}/etc/columnar/columnar.toml
grep -qs ^store "$COLUMNAR_CONFIG" || export COLUMNAR_STORE="${COLUMNAR_STORE-127.0.0.1:{port}}"
exec {python} -m columnar "$@"
"""
# An environment as venv makes it, with a pip that installs the sources of the tests.
PYTHON: Final = """#!/bin/sh
[ "$1 $2" = "-m venv" ] || exec {python} "$@"
mkdir -p "$3/bin"
printf '#!/bin/sh\\n[ "$1" = install ] && [ -e "$2" ] && {root}/shims/install-columnar "%s"\\n' "$3" > "$3/bin/pip"
chmod +x "$3/bin/pip"
"""
INSTALL: Final = """#!/bin/sh
sed "s#@environment@#$1#" {root}/shims/columnar.in > "$1/bin/columnar" && chmod +x "$1/bin/columnar"
echo "Successfully installed columnar"
"""


@dataclass(frozen=True, slots=True)
class Command:
    typed: str
    prints: tuple[str, ...]

    @property
    def is_refused(self) -> bool:
        """The page shows an error of ours."""
        return any(line.startswith("columnar: ") for line in self.prints)


@dataclass(frozen=True, slots=True)
class File:
    path: str
    text: str


Step = tuple[Command | File, ...]


def tasks_of(page: str) -> dict[str, list[Step]]:
    """Return the steps of each task: those of ``1.``, of ``2.`` and so on."""
    found: dict[str, list[Step]] = {}
    for section in re.split(r"^## ", page, flags=re.M)[1:]:
        title, _, text = section.partition("\n")
        _, *steps = re.split(r"^(\d+)\. ", text, flags=re.M)
        numbers, texts = steps[::2], steps[1::2]
        assert numbers == [str(number) for number in range(1, len(texts) + 1)], f"the numbers of {title}"
        found[title] = [tuple(_actions(one)) for one in texts]
    return found


def _actions(text: str) -> list[Command | File]:
    found: list[Command | File] = []
    for block in blocks_of(text):
        if block.language == "console":
            first, *rest = re.split(r"^\$ ", block.text, flags=re.M)
            assert not first, f"output before a command: {block.text}"
            for one in rest:
                typed, *prints = one.splitlines()
                found.append(Command(typed, tuple(prints)))
        else:
            path = re.fullmatch(r"# (/\S+)", block.text.partition("\n")[0])
            assert path is not None, f"a block names no file: {block.text}"
            found.append(File(path[1], block.text))
    return found


def pattern_of(prints: tuple[str, ...]) -> re.Pattern[str]:
    """``...`` stands for anything within a line; alone for any number of lines.  Blanks and tabs are the same."""
    lines = []
    for line in map(_blanks, prints):
        lines.append(r"(?:.*\n)*" if line == "..." else ".*".join(map(re.escape, line.split("..."))) + r"\n")
    return re.compile("".join(lines))


def _blanks(line: str) -> str:
    return re.sub(r"\s+", " ", line).rstrip()


class Machine:
    """A folder that stands for a machine, with a terminal; ``close`` ends its store."""

    def __init__(self) -> None:
        # short, because paths of Unix sockets are; of no TMPDIR in memory, which the doctor warns of
        self.root = Path(tempfile.mkdtemp(prefix="op-", dir="/tmp"))
        self.port, self.web = free_port(), free_port()
        self.unit = Manager(self.root, "columnar")
        self.replaced: dict[str, str] = {"9090": str(self.port), "9095": str(self.web)}
        for name in ("shims", "work", "opt/columnar-0.0.9/bin", "etc/columnar", "usr/lib", "mnt/new"):
            (self.root / name).mkdir(parents=True)
        (self.root / "work/packaging").symlink_to(ROOT / "packaging")
        self._write_programs()
        (self.root / "opt/columnar").symlink_to(self.root / "opt/columnar-0.0.9")
        path = f"{self.root}/shims:{self.root}/opt/columnar/bin:{os.environ['PATH']}"
        self._terminal = Terminal(self.root / "work", self.root / "terminal", {"PATH": path, "MACHINE": str(self.root)})

    def _write_programs(self) -> None:
        values = {"root": self.root, "source": ROOT, "python": sys.executable, "port": self.port, "web": self.web}
        values["environment"] = "@environment@"
        texts = {"columnar.in": COLUMNAR, "python3": PYTHON, "install-columnar": INSTALL}
        manager = '#!/bin/sh\nexport PYTHONPATH={source}\nexec {python} -m tests.support.unit_manager "${0##*/}" "$@"\n'
        for name, text in (texts | dict.fromkeys(SHIMS, manager)).items():
            for placeholder, value in values.items():
                text = text.replace("{" + placeholder + "}", str(value))
            self.write(f"{self.root}/shims/{name}", text)
            os.chmod(self.root / "shims" / name, 0o755)
        old = self.root / "opt/columnar-0.0.9"
        text = (self.root / "shims/columnar.in").read_text().replace("@environment@", str(old))
        (old / "bin/columnar").write_text(text)
        (old / "bin/columnar").chmod(0o755)

    def write(self, path: str, text: str) -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text)

    def text_here(self, text: str) -> str:
        """Return a text of the page with the ports and paths of this machine."""
        for told, here in self.replaced.items():
            text = text.replace(told, here)
        return on_machine(text, self.root)

    def install(self) -> None:
        """Do what the first task does, but for the start."""
        shutil.copytree(ROOT / "packaging/systemd", self.root / "etc/systemd/system", dirs_exist_ok=True)
        for name in ("columnar-node.service", "credentials.conf"):
            (self.root / "etc/systemd/system" / name).unlink()
        self.write(f"{self.root}/etc/columnar/columnar.toml", "[standalone]\n")
        assert self.unit.load() == 0

    def type(self, typed: str) -> str:
        """Run a command of the test's own, which must succeed; return what it prints."""
        status, said = self._terminal.run(self.text_here(typed), PATIENCE_S)
        assert status == 0, f"{typed}: {said}"
        return said

    def do(self, step: Step) -> None:
        """Do what a step says, and hold it to what it says."""
        for action in step:
            if isinstance(action, File):
                self.write(on_machine(action.path, self.root), self.text_here(action.text))
            else:
                self._run(action)

    def _run(self, command: Command) -> None:
        expected = pattern_of(tuple(map(self.text_here, command.prints)))
        said, status = "", 0

        def is_as_told() -> bool:
            nonlocal said, status
            status, said = self._terminal.run(self.text_here(command.typed), PATIENCE_S)
            lines = "".join(f"{_blanks(line)}\n" for line in said.splitlines())
            return expected.fullmatch(lines) is not None and (status != 0) is command.is_refused

        told = "\n".join(command.prints)
        await_that(
            is_as_told,
            LOG_S if command.typed.startswith(READS_LOG) else 0.0,
            lambda: f"$ {command.typed}\nstatus {status}, printed:\n{said}\nThe page says:\n{told}\n{self._journal()}",
        )

    def _journal(self) -> str:
        return "".join(self.unit.journal.read_text()[-2_000:]) if self.unit.journal.exists() else ""

    def close(self) -> None:
        try:
            self._terminal.close()
        finally:
            if (pid := self.unit.pid) is not None:
                os.killpg(pid, signal.SIGKILL)
            shutil.rmtree(self.root)
