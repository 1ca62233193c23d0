"""GlusterFS on loopback: a volume of three copies, mounted several times.

GlusterFS refuses ``localhost``, so the volume is under a name that ``/etc/hosts`` gives to another loopback address,
with a line that is removed afterwards.  Its daemon has one port, so a test waits for the end of another one's
(``LOCK``).
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from tests.support.many_machines.daemons import Daemon, SharedFolder, end_all, is_mounted, run, unmount, wait_until

HOST: Final = "columnar-gluster"
ADDRESS: Final = "127.0.0.21"
VOLUME: Final = "columnar"
PORT: Final = 24007
HOSTS: Final = Path("/etc/hosts")
LOCK: Final = Path(tempfile.gettempdir()) / "columnar-gluster.lock"
CACHES: Final = (
    "quick-read", "io-cache", "read-ahead", "readdir-ahead", "stat-prefetch", "open-behind", "write-behind", "nl-cache",
)  # fmt: skip
STRICT: Final = ("--attribute-timeout=0", "--entry-timeout=0", "--negative-timeout=0", "--auto-invalidation=on")
_VOLFILE: Final = """
volume management
    type mgmt/glusterd
    option working-directory {folder}/state
    option transport-type socket
    option transport.socket.bind-address {address}
    option transport.socket.listen-port {port}
    option run-directory {folder}/run
    option glusterd-sockfile {folder}/glusterd.socket
    option max-port 60999
end-volume
"""


@contextmanager
def gluster(folder: Path, *, is_strict: bool = True, mounts: int = 2) -> Iterator[SharedFolder]:
    """Yield mounts of a new volume: with ``is_strict`` as a cluster needs them, else with GlusterFS' defaults."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("state", "run", "log", "b0", "b1", "b2"):
        (folder / name).mkdir()
    daemons: dict[str, Daemon] = {}
    with ExitStack() as stack:
        lock = stack.enter_context(LOCK.open("w"))
        fcntl.flock(lock, fcntl.LOCK_EX)  # until the file is closed, last of all
        stack.enter_context(_named_host())
        stack.callback(_end_bricks, folder)
        stack.callback(lambda: end_all(list(daemons.values())))
        _start_volume(folder, daemons, is_strict=is_strict)
        options = STRICT if is_strict else ()
        places = tuple(_mount(folder, number, daemons, stack, options) for number in range(mounts))
        yield SharedFolder("gluster", places, daemons, lambda _: None)


@contextmanager
def _named_host() -> Iterator[None]:
    line = f"{ADDRESS} {HOST}\n"
    if line not in HOSTS.read_text():
        with HOSTS.open("a") as file:
            file.write(line)
    try:
        yield
    finally:
        HOSTS.write_text(HOSTS.read_text().replace(line, ""))  # in place: it may be a bind mount


def _gluster(folder: Path, *words: str) -> str:
    return run("gluster", f"--glusterd-sock={folder}/glusterd.socket", "--mode=script", *words)


def _start_volume(folder: Path, daemons: dict[str, Daemon], *, is_strict: bool) -> None:
    volfile = folder / "glusterd.vol"
    volfile.write_text(_VOLFILE.format(folder=folder, address=ADDRESS, port=PORT))
    command = [
        "glusterd",
        "-N",
        "-f",
        volfile,
        "-p",
        folder / "glusterd.pid",
        "-l",
        folder / "log/glusterd.log",
    ]
    daemons["glusterd"] = Daemon(command, folder / "glusterd.out")
    daemons["glusterd"].start()
    wait_until(lambda: _answers(folder), "glusterd answers", list(daemons.values()))
    bricks = [f"{HOST}:{folder}/b{number}/brick" for number in range(3)]
    _gluster(folder, "volume", "create", VOLUME, "replica", "3", *bricks, "force")
    if is_strict:
        for cache in CACHES:
            _gluster(folder, "volume", "set", VOLUME, f"performance.{cache}", "off")
    _gluster(folder, "volume", "start", VOLUME)


def _answers(folder: Path) -> bool:
    try:
        _gluster(folder, "pool", "list")
    except AssertionError:
        return False
    return True


def _mount(folder: Path, number: int, daemons: dict[str, Daemon], stack: ExitStack, options: tuple[str, ...]) -> Path:
    place = folder / f"mnt{number}"
    place.mkdir()
    stack.callback(unmount, place)
    log = folder / f"log/mount{number}.log"
    command = [
        "glusterfs",
        "--no-daemon",
        f"--volfile-server={HOST}",
        f"--volfile-id={VOLUME}",
        "-l",
        log,
        *options,
        place,
    ]
    daemon = Daemon(command, folder / f"mount{number}.out")
    daemons[f"mount{number}"] = daemon
    daemon.start()
    wait_until(lambda: is_mounted(place) and os.path.ismount(place), f"{place} is mounted", [daemon])
    return place


def _end_bricks(folder: Path) -> None:
    """Kill the servers of the volume's copies, which glusterd started apart from itself."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if words[0].endswith((b"glusterfsd", b"glusterfs")) and any(os.fsencode(folder) in word for word in words):
                os.kill(int(entry.name), 9)
