"""A child of ``coordination.processes`` that holds its descriptors and does what its settings say.

beat        one beat, then wait        echo     answer each byte of the control socket with the same byte
take        send the first bytes of a handed connection over the control socket
leave N     exit with that status
"""

from __future__ import annotations

import os
import socket
import sys
import time

from columnar.coordination.connection_channel import receive_connection
from columnar.coordination.processes import Beat, packed


def main() -> None:
    control_fd, doorbell_fd, beats, _lines, _page, _lock = map(int, sys.argv[1:])
    control = socket.socket(fileno=control_fd)
    what, *rest = sys.stdin.readline().split()
    if what == "leave":
        sys.exit(int(rest[0]))
    if what == "beat":
        for number in (1, 2, 3):
            os.write(beats, packed(Beat(number, open=number + 1)))
        time.sleep(600)
    if what == "take":
        handed = receive_connection(socket.socket(fileno=doorbell_fd))
        assert handed is not None
        with handed.connection as connection:
            control.sendall(handed.service + handed.read + connection.recv(10))
    while data := control.recv(1):
        control.sendall(data)


if __name__ == "__main__":
    main()
