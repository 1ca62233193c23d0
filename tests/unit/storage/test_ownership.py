"""Decisions about logs that are behind: which are brought in, in which order, and at which epoch the owner goes on."""

from __future__ import annotations

import pytest

from columnar.errors import DamagedData
from columnar.regions.log.log_retention import META_SPACE as META_OF_REGIONS
from columnar.storage.ownership import (
    META_SPACE,
    THIS_RUN,
    LogPart,
    Ownership,
    complete_in,
    epoch_to_own,
    logs_to_replay,
    pack_complete,
)

A, B, C = "s1.1", "s2.1", "s3.1"


def test_complete_is_of_one_region() -> None:
    held = pack_complete(9, "parent")
    assert held == bytes.fromhex("0000000000000009") + b"parent", "on disk"
    assert complete_in(held, "parent") == 9
    assert complete_in(held, "daughter") == 0, "its epochs are others"
    assert complete_in(held, "paren") == 0
    assert complete_in(None, "parent") == 0
    assert complete_in(pack_complete(0, ""), "parent") == 0
    assert META_SPACE == META_OF_REGIONS


@pytest.mark.parametrize(
    ("behind", "complete", "wanted"),
    [
        ((), 0, []),
        (((A, 8),), 0, [(A, {8})]),
        (((A, 8),), 8, [(A, {8})]),
        (((A, 8),), 9, []),
        (((A, 8), (B, 9)), 9, [(B, {9})]),
        (((B, 9), (A, 8)), 0, [(A, {8}), (B, {9})]),
        (((A, 8), (A, 10)), 0, [(A, {8, 10})]),
        (((A, 8), (B, 9), (A, 10)), 0, [(A, {8}), (B, {9}), (A, {10})]),
        (((A, 8), (B, 9), (A, 10)), 9, [(B, {9}), (A, {10})]),
        (((A, 8), (A, 8)), 0, [(A, {8})]),
        (((THIS_RUN, 8), (A, 8)), 0, [(A, {8}), (THIS_RUN, {8})]),
        (((A, 0),), 0, [(A, {0})]),
    ],
)
def test_what_is_brought_in(
    behind: tuple[tuple[str, int], ...], complete: int, wanted: list[tuple[str, set[int]]]
) -> None:
    ownership = Ownership("r", 11, tuple(LogPart(*part) for part in behind))
    assert logs_to_replay(ownership, complete) == [(log, frozenset(epochs)) for log, epochs in wanted]


def test_an_owner_below_complete_is_refused() -> None:
    ownership = Ownership("r", 9, (LogPart(A, 8),))
    assert epoch_to_own(ownership, 0) == epoch_to_own(ownership, 8) == epoch_to_own(ownership, 9) == 9
    with pytest.raises(DamagedData, match="an owner at epoch 10; nobody may open it at 9"):
        epoch_to_own(ownership, 10)


@pytest.mark.parametrize(
    ("epoch", "complete", "behind", "owned"),
    [
        (5, 0, (), 5),
        (5, 7, (), 7),
        (5, 0, ((A, 4),), 5),
        (5, 0, ((A, 5),), 6),
        (5, 0, ((A, 9), (A, 2)), 10),
        (5, 0, ((THIS_RUN, 5),), 5),
        (5, 6, ((THIS_RUN, 6),), 6),
        (0, 0, (), 0),
        (0, 3, ((A, 3),), 4),
    ],
)
def test_the_epoch_of_a_sole_owner_is_above_all_that_is_over(
    epoch: int, complete: int, behind: tuple[tuple[str, int], ...], owned: int
) -> None:
    ownership = Ownership("r", epoch, tuple(LogPart(*part) for part in behind), is_sole=True)
    assert epoch_to_own(ownership, complete) == owned
