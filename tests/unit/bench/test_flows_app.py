"""The application of the ETH experiment against a store that is slow, refuses or goes away."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import Pipe

from thriftpy2.transport.memory import TCyMemoryBuffer

from benchmarks.flows_app import ALL_ANSWERED, BEGUN, END, serve
from benchmarks.flows_plan import QUICK, Load, Phase, Sent
from columnar.bench.address import Endpoint
from columnar.bench.protocols import BINARY, REPLY
from columnar.wire import idl

PUT_DONE = bytes.fromhex("00000016 80010002 00000009") + b"mutateRow" + bytes(5)
WAIT_S = 20.0


def refusal() -> bytes:
    buffer = TCyMemoryBuffer()
    protocol = BINARY.protocol(buffer)
    protocol.write_message_begin("mutateRow", REPLY, 0)
    protocol.write_struct(idl.SERVICE.mutateRow_result(io=idl.hbase.IOError(message="too busy")))
    protocol.write_message_end()
    message = bytes(buffer.getvalue())
    return len(message).to_bytes(4, "big") + message


@contextmanager
def store(answer: Callable[[int], bytes | None], answered: threading.Event) -> Iterator[Endpoint]:
    """Answers puts: ``answer`` gets their number, from 0; None: the connection is closed instead."""
    listener = socket.create_server(("127.0.0.1", 0))
    threads: list[threading.Thread] = []
    count, mutex = iter(range(1_000_000)), threading.Lock()

    def connection(sock: socket.socket) -> None:
        with sock, suppress(OSError):
            while data := sock.recv(65_536):
                if b"mutateRow" not in data:
                    return  # a probe
                with mutex:
                    number = next(count)
                said = answer(number)
                if said is None:
                    return
                sock.sendall(said)
                answered.set()

    def accept() -> None:
        with suppress(OSError):
            while True:
                sock, _ = listener.accept()
                threads.append(threading.Thread(target=connection, args=(sock,), daemon=True))
                threads[-1].start()

    accepting = threading.Thread(target=accept, daemon=True)
    accepting.start()
    try:
        yield Endpoint("127.0.0.1", listener.getsockname()[1])
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        accepting.join(WAIT_S)
        for thread in threads:
            thread.join(WAIT_S)


def sent(
    answer: Callable[[int], bytes | None],
    phase: Phase,
    patience_s: float,
    then: Callable[[threading.Event], None] = lambda _answered: None,
) -> Sent:
    """The outcome of a load of one connection.

    ``then`` is called when the application waits no longer, with an event that the first answer sets.
    """
    ours, theirs = Pipe()
    answered = threading.Event()
    application = threading.Thread(target=serve, args=(theirs,), daemon=True)
    with store(answer, answered) as endpoint:
        application.start()
        ours.send(Load("integrated", endpoint, "", QUICK, 1, 0, 1, (phase,), "/nowhere", patience_s))
        assert ours.recv() == BEGUN
        assert ours.recv() == ALL_ANSWERED
        then(answered)
        ours.send(END)
        assert ours.poll(WAIT_S), "the application ended"
        found = ours.recv()
        ours.close()
        application.join(WAIT_S)
    assert isinstance(found, Sent), found
    return found


def test_a_tweet_is_acknowledged_when_the_store_has_answered() -> None:
    found = sent(lambda _number: PUT_DONE, Phase(0.1, 500.0), WAIT_S)
    assert len(found.due_ns) > 10
    assert all(acknowledged > due for due, acknowledged in zip(found.due_ns, found.acknowledged_ns, strict=True))
    assert list(found.due_ns) == sorted(found.due_ns)
    assert (found.breaks, found.refusals.total()) == (0, 0)


def test_a_tweet_that_is_refused_or_loses_its_connection_is_sent_again() -> None:
    answers: dict[int, bytes | None] = {1: refusal(), 2: None}
    found = sent(lambda number: answers.get(number, PUT_DONE), Phase(0.1, 200.0), WAIT_S)
    assert all(found.acknowledged_ns)
    assert found.breaks == 1
    assert [(said, count) for said, count in found.refusals.items() if "too busy" in said] == [
        ("mutateRow: too busy", 1)
    ]
    waited_ns = max(map(int.__sub__, found.acknowledged_ns, found.due_ns))
    assert waited_ns > 50_000_000, "the response counts from when the tweet was due, not from when it was sent again"


def test_an_answer_that_comes_too_late_is_none() -> None:
    released = threading.Event()

    def late(_number: int) -> bytes:
        released.wait(WAIT_S)
        return PUT_DONE

    def release(answered: threading.Event) -> None:
        released.set()
        assert answered.wait(WAIT_S)

    found = sent(late, Phase(0.05, None), 0.05, release)
    assert list(found.acknowledged_ns) == [0]
