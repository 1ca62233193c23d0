"""A measurement that an endpoint ends keeps what was measured before."""

from __future__ import annotations

import socket
import struct
import threading
from collections import Counter
from contextlib import suppress
from typing import Any, cast

import pytest

from columnar.bench.address import Endpoint, EndpointFailed
from columnar.bench.calls import VOID_SUCCESS, CallSpec
from columnar.bench.generator import Outcome, drive
from columnar.bench.measuring import Generators, Line, Plan, measure
from columnar.bench.workloads import STANDARD, Repeating

PLAN = Plan((STANDARD["get-cell"], STANDARD["put"]), (1, 16), 2, 0.1, 1, 100)


class Failing:
    """Generators whose endpoint falls silent after so many turns."""

    def __init__(self, turns: int) -> None:
        self._left = turns

    def run_load(self, *_: Any) -> Outcome:
        if not self._left:
            raise EndpointFailed("127.0.0.1:1: no answer within 30 s")
        self._left -= 1
        return Outcome(Counter({100: 10}), 10, 1.0, 0.1)


def test_lines_that_were_whole_are_kept() -> None:
    lines: list[Line] = []
    ends = [Endpoint("127.0.0.1", 1), Endpoint("127.0.0.1", 2)]
    found = measure(ends, PLAN, cast(Generators, Failing(9)), lambda _: None)
    with pytest.raises(EndpointFailed):
        lines.extend(found)
    assert [(line.workload.name, line.connections) for line in lines] == [("get-cell", 1), ("get-cell", 16)]


def test_an_endpoint_that_closes_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        closing = threading.Thread(target=lambda: [server.accept()[0].close() for _ in ("asked", "asked with TLS")])
        closing.start()
        ring = [CallSpec("enableTable", (b"t",), VOID_SUCCESS).packed()]
        with pytest.raises(EndpointFailed, match=f"127.0.0.1:{port}: "):
            drive(Endpoint("127.0.0.1", port), [Repeating(ring, 0)], 0.05, 0.05)
        closing.join()


def test_a_unit_of_several_calls_that_takes_longer_than_the_time_is_waited_for() -> None:
    """Else a short run of scans on a busy machine measures nothing."""
    opening, reading = (CallSpec("enableTable", (b"t",), VOID_SUCCESS, units).packed() for units in (0, 1))
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            sock, _ = server.accept()
            with sock, suppress(ConnectionError):  # it is left in the middle of a call
                while sock.recv(65_536):
                    sock.sendall(struct.pack(">I", len(opening.good)) + opening.good)

        serving = threading.Thread(target=serve)
        serving.start()
        found = drive(Endpoint("127.0.0.1", server.getsockname()[1]), [Repeating([opening, reading], 0)], 0.0, 0.0)
        serving.join()
    assert found.units == 1
