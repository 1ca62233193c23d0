"""Ports that a test chooses, because a store keeps its port over restarts, or because nothing may listen there.

A port that the system chose (port 0) may be taken again as soon as it is free: by a further port 0, or as the near end
of any connection.  So these ports lie below the range from which the system chooses.  All processes of a user take
them from one file in turn: a port that was just found free is given to nobody else, until all others were given.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import tempfile
from pathlib import Path

FIRST = 10_000
_CHOSEN_BY_THE_SYSTEM = Path("/proc/sys/net/ipv4/ip_local_port_range")
_NEXT = Path(tempfile.gettempdir(), f"columnar-tests-{os.getuid()}.next-port")


def free_port(turns: Path = _NEXT) -> int:
    """Return a free port that the system gives to no process by itself; ``turns`` has the number of the next one."""
    end = int(_CHOSEN_BY_THE_SYSTEM.read_text().split()[0]) if _CHOSEN_BY_THE_SYSTEM.exists() else 32_768
    for _ in range(end - FIRST):
        port = FIRST + _next_number(turns) % (end - FIRST)
        try:
            with socket.create_server(("127.0.0.1", port)):
                return port
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
    raise AssertionError(f"all ports from {FIRST} to {end} are taken")


def _next_number(turns: Path) -> int:
    with turns.open("a+b") as file:  # a file that begins or was cut counts from 0
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        number = int(file.read() or b"0")
        file.truncate(0)
        file.write(b"%d" % (number + 1))
    return number
