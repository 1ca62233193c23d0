"""The clock of one machine of several, moved by a test while the processes run.

Each process of the machine imports a ``sitecustomize`` first, which adds the shift to the system's clock.
"""

from __future__ import annotations

import os
from mmap import mmap
from pathlib import Path
from struct import Struct
from typing import Final

_SHIFT: Final = Struct("=q")
_CUSTOMIZE: Final = """
import mmap, struct, time
with open({file!r}, "r+b") as file:
    memory = mmap.mmap(file.fileno(), 8)
time_ns, seconds = time.time_ns, time.time
time.time_ns = lambda: time_ns() + struct.unpack_from("=q", memory)[0] * 1_000_000
time.time = lambda: seconds() + struct.unpack_from("=q", memory)[0] / 1_000
"""


class ShiftedClock:
    """A file that the processes map, with the shift in milliseconds."""

    def __init__(self, folder: Path, memory: mmap) -> None:
        self._folder = folder
        self._memory = memory

    @classmethod
    def made(cls, folder: Path, shift_ms: int = 0) -> ShiftedClock:
        folder.mkdir()
        file = folder / "shift"
        file.write_bytes(_SHIFT.pack(shift_ms))
        (folder / "sitecustomize.py").write_text(_CUSTOMIZE.format(file=str(file)))
        with file.open("r+b") as opened:
            return cls(folder, mmap(opened.fileno(), _SHIFT.size))

    def move(self, shift_ms: int) -> None:
        _SHIFT.pack_into(self._memory, 0, shift_ms)

    def environment(self, before: dict[str, str]) -> dict[str, str]:
        """Return the environment with which a process of the machine starts."""
        return {**before, "PYTHONPATH": os.pathsep.join([str(self._folder), before["PYTHONPATH"]])}
