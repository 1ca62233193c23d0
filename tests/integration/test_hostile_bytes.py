"""Bytes that no good client sends, against a whole store in a process of its own.

The toy server of ``test_wire_server`` shows how the wire answers each; here it is shown that with tables,
scanners and commits behind it others are answered meanwhile, nothing is stored, and memory stays in bounds.
"""

from __future__ import annotations

import contextlib
import random
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from columnar.limits import DRAINED_FRAME_BYTES, MESSAGE_BYTES, MIB
from tests.support.besieged import besieged, furnish, log_lines, next_log_lines
from tests.support.standalone_store import StoreProcess

pytestmark = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peaks of memory are told by /proc")

SEED = 20
GROWTH_BYTES = 3 * MESSAGE_BYTES  # one message of the largest size, in its buffer and decoded
LITTLE_BYTES = 24 * MIB  # where nothing large may be kept
STOP, STRUCT, STRING, LIST, MAP, I64, I32 = 0, 12, 11, 15, 13, 10, 8


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreProcess]:
    with StoreProcess(tmp_path_factory.mktemp("besieged") / "data", is_forked=False) as running:
        running.await_log()
        furnish(running)
        yield running


def connected(store: StoreProcess) -> socket.socket:
    return socket.create_connection(("127.0.0.1", store.port), timeout=30)


