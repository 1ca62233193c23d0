"""Turns of those that have something to write."""

from __future__ import annotations

from columnar.flows.write_line import WriteLine


def written(line: WriteLine[list[int]], step: int) -> str:
    """Write in steps until nothing is left; each job is a name and how much of it is left."""
    order = ""
    while line:
        job = line.first()
        count = min(step, job[1])
        job[1] -= count
        order += chr(job[0])
        line.wrote(count, is_over=not job[1])
    return order


def job(name: str, count: int) -> list[int]:
    return [ord(name), count]


def test_little_does_not_wait_for_much() -> None:
    line: WriteLine[list[int]] = WriteLine()
    for _ in range(8):
        line.push("a", 10, job("a", 500))
    assert line.first()[1] == 500
    line.wrote(50, is_over=False)
    line.push("b", 10, job("b", 4))
    assert written(line, 50)[:3] in ("aba", "bab", "baa")


def test_shares_count() -> None:
    line: WriteLine[list[int]] = WriteLine()
    line.push("a", 10, job("a", 5_000))
    line.push("b", 20, job("b", 5_000))
    first = written(line, 50)[:90]
    assert 58 <= first.count("b") <= 62


def test_the_jobs_of_one_go_in_order() -> None:
    line: WriteLine[list[int]] = WriteLine()
    for name in "xyz":
        line.push("a", 10, job(name, 100))
    assert written(line, 50) == "xxyyzz"


def test_idle_time_is_no_credit_and_owners_are_forgotten() -> None:
    line: WriteLine[list[int]] = WriteLine()
    line.push("idle", 10, job("i", 1))
    line.push("a", 10, job("a", 100_000))
    for _ in range(1_000):
        one = line.first()
        count = min(50, one[1])
        one[1] -= count
        line.wrote(count, is_over=not one[1])
    line.push("idle", 10, job("i", 1_000))
    assert 18 <= written(line, 50)[:40].count("i") <= 22
    for number in range(5_000):
        line.push(f"once-{number}", 10, job("o", 1))
        written(line, 50)
    assert len(line._owners) <= 1_100
