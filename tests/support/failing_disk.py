"""A store in a process of its own whose disk fails when the test says so (``failing_disk.c``, preloaded)."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp

from columnar.client import Connection
from columnar.client.errors import IOError as StoreError
from tests.support.standalone_store import StoreProcess

SOURCE = Path(__file__).with_suffix(".c")
RECOVERED_S = 20.0
LOOK_S = 0.05
FULL, READ_ONLY, SYNCS_FAIL, NO_MAPPINGS, HELD, DEADLY = "f", "r", "s", "m", "h", "k"


@functools.cache
def library() -> Path | None:
    """Return the compiled library; None if there is no compiler, or nothing can be preloaded."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not Path("/proc/self/fd").is_dir():
        return None
    made = Path(mkdtemp(prefix="columnar-failing-disk-")) / "failing_disk.so"
    atexit.register(shutil.rmtree, made.parent, ignore_errors=True)
    command = [compiler, "-O1", "-shared", "-fPIC", "-o", str(made), str(SOURCE), "-ldl"]
    return made if subprocess.run(command, capture_output=True, check=False).returncode == 0 else None


class FailingDisk:
    """The disk of the processes that have its ``environment``: calls on files below a folder fail."""

    def __init__(self, folder: Path, control: Path) -> None:
        self._control = control
        self._control.write_text("-")
        self.environment = {
            "LD_PRELOAD": str(library()),
            "FAILING_ROOT": str(folder),
            "FAILING_CONTROL": str(self._control),
        }

    def fail(self, how: str) -> None:
        self._set(how)

    def mend(self) -> None:
        self._set("-")

    def _set(self, letter: str) -> None:
        held = os.open(self._control, os.O_WRONLY)  # in place: the store has the file mapped
        os.write(held, letter.encode())
        os.close(held)


class FailingStore(StoreProcess):
    def __init__(self, folder: Path, *flags: str) -> None:
        super().__init__(folder, *flags)
        self._disk = FailingDisk(folder, folder.with_suffix(".control"))
        self.environment |= self._disk.environment

    def fail(self, how: str) -> None:
        self._disk.fail(how)

    def mend(self) -> None:
        self._disk.mend()

    def refused_start(self) -> subprocess.CompletedProcess[str]:
        """Run a store that cannot start; return its end."""
        return subprocess.run(
            self._command, capture_output=True, text=True, check=False, env=self.environment, timeout=RECOVERED_S
        )


def error_of(call: Callable[[], object]) -> str:
    """Return the text of the error that the store answers; '' for any other answer."""
    try:
        call()
    except StoreError as error:
        message = error.message
        return message.decode() if isinstance(message, bytes) else str(message)
    return ""


def until_it_works(call: Callable[[], object]) -> None:
    for _ in range(int(RECOVERED_S / LOOK_S)):
        last = error_of(call)
        if not last:
            return
        threading.Event().wait(LOOK_S)
    raise AssertionError(f"it did not recover within {RECOVERED_S} s: {last}")


def rows(connection: Connection, table: bytes) -> dict[bytes, bytes]:
    return {row: cells[b"f:x"] for row, cells in connection.table(table).scan()}
