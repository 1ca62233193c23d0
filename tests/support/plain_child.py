"""A child of ``coordination.processes`` that holds its descriptors and does what its settings say.

beat        one beat, then wait        echo     answer each byte of the control socket with the same byte
take        say over the control socket what a handed connection said first
leave N     exit with that status
"""

from __future__ import annotations

import os
import socket
import sys
import time


def main() -> None:
    control_fd, doorbell_fd, beats, _lock = map(int, sys.argv[1:])
    control = socket.socket(fileno=control_fd)
    what, *rest = sys.stdin.readline().split()
    if what == "leave":
        sys.exit(int(rest[0]))
    if what == "beat":
        for number in (1, 2, 3):
            os.write(beats, number.to_bytes(8, "big"))
        time.sleep(600)
    if what == "take":
        door, descriptors, _, _ = socket.recv_fds(socket.socket(fileno=doorbell_fd), 1, 1)
        with socket.socket(fileno=descriptors[0]) as connection:
            control.sendall(door + connection.recv(10))
    while data := control.recv(1):
        control.sendall(data)


if __name__ == "__main__":
    main()
