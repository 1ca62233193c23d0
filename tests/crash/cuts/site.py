"""A server and the commands that are run beside it, as children of one strace.

    python -m tests.crash.cuts.site PORT SERVER...      SERVER: the arguments of ``python`` for the server

    Connects to 127.0.0.1:PORT, where the recorder listens, and runs the commands from there until the connection ends:

    order  := length:u32 JSON of the words behind ``columnar``      big-endian
    answer := length:u32 JSON of what the command printed

So the answer of a command is a reply over TCP, like that of a call, and its moment is known as exactly.  Commands run
in this process, because a start of the interpreter for each would cost more than the command.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys

from click.testing import CliRunner

from columnar.cli import main


def _exactly(held: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = held.recv(size - len(data))
        if not more:
            return b""
        data += more
    return data


def obey(held: socket.socket) -> None:
    while head := _exactly(held, 4):
        words, store = json.loads(_exactly(held, int.from_bytes(head, "big")))
        done = CliRunner().invoke(main, words, env={**os.environ, "COLUMNAR_STORE": store})
        failure = done.stderr if done.exit_code else ""
        answer = json.dumps({"failure": failure, "printed": done.stdout}).encode()
        held.sendall(len(answer).to_bytes(4, "big") + answer)


if __name__ == "__main__":
    server = subprocess.Popen([sys.executable, *sys.argv[2:]])
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as recorder:
        obey(recorder)
    server.wait()
