"""Ports that a test chooses, because a store keeps its port over restarts, or because nothing may listen there.

A port that the system chose (port 0) may be taken again as soon as it is free: by a further port 0, or as the near end
of any connection.  So these ports lie below the range from which the system chooses.  Each process begins at a
different port.
"""

from __future__ import annotations

import errno
import itertools
import os
import socket
from pathlib import Path

FIRST = 10_000
_CHOSEN_BY_THE_SYSTEM = Path("/proc/sys/net/ipv4/ip_local_port_range")
_STEP = 97  # ports between the beginnings of two processes, by their ids
_count = itertools.count()


def free_port() -> int:
    """Return a free port that the system gives to no process by itself."""
    end = int(_CHOSEN_BY_THE_SYSTEM.read_text().split()[0]) if _CHOSEN_BY_THE_SYSTEM.exists() else 32_768
    for _ in range(end - FIRST):
        port = FIRST + (os.getpid() * _STEP + next(_count)) % (end - FIRST)
        try:
            with socket.create_server(("127.0.0.1", port)):
                return port
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
    raise AssertionError(f"all ports from {FIRST} to {end} are taken")
