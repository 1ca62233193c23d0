"""The mounts of ``columnar probe-root`` in other processes and on other machines, through a socket.

    request := {"call": NAME, "with": [ARGUMENT, ...]} LF
    answer  := {"value": ANY} LF  |  {"errno": NUMBER, "why": TEXT} LF        JSON in ASCII, at most LINE_BYTES
    last    := {"report": {...}} LF                                           instead of a request

    first   := {"nonce": TEXT} LF  {"proof": TEXT} LF                         between two machines, in both directions

The next message is sent only after the answer to the last one.  The machine that joins proves by the HMAC of the nonce
that it knows the code.

A mount of this machine is served by a process of its own (``python -m columnar.shell.probe_link DIR TOKEN``, with the
socket as standard input).  A call of a mount that hangs cannot be interrupted, not even by SIGKILL.  So the command
reports it and ends, and that process ends when the mount answers.

A serving process ends with its socket, and then removes the files of the probe.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any, Final

from columnar.storage.probe_mount import MountOperations, MountStalls, MountUnavailable

LINE_BYTES: Final = 64 * 1024
IDLE_S: Final = 600.0  # a machine that joined leaves if it hears nothing for so long
_ENDING_S: Final = 10.0  # of a serving process, which removes the files of the probe
_PROOF_S: Final = 10.0


class LinkLost(MountUnavailable):
    """The other end of the link has ended."""

    def __init__(self, place: str) -> None:
        super().__init__(f"the probe at {place} has ended")


class MountLink:
    """A mount at the other end of a socket, for a single thread."""

    def __init__(self, place: str, connection: socket.socket, limit_s: float) -> None:
        self.place = place
        self._socket = connection
        self._limit_s = limit_s
        self._broken: MountUnavailable | None = None  # after it no answer would belong to its call

    def run_operation(self, name: str, *arguments: Any) -> Any:
        """Run the operation at the other end.  Raises OSError as it does, and MountUnavailable."""
        if self._broken is not None:
            raise self._broken
        try:
            send_line(self._socket, {"call": name, "with": arguments})
            answer = read_line(self._socket, self._limit_s)
        except TimeoutError:
            self._broken = MountStalls(self.place, self._limit_s)
            raise self._broken from None
        except (OSError, ValueError) as error:
            self._broken = LinkLost(self.place)
            raise self._broken from error
        if "errno" in answer:
            raise OSError(answer["errno"], answer["why"])
        return answer.get("value")

    def send_report(self, report: dict[str, Any]) -> None:
        """Send the report to a machine that joined.  A machine that has left is not told, and that is no error."""
        if self._broken is None:
            with suppress(OSError):
                send_line(self._socket, {"report": report})


def send_line(connection: socket.socket, message: object) -> None:
    connection.sendall(json.dumps(message).encode() + b"\n")


def read_line(connection: socket.socket, limit_s: float) -> dict[str, Any]:
    """Read one message.  Raises TimeoutError after the limit, ConnectionError at the end, ValueError for no message."""
    until_s = time.monotonic() + limit_s
    line = b""
    while not line.endswith(b"\n"):
        connection.settimeout(max(0.001, until_s - time.monotonic()))
        piece = connection.recv(LINE_BYTES)
        if not piece:
            raise ConnectionError("the other end has closed")
        line += piece
        if len(line) > LINE_BYTES:
            raise ValueError("a line of the probe is too long")
        if until_s <= time.monotonic():
            raise TimeoutError
    message = json.loads(line)
    if not isinstance(message, dict):
        raise ValueError("no message of a probe")
    return message


def serve(connection: socket.socket, mount: MountOperations, idle_s: float = IDLE_S) -> dict[str, Any] | None:
    """Answer calls until the report, which is returned, or the link's end: None.  Raises ValueError, TimeoutError."""
    while True:
        try:
            request = read_line(connection, idle_s)
        except ConnectionError:
            return None
        if "report" in request:
            report: dict[str, Any] = request["report"]
            return report
        try:
            answer = {"value": mount.run_operation(str(request.get("call")), *list(request.get("with", ())))}
        except OSError as error:
            answer = {"errno": error.errno or 0, "why": error.strerror or str(error)}
        try:
            send_line(connection, answer)
        except ConnectionError:
            return None


# --- on this machine ---------------------------------------------------------------------------------------


@contextmanager
def local_mount(folder: str, token: str, limit_s: float) -> Iterator[MountLink]:
    """Start a process that serves the mount, and end it.  A process whose mount hangs is not waited for."""
    ours, its = socket.socketpair()
    finds_modules_here = sys.path[:1] == [os.getcwd()]  # true under python -m, not in a script
    command = [sys.executable, *([] if finds_modules_here else ["-P"]), "-m", __name__, folder, token]
    with ours:
        with its:
            # A session of its own: Ctrl-C ends the command, then the link, then the process.
            process = subprocess.Popen(command, stdin=its.fileno(), start_new_session=True)
        try:
            yield MountLink(folder, ours, limit_s)
        finally:
            ours.close()
            _end_process(process, min(limit_s, _ENDING_S))


def _end_process(process: subprocess.Popen[bytes], limit_s: float) -> None:
    try:
        process.wait(limit_s)
    except subprocess.TimeoutExpired:
        process.kill()
        with suppress(subprocess.TimeoutExpired):
            process.wait(1.0)


def main() -> None:
    folder, token = sys.argv[1:]
    with socket.socket(fileno=0) as connection, closing(MountOperations(folder, token)) as mount:
        serve(connection, mount)


# --- between two machines ----------------------------------------------------------------------------------


def new_code() -> str:
    return secrets.token_hex(8)


def token_of(code: str) -> str:
    """Return the token of the probe's folder, which everybody who sees the folder may read; the code stays secret."""
    return hashlib.sha256(f"folder {code}".encode()).hexdigest()[:16]


def _proof(code: str, nonce: str) -> str:
    return hmac.new(code.encode(), nonce.encode(), "sha256").hexdigest()


def accept_joined(
    listener: socket.socket, code: str, wait_s: float, on_refused: Callable[[str], None]
) -> tuple[socket.socket, str]:
    """Return the connection of the machine that knows the code, and its address.

    Others are reported and refused.  Raises TimeoutError after ``wait_s``, and OSError.
    """
    until_s = time.monotonic() + wait_s
    while (left_s := until_s - time.monotonic()) > 0:
        listener.settimeout(left_s)
        connection, (address, *_) = listener.accept()
        try:
            nonce = secrets.token_hex(16)
            send_line(connection, {"nonce": nonce})
            if hmac.compare_digest(str(read_line(connection, _PROOF_S).get("proof")), _proof(code, nonce)):
                return connection, str(address)
            on_refused(f"{address} does not know the code")
        except (OSError, ValueError) as error:
            on_refused(f"{address}: {error}")
        connection.close()
    raise TimeoutError


def joined(address: tuple[str, int], code: str) -> socket.socket:
    """Connect to the machine that listens, and prove the code.  Raises OSError, and ValueError if it is no probe."""
    connection = socket.create_connection(address, _PROOF_S)
    try:
        nonce = read_line(connection, _PROOF_S)["nonce"]
        send_line(connection, {"proof": _proof(code, str(nonce))})
    except KeyError as error:
        connection.close()
        raise ValueError("no probe listens there") from error
    except BaseException:
        connection.close()
        raise
    return connection


if __name__ == "__main__":
    main()
