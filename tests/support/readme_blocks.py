"""The README's blocks, and a terminal to paste them into: bash, block after block, in one folder."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

READY: Final = "columnar ready"  # what a store says when it serves
RUNNING: Final = "Ctrl-C stops both."  # the last line of make run
_END: Final = "@@ end of block"
_FAILED: Final = "@@ failed"
_FENCED: Final = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    language: str  # "" is the shell's
    text: str

    @property
    def file_name(self) -> str | None:
        """Return the file for a block of Python that begins with a file's name, else None."""
        first = self.text.partition("\n")[0]
        return first.removeprefix("# ") if re.fullmatch(r"# \w+\.py", first) else None

    @property
    def pasted(self) -> str:
        """Return the block as a person types it: shell commands as they are, Python into an interpreter or a file."""
        if self.language != "python":
            return self.text
        return f"{f'cat > {self.file_name}' if self.file_name else 'python -'} <<'END'\n{self.text}END\n"


def blocks_of(readme: str) -> list[Block]:
    return [Block(language, text) for language, text in _FENCED.findall(readme)]


class Terminal:
    """A bash of its own; its output and that of its children goes to a file."""

    def __init__(self, folder: Path, log: Path, env: Mapping[str, str] | None = None) -> None:
        self._log = log
        with open(log, "wb") as said:
            self._bash = subprocess.Popen(
                ["bash", "--norc"],
                cwd=folder,
                env={**os.environ, **(env or {})},
                stdin=subprocess.PIPE,
                stdout=said,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )
        self._type(f"set -m; trap 'echo \"{_FAILED}: $BASH_COMMAND\"' ERR\n")

    def said(self) -> str:
        return self._log.read_text(errors="replace")

    def _type(self, text: str) -> None:
        assert self._bash.stdin is not None
        self._bash.stdin.write(text)
        self._bash.stdin.flush()

    def wait_for(self, words: str, patience_s: float, times: int = 1) -> None:
        await_that(
            lambda: self.said().count(words) >= times or self._bash.poll() is not None,
            patience_s,
            lambda: f"no {words!r} within {patience_s:.0f} s:\n{self.said()}",
        )
        assert self.said().count(words) >= times, self.said()

    def paste(self, text: str, patience_s: float) -> None:
        """Run a block, of which every command must succeed; a server in the background must say that it is ready."""
        ends, ready = self.said().count(_END + "\n"), self.said().count(READY)
        # bash's own words first, so that the end is not taken for input of the last command
        self._type(f"{text}\necho {shlex.quote(_END)} </dev/null\n")
        self.wait_for(_END + "\n", patience_s, ends + 1)
        assert _FAILED not in self.said(), self.said()
        if text.rstrip().endswith("&"):
            self.wait_for(READY, patience_s, ready + 1)

    def run(self, command: str, patience_s: float) -> tuple[int, str]:
        """Run one command, which may fail; return its exit status and what it printed."""
        begin = len(self.said())
        self._type(f'trap - ERR\n{command}\necho "{_END} $?" </dev/null\n')
        ended = re.compile(rf"^{_END} (\d+)\n", re.MULTILINE)
        await_that(
            lambda: ended.search(self.said(), begin) is not None or self._bash.poll() is not None,
            patience_s,
            lambda: f"{command} has not ended within {patience_s:.0f} s:\n{self.said()}",
        )
        said = self.said()[begin:]
        found = ended.search(said)
        assert found is not None, said
        return int(found[1]), said[: found.start()]

    def stay_in(self, command: str) -> None:
        """Replace the shell by a command that stays in the foreground."""
        self._type(f"exec {command}")

    def has_ended(self) -> bool:
        return self._bash.poll() is not None

    def interrupt(self) -> None:
        """Send Ctrl-C to the command in the foreground."""
        with contextlib.suppress(ProcessLookupError):  # it has ended
            os.killpg(self._bash.pid, signal.SIGINT)

    def close(self, patience_s: float = 30) -> None:
        """End everything that runs in the terminal, as closing the window does."""
        assert self._bash.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has become something else, or ended
            self._type("trap - ERR; kill -HUP $(jobs -p) 2>/dev/null; wait; exit\n")
            self._bash.stdin.close()
        self._bash.wait(patience_s)


def await_that(happens: Callable[[], bool], patience_s: float, otherwise: Callable[[], str]) -> None:
    deadline = time.monotonic() + patience_s
    pause = threading.Event()
    while not happens():
        assert time.monotonic() < deadline, otherwise()
        pause.wait(0.05)
