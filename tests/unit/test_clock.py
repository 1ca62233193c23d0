"""The store's clock (pure), and the bytes of its file."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from columnar.clock import AHEAD_MS, NAME, ClockFile, StoreClock, packed, read, unpacked
from columnar.errors import HostError
from tests.support.golden import hold_to


class Machine:
    def __init__(self) -> None:
        self.now_ms = 1_000

    def __call__(self) -> int:
        return self.now_ms


def test_it_never_goes_back() -> None:
    machine = Machine()
    clock = StoreClock(machine)
    assert clock() == 1_000
    machine.now_ms = 400
    assert clock() == 1_000
    clock.observe(700)
    assert clock() == 1_000
    clock.observe(3_000)
    assert clock() == 3_000
    machine.now_ms = 3_001
    assert clock() == 3_001


def test_it_takes_another_time_and_never_goes_back() -> None:
    machine, cluster, kept = Machine(), Machine(), [0]
    clock = StoreClock(machine, kept.append)
    assert clock() == 1_000
    cluster.now_ms = 1_500
    clock.take_time(cluster)
    assert clock() == 1_500
    clock.take_time(machine)
    assert clock() == 1_500
    clock.observe(1_700)
    clock.take_time(cluster)
    cluster.now_ms = 1_701
    assert clock() == 1_701
    assert kept[-1] >= 1_701


def test_what_is_given_was_kept_before() -> None:
    machine, kept = Machine(), [0]
    clock = StoreClock(machine, kept.append)
    for step in (1, 1, 5, AHEAD_MS, 1, 1_000):
        machine.now_ms += step
        assert clock() <= kept[-1] <= clock() + AHEAD_MS
    assert len(kept) == 4, "once in AHEAD_MS"
    clock.observe(9_000)
    assert kept[-1] >= 9_000
    clock.settle()
    assert kept[-1] == 9_000


def test_an_operator_hears_once_of_a_clock_that_is_behind(caplog: pytest.LogCaptureFixture) -> None:
    clock = StoreClock(Machine())
    with caplog.at_level(logging.WARNING):
        clock.observe(1_500)
        assert caplog.text == ""
        clock.observe(61_000)
        clock.observe(62_000)
    assert caplog.text.count("THE CLOCK IS BEHIND by 60 s") == 1


def test_the_bytes() -> None:
    hold_to("clock.txt", {"in 2023": packed(1_700_000_000_000), "none yet": packed(0)})
    good = packed(1_700_000_000_000)
    assert unpacked(good) == 1_700_000_000_000
    for data in (b"", good[:15], good + b"\x00", bytes(16), *(_flipped(good, bit) for bit in range(128))):
        assert unpacked(data) == 0


def _flipped(data: bytes, bit: int) -> bytes:
    held = bytearray(data)
    held[bit // 8] ^= 1 << bit % 8
    return bytes(held)


def test_the_file(tmp_path: Path) -> None:
    assert read(str(tmp_path)) == 0
    file = ClockFile.opened(str(tmp_path))
    assert file.highest_ms == 0
    file.keep(5)
    file.keep(7)
    assert read(str(tmp_path)) == 7, "whoever kills the process now finds it"
    file.close()
    again = ClockFile.opened(str(tmp_path))
    assert again.highest_ms == 7
    again.close()
    (tmp_path / NAME).write_bytes(b"rubbish")
    assert read(str(tmp_path)) == 0


def test_a_disk_that_refuses_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = ClockFile.opened(str(tmp_path))
    file.close()
    for _ in range(2):
        file.keep(5)
    assert caplog.text.count("the clock's file is not written") == 1


def test_a_file_that_cannot_be_read_is_an_error_of_the_host(tmp_path: Path) -> None:
    assert read(str(tmp_path)) == 0
    (tmp_path / NAME).mkdir()
    with pytest.raises(HostError, match=f"cannot read {tmp_path / NAME}: "):
        read(str(tmp_path))
