"""How long an answer that is dear to find is kept."""

from __future__ import annotations

from wikka_port.caches import TtlCache


class Finder:
    """``now`` is the clock; looking takes ``took_s`` of it."""

    def __init__(self, took_s: float) -> None:
        self.now = 100.0
        self.took_s = took_s
        self.looked = 0

    def __call__(self) -> int:
        self.looked += 1
        self.now += self.took_s
        return self.looked


def test_an_answer_is_kept_for_its_age() -> None:
    finder = Finder(0.0)
    memory = TtlCache(finder, 10.0, lambda: finder.now)
    assert [memory.get(), memory.get()] == [1, 1]
    finder.now += 10
    assert memory.get() == 2


def test_what_is_found_quickly_is_always_new() -> None:
    finder = Finder(0.01)
    memory = TtlCache(finder, 0.0, lambda: finder.now, times=20)
    assert [memory.get(), memory.get()] == [1, 2]


def test_what_takes_long_is_kept_for_a_multiple_of_it() -> None:
    finder = Finder(0.5)
    memory = TtlCache(finder, 0.0, lambda: finder.now, times=20)
    assert memory.get() == 1
    finder.now += 9
    assert memory.get() == 1
    finder.now += 1
    assert memory.get() == 2
