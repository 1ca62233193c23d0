"""systemctl, journalctl and their like for a machine without systemd, whose root is the folder ``$MACHINE``.

    python -m tests.support.unit_manager systemctl start columnar

A unit is what ``daemon-reload`` has read: its file and its drop-ins under ``etc/systemd/system``, with the paths of the
machine.  ``start`` runs its ExecStart with its environment, and returns when the process has notified that it serves;
``reload`` runs ExecReload, and returns when the process has notified that it serves again.  What a unit prints is its
journal.  Of the sandbox, the folders that the store may write to are held to.  Knows nothing of users.
"""

from __future__ import annotations

import os
import re
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Final

from tests.support.systemd_units import environment_in, settings, words_of

PATIENCE_S: Final = 60.0
_PATHS: Final = re.compile(r"(?<![\w.])/(etc|opt|var/lib|var/log|run/columnar|usr/lib|mnt)(?=/)")
_FOLDERS: Final = {"StateDirectory": "var/lib", "LogsDirectory": "var/log", "RuntimeDirectory": "run"}


def on_machine(text: str, root: Path) -> str:
    """Return the text with paths of the machine whose root this is."""
    return _PATHS.sub(rf"{root}/\1", text)


class Manager:
    def __init__(self, root: Path, name: str) -> None:
        self._root = root
        self._name = name.removesuffix(".service")
        self._files = root / "etc/systemd/system"
        self._loaded = root / "loaded"
        self._pid_file = root / f"{self._name}.pid"
        self._notices = root / "notices"
        self.journal = root / f"{self._name}.journal"

    def load(self) -> int:
        """Read all units, as ``daemon-reload``; return 1 if systemd finds a fault in one."""
        shutil.rmtree(self._loaded, ignore_errors=True)
        for path in sorted(self._files.rglob("*")):
            if path.suffix in (".service", ".conf"):
                copy = self._loaded / path.relative_to(self._files)
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_text(on_machine(path.read_text(), self._root))
        if shutil.which("systemd-analyze") is None:
            return 0
        units = sorted(self._loaded.glob("*.service"))
        verified = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True, check=False)
        print(verified.stdout + verified.stderr, end="")
        return int(bool(verified.returncode or verified.stdout or verified.stderr))

    def _unit(self) -> dict[str, list[str]]:
        found = settings(self._loaded / f"{self._name}.service")
        for path in sorted((self._loaded / f"{self._name}.service.d").glob("*.conf")):
            for name, values in settings(path).items():
                found[name] = found.get(name, []) + values if values[0] else values[1:]
        return found

    def start(self) -> int:
        unit = self._unit()
        variables = defaultdict(str, environment_in("\n".join(unit["Environment"])))  # one that is not set is empty
        for name in unit.get("EnvironmentFile", []):
            path = Path(name.lstrip("-"))
            if path.exists() or not name.startswith("-"):
                variables |= environment_in(path.read_text())
        writable = [*unit.get("ReadWritePaths", [])]
        for kind, place in _FOLDERS.items():
            for name in unit.get(kind, []):
                folder = self._root / place / name
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                writable.append(str(folder))
        words = words_of(unit["ExecStart"][-1], variables)
        data = words[words.index("--data") + 1]
        with self.journal.open("a") as journal, self._notified() as notices:
            if not any(data == one or data.startswith(f"{one}/") for one in writable):
                journal.write(f"columnar: cannot use the data folder {data}: Read-only file system\n")
                return self._failed()
            path = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
            process = subprocess.Popen(
                words,
                env={**path, **variables, "NOTIFY_SOCKET": str(self._notices)},
                stdin=subprocess.DEVNULL, stdout=journal, stderr=journal, start_new_session=True, cwd="/",
            )  # fmt: skip
            self._pid_file.write_text(str(process.pid))
            return 0 if _await_ready(notices, process.pid) else self._failed()

    def _failed(self) -> int:
        print(f"Job for {self._name}.service failed because the control process exited with error code.")
        return 1

    def _notified(self) -> socket.socket:
        self._notices.unlink(missing_ok=True)
        notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        notices.bind(str(self._notices))
        return notices

    @property
    def pid(self) -> int | None:
        """The main process, if it is there."""
        pid = int(self._pid_file.read_text()) if self._pid_file.exists() else 0
        stat = Path(f"/proc/{pid}/stat")
        try:
            return None if stat.read_text().rpartition(")")[2].split()[0] == "Z" else pid
        except OSError:
            return None

    def stop(self) -> int:
        if (pid := self.pid) is not None:
            ended = os.pidfd_open(pid)
            os.kill(pid, signal.SIGTERM)
            readable, _, _ = select.select([ended], [], [], PATIENCE_S)
            return 0 if readable else 1
        return 0

    def reload(self) -> int:
        pid = self.pid
        if pid is None:
            return 1
        with self._notified() as notices:
            for line in self._unit()["ExecReload"]:
                subprocess.run(words_of(line, {"MAINPID": str(pid)}), check=True)
            return 0 if _await_ready(notices, pid) else 1

    def run(self, word: str, flags: list[str]) -> int:
        match word:
            case "start" | "stop" | "reload":
                return int(getattr(self, word)())
            case "restart":
                return self.stop() or self.start()
            case "daemon-reload":
                return self.load()
            case "enable":
                wanted = [f"{one}.wants" for one in self._unit()["WantedBy"]]
                print(f"Created symlink /etc/systemd/system/{wanted[0]}/{self._name}.service")
                return self.start() if "--now" in flags else 0
            case "is-active":
                print("inactive" if self.pid is None else "active")
                return 3 if self.pid is None else 0
        raise SystemExit(f"systemctl {word} is not known here")


def _await_ready(notices: socket.socket, pid: int) -> bool:
    """Wait for the notice READY=1; return False if the process ends before."""
    ended = os.pidfd_open(pid)
    while True:
        readable, _, _ = select.select([notices, ended], [], [], PATIENCE_S)
        if notices in readable:
            if b"READY=1" in notices.recv(4_096).splitlines():
                return True
        else:
            return False


def _make_folders(root: Path) -> int:
    for path in sorted((root / "usr/lib/tmpfiles.d").glob("*.conf")):
        for line in path.read_text().splitlines():
            if line.startswith("d "):
                Path(on_machine(f"{line.split()[1]}/", root)).mkdir(mode=int(line.split()[2], 8), exist_ok=True)
    return 0


def main(program: str, *words: str) -> int:
    root = Path(os.environ["MACHINE"])
    flags = [word for word in words if word.startswith("-")]
    match program, [word for word in words if not word.startswith("-")]:
        case "systemctl", [word, *names]:
            return Manager(root, names[0] if names else "").run(word, flags)
        case "journalctl", [name, *count]:
            lines = Manager(root, name).journal.read_text().splitlines()
            for line in lines[-int(count[0]) :] if count else lines:
                print(f"Nov 28 05:30:00 host columnar[4711]: {line}")
            return 0
        case "systemd-sysusers", []:
            return int(not list((root / "usr/lib/sysusers.d").glob("*.conf")))
        case "systemd-tmpfiles", []:
            return _make_folders(root)
    raise SystemExit(f"{program} {shlex.join(words)} is not known here")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
