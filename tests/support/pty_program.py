"""A Columnar program at a terminal of its own, with a person's input and the shown text."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
WAIT_S = 60.0  # generous: the machine may be busy
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[=>]|\r")


def _as_from_a_terminal() -> None:
    """Make the child heed Ctrl-C, because a shell that starts tests in the background may have them ignore it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class PtyProgram:
    """``python -m columnar WORDS`` at a terminal of 80 columns and ``lines`` lines."""

    def __init__(self, *words: str, lines: int = 24, env: Mapping[str, str] | None = None) -> None:
        self._here, there = pty.openpty()
        fcntl.ioctl(there, termios.TIOCSWINSZ, struct.pack("HHHH", lines, 80, 0, 0))
        given = {"TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1", "PYTHONPATH": str(ROOT), **(env or {})}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "columnar", *words],
            stdin=there,
            stdout=there,
            stderr=there,
            env={**os.environ, **given},
            preexec_fn=_as_from_a_terminal,
            start_new_session=True,
        )
        os.close(there)
        self._raw = b""
        self._seen = 0  # characters that a wait has passed

    def __enter__(self) -> PtyProgram:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._here)

    def type(self, text: str) -> None:
        os.write(self._here, text.encode())

    @property
    def screen(self) -> str:
        """Return all text shown so far, without control sequences."""
        return _CONTROL.sub("", self._raw.decode(errors="replace"))

    def wait_for(self, text: str) -> str:
        """Wait until ``text`` is shown after the text of the previous wait; return all text up to it."""
        until = time.monotonic() + WAIT_S
        while (place := self.screen.find(text, self._seen)) < 0:
            left = until - time.monotonic()
            ready = select.select([self._here], [], [], max(0.0, left))[0]
            assert ready, f"{text!r} did not come: {self.screen[self._seen :]!r}"
            self._raw += self._read()
        shown = self.screen[self._seen : place]
        self._seen = place + len(text)
        return shown

    def _read(self) -> bytes:
        try:
            data = os.read(self._here, 65_536)
        except OSError:  # the other side is closed
            data = b""
        assert data, f"it has ended: {self.screen!r}"
        return data

    def end(self) -> int:
        """Wait for the program's own end; return its exit status."""
        until = time.monotonic() + WAIT_S
        while time.monotonic() < until and select.select([self._here], [], [], WAIT_S)[0]:
            try:
                data = os.read(self._here, 65_536)
            except OSError:
                break
            if not data:
                break
            self._raw += data
        return self._process.wait(WAIT_S)