def framed(body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + body


def call(name: bytes, args: bytes, seqid: int = 1) -> bytes:
    return struct.pack(">HBBI", 0x8001, 0, 1, len(name)) + name + struct.pack(">i", seqid) + args


def text(field: int, value: bytes) -> bytes:
    return struct.pack(">BHI", STRING, field, len(value)) + value


MUTATION = struct.pack(">BHB", 2, 1, 0) + text(2, b"a:evil") + text(3, b"stored") + b"\0"
MUTATE_ROW = call(
    b"mutateRow",
    text(1, b"t") + text(2, b"evil") + struct.pack(">BHBI", LIST, 3, STRUCT, 1) + MUTATION
    + struct.pack(">BHBBI", MAP, 4, STRING, STRING, 0) + b"\0",
)  # fmt: skip
ASK = call(b"get", text(1, b"t") + text(2, b"r0") + text(3, b"a:x") + b"\0")


def all_of(sock: socket.socket) -> bytes:
    """Everything until the server closes."""
    data = bytearray()
    with contextlib.suppress(ConnectionResetError):
        while piece := sock.recv(1 << 16):
            data += piece
    return bytes(data)


def exchange(store: StoreProcess, data: bytes) -> bytes:
    """What comes back for ``data`` when the client then ends its side."""
    with connected(store) as sock:
        with contextlib.suppress(OSError):  # reset, broken, or not connected any more: it was hung up on
            sock.sendall(data)
            witness_of_two_turns(store)  # a call that has not begun when its client ends its side never begins
            sock.shutdown(socket.SHUT_WR)
        return all_of(sock)


def witness_of_two_turns(store: StoreProcess) -> None:
    """Return when the server has looked at all that was sent before."""
    with connected(store) as witness:
        for _ in range(2):
            witness.sendall(framed(ASK))
            assert witness.recv(1 << 16)


def is_refusal(answer: bytes) -> bool:
    """A message of kind "exception", or a reply, and no success of mutateRow."""
    return b"Exception" in answer or b"\x80\x01\x00\x03" in answer


def test_what_speaks_something_else(store: StoreProcess) -> None:
    """Closed, each with one line in the log; HTTP is answered in its own tongue."""
    greetings = {
        "http": b"GET /rows HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "tls": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64),
        "ssh": b"SSH-2.0-OpenSSH_9.2\r\n",
        "redis": b"*1\r\n$4\r\nPING\r\n",
        "postgres": struct.pack(">II", 8, 80877103) + bytes(32),
        "zeroes": bytes(64),
        "header transport": struct.pack(">IHHIH", 100, 0x0FFF, 0, 1, 4) + bytes(100),
    }
    with besieged(store, LITTLE_BYTES):
        for name, greeting in greetings.items():
            before = len(log_lines(store))
            answer = exchange(store, greeting)
            said = next_log_lines(store, before)
            assert (name == "http") == answer.startswith(b"HTTP/1.1 405 "), name
            assert len(said) == 1, f"{name}: {said}"
            assert "closed" in said[0], f"{name}: {said}"


def test_a_transport_that_changes_within_a_connection(store: StoreProcess) -> None:
    with besieged(store, LITTLE_BYTES):
        for first, second in ((framed(ASK), MUTATE_ROW), (ASK, framed(MUTATE_ROW))):
            before = len(log_lines(store))
            answer = exchange(store, first + second)
            assert b"value" in answer
            assert b"mutateRow" not in answer
            assert len(next_log_lines(store, before)) == 1


def test_random_bytes(store: StoreProcess) -> None:
    rng = random.Random(SEED)
    with besieged(store, GROWTH_BYTES):
        for size in (1, 3, 4, 5, 8, 20, 100, 1_000, 100_000) * 8:
            exchange(store, rng.randbytes(size))
        for _ in range(100):  # they begin as a message does
            exchange(store, call(rng.choice((b"mutateRow", b"get", b"scannerOpen")), rng.randbytes(rng.randrange(200))))


def test_a_good_message_with_some_bytes_changed(store: StoreProcess) -> None:
    """What it asks for is then something else, and may be done: only that it lives is looked at, on a table aside."""
    rng = random.Random(SEED)
    aside = MUTATE_ROW.replace(text(1, b"t"), text(1, b"u"))
    with besieged(store, GROWTH_BYTES):
        for frame in (bytes, framed):
            for _ in range(150):
                changed = bytearray(frame(aside))
                for _ in range(rng.randint(1, 3)):
                    changed[rng.randrange(len(changed))] = rng.randrange(256)
                exchange(store, bytes(changed))


@pytest.mark.parametrize("frame", [bytes, framed], ids=["buffered", "framed"])
def test_every_beginning_of_a_message(store: StoreProcess, frame: type) -> None:
    whole = frame(MUTATE_ROW)
    with besieged(store, LITTLE_BYTES):
        for length in range(1, len(whole)):
            assert exchange(store, whole[:length]) == b"", length


LIES = {
    "a string of 2 GiB": text(1, b"t") + struct.pack(">BHI", STRING, 2, 2**31 - 1) + b"evil",
    "a string of -1": text(1, b"t") + struct.pack(">BHi", STRING, 2, -1) + b"evil\0",
    "the least length": struct.pack(">BHi", STRING, 1, -(2**31)) + b"\0",
    "a list of 2 G": text(1, b"t") + text(2, b"evil") + struct.pack(">BHBI", LIST, 3, STRUCT, 2**31 - 1) + MUTATION,
    "a list of -1": text(1, b"t") + text(2, b"evil") + struct.pack(">BHBi", LIST, 3, STRUCT, -1) + b"\0",
    "a list of empty ones": text(1, b"t") + struct.pack(">BHBI", LIST, 3, STRUCT, 60_000_000) + bytes(60_000),
    "a map of 2 G": text(1, b"t") + struct.pack(">BHBBI", MAP, 4, STRING, STRING, 2**31 - 1) + text(0, b"")[3:],
    "a map of -5": text(1, b"t") + struct.pack(">BHBBi", MAP, 4, STRING, STRING, -5) + b"\0",
    "no such type": struct.pack(">BH", 99, 1) + b"evil\0",
    "structs without end": struct.pack(">BH", STRUCT, 77) * 20_000,
    "lists in lists": struct.pack(">BHBI", LIST, 77, LIST, 1) + struct.pack(">BI", LIST, 1) * 20_000,
}


@pytest.mark.parametrize("frame", [bytes, framed], ids=["buffered", "framed"])
def test_lengths_that_lie(store: StoreProcess, frame: type) -> None:
    """Answered with an exception, or closed; what claims more than is there waits, and holds nothing."""
    with besieged(store, LITTLE_BYTES):
        for name, arguments in LIES.items():
            answer = exchange(store, frame(call(b"mutateRow", arguments)))
            assert not answer or is_refusal(answer), f"{name}: {answer[:80]!r}"


def test_half_sent_messages_wait_and_take_little(store: StoreProcess) -> None:
    begun = framed(call(b"mutateRow", text(1, b"t") + text(2, b"e" * MIB)))[: MIB // 4]
    with besieged(store, GROWTH_BYTES), contextlib.ExitStack() as stack:
        for _ in range(100):
            stack.enter_context(connected(store)).sendall(begun)
        assert b"value" in exchange(store, ASK)


def test_a_frame_over_the_largest_message_is_drained_and_answered(store: StoreProcess) -> None:
    size = MESSAGE_BYTES + 16 * MIB
    head = call(b"mutateRow", text(1, b"t") + struct.pack(">BHI", STRING, 2, size))
    with besieged(store, LITTLE_BYTES), connected(store) as sock:
        sock.sendall(struct.pack(">I", len(head) + size))
        sock.sendall(head)
        piece = b"e" * MIB
        for _ in range(size // MIB):
            sock.sendall(piece)
        sock.sendall(framed(ASK))
        answer = b""
        while b"value" not in answer:
            answer += sock.recv(1 << 16)
        assert b"RequestTooBigException: " in answer
        assert answer.endswith(b"\0") and b"value" in answer, "the connection lives"  # noqa: PT018


def test_an_unframed_message_without_end_is_refused(store: StoreProcess) -> None:
    head = call(b"mutateRow", text(1, b"t") + struct.pack(">BHI", STRING, 2, 2**31 - 1))
    with besieged(store, GROWTH_BYTES), connected(store) as sock:
        sock.sendall(head)
        piece = b"e" * MIB
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            for _ in range(2 * MESSAGE_BYTES // MIB):
                sock.sendall(piece)
            sock.shutdown(socket.SHUT_WR)
        answer = all_of(sock)
        assert not answer or is_refusal(answer)


def test_a_frame_over_a_gibibyte_is_closed_at_once(store: StoreProcess) -> None:
    with besieged(store, LITTLE_BYTES), connected(store) as sock:
        before = len(log_lines(store))
        sock.sendall(struct.pack(">I", DRAINED_FRAME_BYTES + 1) + MUTATE_ROW)
        assert all_of(sock) == b""
        (line,) = next_log_lines(store, before)
        assert "closed: " in line


def test_clients_that_never_read(store: StoreProcess) -> None:
    """Twelve that ask for 4 GB of rows between them and read no byte of it."""
    ask = call(b"getRow", text(1, b"large") + text(2, b"r001") + b"\0")
    with besieged(store, GROWTH_BYTES), contextlib.ExitStack() as stack:
        for _ in range(12):
            sock = stack.enter_context(connected(store))
            sock.sendall(ask * 350)
        assert b"value" in exchange(store, ASK)


def test_clients_that_never_read_what_they_scan(store: StoreProcess) -> None:
    with besieged(store, GROWTH_BYTES), contextlib.ExitStack() as stack:
        for _ in range(6):
            sock = stack.enter_context(connected(store))
            sock.sendall(call(b"scannerOpen", text(1, b"large") + text(2, b"") + b"\0"))
            answer = sock.recv(64)
            scanner = answer[-5:-1]
            more = call(
                b"scannerGetList", struct.pack(">BH", I32, 1) + scanner + struct.pack(">BHi", I32, 2, 8) + b"\0"
            )
            sock.sendall(more * 5)
        assert b"value" in exchange(store, ASK)
