"""Descriptors of a trigger worker that is a fork: it has them under the numbers that the store's process gave them."""

from __future__ import annotations

import os

import pytest

from tests.support.forked_worker import take_descriptors


@pytest.mark.parametrize("first", [9, 500, 501, 900])
def test_each_descriptor_gets_its_number_whatever_numbers_are_taken(first: int) -> None:
    """Long runs have hundreds of descriptors, so the numbers of a worker's sockets are as high."""
    pid = os.fork()
    if pid == 0:  # the child tells the outcome by its exit status
        _take_and_end(first)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def _take_and_end(first: int) -> None:
    try:
        pipes = [os.pipe() for _ in range(4)]
        given = {first + n: ours for n, (ours, _) in enumerate(pipes)}
        wanted = {number: os.fstat(here).st_ino for number, here in given.items()}
        take_descriptors(given)
        os._exit(0 if {number: os.fstat(number).st_ino for number in given} == wanted else 1)
    except BaseException:  # noqa: BLE001 - nothing else ends the child
        os._exit(2)
