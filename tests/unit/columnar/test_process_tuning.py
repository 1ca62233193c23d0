"""When freed memory is given back."""

from __future__ import annotations

import ctypes

import pytest

from columnar.limits import MIB
from columnar.runtime.process_tuning import (
    BUSY_S,
    GROWN_BYTES,
    PAYS_BYTES,
    MemoryReturn,
    is_possible,
    malloc_trim,
    resident_bytes,
)


class Process:
    """``resident`` bytes, of which ``free`` can be given back."""

    def __init__(self, resident: int) -> None:
        self.resident = resident
        self.free = 0
        self.asked = 0
        self.used_s = 0.0

    def give_back(self) -> None:
        self.asked += 1
        self.resident -= self.free
        self.free = 0


@pytest.fixture
def process() -> Process:
    return Process(100 * MIB)


@pytest.fixture
def memory(process: Process) -> MemoryReturn:
    return MemoryReturn.begun(process.give_back, lambda: process.resident, lambda: process.used_s)


def test_a_process_that_has_hardly_grown_is_left_alone(process: Process, memory: MemoryReturn) -> None:
    process.resident += GROWN_BYTES - 1
    process.free = GROWN_BYTES
    assert (memory.trim_if_grown(), process.asked) == (0, 0)


def test_what_is_free_is_given_back_as_long_as_it_pays(process: Process, memory: MemoryReturn) -> None:
    process.resident += 3 * GROWN_BYTES
    process.free = GROWN_BYTES
    assert memory.trim_if_grown() == GROWN_BYTES
    process.free = 2 * PAYS_BYTES  # freed since, though the process has not grown
    assert memory.trim_if_grown() == 2 * PAYS_BYTES
    process.free = PAYS_BYTES - 1
    assert memory.trim_if_grown() == PAYS_BYTES - 1
    process.free = PAYS_BYTES
    assert (memory.trim_if_grown(), process.asked) == (0, 3)


def test_a_busy_process_is_not_held_up(process: Process, memory: MemoryReturn) -> None:
    process.resident += 2 * GROWN_BYTES
    process.free = GROWN_BYTES
    for _ in range(2):
        process.used_s += 2 * BUSY_S
        assert (memory.trim_if_grown(), process.asked) == (0, 0)
    process.used_s += BUSY_S / 2
    assert memory.trim_if_grown() == GROWN_BYTES


def test_memory_that_is_in_use_is_asked_for_once(process: Process, memory: MemoryReturn) -> None:
    process.resident += 2 * GROWN_BYTES
    assert [memory.trim_if_grown() for _ in range(3)] == [0, 0, 0]
    assert process.asked == 1


def test_growth_counts_from_the_least_it_was(process: Process, memory: MemoryReturn) -> None:
    process.resident -= 50 * MIB
    memory.trim_if_grown()
    process.resident += GROWN_BYTES
    memory.trim_if_grown()
    assert process.asked == 1


@pytest.mark.skipif(not is_possible(), reason="another C library than glibc")
def test_this_process_shrinks() -> None:
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    malloc_trim()  # what earlier tests freed would else be taken anew, and the process not grow
    memory = MemoryReturn.begun(cpu_s=lambda: 0.0)
    held = [libc.malloc(64 * 1024) for _ in range(3_000)]
    for place in held:
        ctypes.memset(place, 1, 64 * 1024)
    for place in held[:-1]:  # the last one keeps the end of the heap
        libc.free(place)
    before = resident_bytes()
    assert memory.trim_if_grown() > 0
    assert resident_bytes() < before - 100 * MIB
    libc.free(held[-1])
