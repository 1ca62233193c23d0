"""A command run to its end by the loop, within a time, with the end of what it wrote.

The command has a thread of its own, because those of the loop's executor may all wait for a file system.
"""

from __future__ import annotations

import os
import selectors
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from columnar.runtime.own_thread import call_in_own_thread
from columnar.runtime.spawned_command import SpawnedCommand

OUTPUT_BYTES: Final = 1 << 20  # of a command's output, its end
LINE_CHARACTERS: Final = 300  # of the last line, as a message has it
_REAPED_S: Final = 1.0  # for a killed command to end; one in an uninterruptible call is left alone


@dataclass(frozen=True, slots=True)
class Ended:
    output: bytes  # the last OUTPUT_BYTES of stdout
    said: bytes  # of stderr
    is_whole: bool  # the command ended within its time; else it was killed
    status: int | None  # negative after a signal; None: it was killed, and does not end

    @property
    def last_line(self) -> str:
        """Return the last line of stderr, or of stdout if stderr is empty."""
        lines = (self.said or self.output).decode(errors="replace").strip().splitlines()
        return lines[-1][:LINE_CHARACTERS] if lines else "it said nothing"


async def run_to_end(words: Sequence[str], environment: Mapping[str, str], limit_s: float, thread: str) -> Ended:
    """Run the command; after ``limit_s`` it is killed with its children.  ``thread`` names its thread.

    A program that cannot be run has the last line ``... cannot be run: ...``.  Raises OSError if nothing can be
    started.  A cancellation kills the command.
    """
    command = _Command(words, environment, limit_s)
    try:
        return await call_in_own_thread(command.run, thread)
    finally:
        command.kill()


class _Command:
    def __init__(self, words: Sequence[str], environment: Mapping[str, str], limit_s: float) -> None:
        self._words = words
        self._environment = environment
        self._limit_s = limit_s
        # ``run`` sets the first and then reads the second, ``kill`` the other way around: so one of them kills.
        self._process: SpawnedCommand | None = None  # while it runs
        self._is_killed = False

    def run(self) -> Ended:
        """Run it to its end.  Blocks for at most ``limit_s`` + _REAPED_S; raises OSError."""
        until_s = time.monotonic() + self._limit_s
        if self._is_killed:
            return Ended(b"", b"", False, None)
        self._process = process = self._start()
        if self._is_killed:
            process.kill()
        output, said, is_whole = b"", b"", False
        try:
            output, said, is_whole = _read_ends(process, until_s)
        finally:
            self._process = None
            status = process.close(_REAPED_S)
        return Ended(output, said, is_whole, status)

    def _start(self) -> SpawnedCommand:
        return SpawnedCommand.start(self._words, self._environment)

    def kill(self) -> None:
        """Kill the command and its children, if they live.  For any thread; does not wait."""
        self._is_killed = True
        process = self._process
        if process is not None:
            process.kill()


def _read_ends(process: SpawnedCommand, until_s: float) -> tuple[bytes, bytes, bool]:
    """Read stdout and stderr to their ends; return the last OUTPUT_BYTES of each, and whether all ended in time."""
    ends = {process.stdout: b"", process.stderr: b""}
    with selectors.DefaultSelector() as selector:
        for descriptor in ends:
            selector.register(descriptor, selectors.EVENT_READ)
        while selector.get_map() and (left_s := until_s - time.monotonic()) > 0:
            for key, _ in selector.select(left_s):
                piece = os.read(key.fd, 1 << 16)
                ends[key.fd] = (ends[key.fd] + piece)[-OUTPUT_BYTES:]
                if not piece:
                    selector.unregister(key.fd)
        is_whole = not selector.get_map()
    is_whole = is_whole and process.has_ended(max(0.0, until_s - time.monotonic()))
    return ends[process.stdout], ends[process.stderr], is_whole
