"""Daemons of file systems, and the mounts that they serve."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from columnar.runtime.child_processes import before_exec

START_S: Final = 120.0
_POLL_S: Final = 0.1


class Daemon:
    """A process in the foreground, which a test may kill, freeze and start again.  It ends with this process."""

    def __init__(self, command: Sequence[str | Path], log: Path) -> None:
        self.command = [str(word) for word in command]
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=before_exec(signal.SIGKILL)
            )

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def freeze(self) -> None:
        """Stop the process like a machine that hangs: its connections stay open, and nothing answers."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")[-2_000:] if self._log.exists() else ""


def run(*command: str | Path, limit_s: float = 60.0) -> str:
    """Run a command to its end and return its output.  Raises AssertionError with what it said if it fails."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=limit_s, check=False)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stdout}{done.stderr}"
    return done.stdout


def wait_until(is_so: Callable[[], bool], what: str, daemons: Sequence[Daemon]) -> None:
    """Poll until it is so.  Raises AssertionError after START_S, or when a daemon has ended."""
    until_s = time.monotonic() + START_S
    while not is_so():
        ended = [daemon for daemon in daemons if not daemon.is_running()]
        late = time.monotonic() > until_s
        if ended or late:
            said = "\n".join(f"{' '.join(daemon.command)}\n{daemon.log}" for daemon in ended or daemons)
            raise AssertionError(f"not {what}{f' within {START_S:g} s' if late else ''}:\n{said}")
        time.sleep(_POLL_S)  # other processes bring it about, and say nothing


def is_mounted(place: Path) -> bool:
    """Tell whether something is mounted there, without a call that a hanging mount could block."""
    return any(line.split(" ")[4] == str(place) for line in Path("/proc/self/mountinfo").read_text().splitlines())


def unmount(place: Path) -> None:
    """Unmount at once, also a mount whose daemon hangs or is gone."""
    if is_mounted(place):
        run("umount", "--lazy", place)


@dataclass(frozen=True, slots=True)
class SharedFolder:
    kind: str
    mounts: tuple[Path, ...]
    daemons: dict[str, Daemon]  # by name; those that serve the mounts are ``mount0``, ``mount1`` ..., if they are ours
    evict: Callable[[int], None]  # takes a mount's access away, as a fence does; nothing where that does not exist
    conf: Path | None = None  # of CephFS

    def power_off(self, number: int) -> None:
        """Kill the daemon of a mount, which says nothing to anybody, as a machine that loses power."""
        daemon = self.daemons.get(f"mount{number}")
        if daemon is not None:
            daemon.kill()
            unmount(self.mounts[number])

    def power_on(self, number: int) -> None:
        """Mount again after ``power_off``, or after an eviction."""
        daemon = self.daemons.get(f"mount{number}")
        if daemon is not None:
            self.power_off(number)
            daemon.start()
            wait_until(lambda: is_mounted(self.mounts[number]), f"{self.mounts[number]} is mounted", [daemon])


def end_all(daemons: Sequence[Daemon]) -> None:
    """Kill the daemons.  Frozen ones too."""
    for daemon in daemons:
        daemon.kill()


def short_folder(folder: Path) -> Path:
    """Return the folder, which must be short: paths of sockets in it have at most 108 bytes."""
    assert len(os.fspath(folder)) <= 60, f"{folder} is too long for sockets"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
