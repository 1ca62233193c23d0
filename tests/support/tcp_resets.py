"""Resets of connections between living processes of this machine, as by a network that has forgotten them.

They need root, ``ss`` of Debian's iproute2 and a kernel that ends sockets on request (``CONFIG_INET_DIAG_DESTROY``).
"""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterable
from functools import cache


def reset_connections(ports: Iterable[int]) -> int:
    """End all connections to these ports of 127.0.0.1 at both ends; return how many there were."""
    found = 0
    for port in ports:
        command = ["ss", "-HtK", "state", "established", "dst", "127.0.0.1", "dport", "=", str(port)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found += len(done.stdout.splitlines())
    return found


@cache
def can_reset() -> bool:
    """Try a reset once; return whether the other end noticed."""
    if shutil.which("ss") is None:
        return False
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        with accepted:
            accepted.settimeout(1.0)
            reset_connections([listener.getsockname()[1]])
            try:
                return accepted.recv(1) == b""
            except TimeoutError:
                return False
            except ConnectionError:
                return True
