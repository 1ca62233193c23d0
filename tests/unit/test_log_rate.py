"""Lines that clients cause are bounded by the second; lines of the store itself are not."""

from __future__ import annotations

import logging

import pytest

from columnar.limits import CLIENT_LINES_PER_SECOND
from columnar.runtime.log_rate import ClientLineRate


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def record(name: str, level: int = logging.WARNING, number: int = 0) -> logging.LogRecord:
    return logging.LogRecord(name, level, "", 0, "%s: closed: %s", (f"127.0.0.1:{number}", "no Thrift"), None)


@pytest.mark.parametrize("name", ["columnar.wire.connection", "waitress.queue"])
def test_lines_of_clients_are_bounded_and_the_others_are_counted(name: str) -> None:
    clock = Clock()
    rate = ClientLineRate(clock)
    passed = [rate.filter(record(name, number=number)) for number in range(1_000)]
    assert sum(passed) == CLIENT_LINES_PER_SECOND
    assert all(passed[:CLIENT_LINES_PER_SECOND]), "the first ones"
    clock.now_s += 1
    after = [record(name), record(name)]
    assert all(rate.filter(one) for one in after)
    assert [one.getMessage() for one in after] == [
        f"127.0.0.1:0: closed: no Thrift; {1_000 - CLIENT_LINES_PER_SECOND} more before it",
        "127.0.0.1:0: closed: no Thrift",
    ]


def test_an_error_is_not_kept_back_by_warnings() -> None:
    rate = ClientLineRate(Clock())
    for _ in range(1_000):
        rate.filter(record("columnar.wire.connection"))
    assert rate.filter(record("columnar.wire.server", logging.ERROR))


def test_lines_of_the_store_itself_have_no_bound() -> None:
    rate = ClientLineRate(Clock())
    assert all(rate.filter(record("columnar.regions.life.hosting")) for _ in range(1_000))
