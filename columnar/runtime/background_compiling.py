"""Compile the hot modules beside a serving store, only in a checkout and only on request.

    COLUMNAR_COMPILED=background  (``make run`` sets it)
    waiting for nothing -> compiling, a process of the lowest priority -> ready: restart to use them
                                                                       -> failed, with the reason

The process is ``columnar.runtime.compiling``.  That process reads a pipe whose opposite end the store has open, so it
ends when the store ends, in whatever way.  A running store never switches to the newly compiled modules.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE
from typing import Final

from columnar.runtime import compiled

_log = logging.getLogger("columnar.runtime.compiling")

WANTED: Final = "background"
_LINE: Final = 65_536  # bound on the process's output, which is one line


class BackgroundCompiling:
    """The compilation in the background, of which a process has at most one.  Owned by the loop."""

    def __init__(self) -> None:
        self._state = ""  # text, appended to ``compiled.state``
        self._began_s: float | None = None  # while it compiles
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start to compile if this is requested, the package is a checkout and its compiled modules are outdated."""
        if os.environ.get(compiled.SWITCH) == WANTED and compiled.is_checkout() and not compiled.are_fresh():
            _log.setLevel(logging.INFO)  # log a requested compilation, whatever the log level of other lines
            self._task = asyncio.create_task(self._compile())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def state(self) -> str:
        """Return how the hot modules run, and the progress of their compilation."""
        if self._began_s is not None:
            return f"{compiled.state}; compiling in the background, for {time.monotonic() - self._began_s:.0f} s"
        return f"{compiled.state}; {self._state}" if self._state else compiled.state

    async def _compile(self) -> None:
        self._began_s = time.monotonic()
        _log.info("compiling the hot modules in the background, some two minutes of one core")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "columnar.runtime.compiling", "--background"),
            stdin=PIPE,
            stdout=DEVNULL,
            stderr=PIPE,
            limit=_LINE,
            start_new_session=True,  # Ctrl-C at the terminal must stop only the store
        )
        assert process.stderr is not None, "it was started with a pipe"
        try:
            said = (await process.stderr.read()).decode(errors="replace").strip().rpartition("\n")[2]
            status = await process.wait()
        except asyncio.CancelledError:
            if process.returncode is None:
                process.kill()  # its compiler reads a pipe from it, and ends too
                await process.wait()
            raise
        spent_s = time.monotonic() - self._began_s
        self._began_s = None
        if status == 0:
            self._state = "compiled modules ready: restart to use them"
            _log.info("%s (%.0f s)", self._state, spent_s)
        else:
            self._state = said or f"the compiling process ended with status {status}"
            _log.info("%s", self._state)
