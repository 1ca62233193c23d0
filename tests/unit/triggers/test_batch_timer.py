"""When a batch is ripe."""

from __future__ import annotations

from columnar.triggers.delivery_source import BatchTimer


def test_a_batch_is_ripe_when_it_is_full_or_its_first_change_has_waited() -> None:
    batch = BatchTimer(10, 0.05)
    batch.came(4, 1.0)
    batch.came(5, 1.03)
    assert not batch.is_due(9, 1.049)
    assert batch.is_due(10, 1.031)
    assert batch.due_s() == 1.05
    assert batch.is_due(9, 1.05)


def test_the_wait_of_those_left_begins_when_they_came() -> None:
    batch = BatchTimer(10, 0.05)
    batch.came(8, 1.0)
    batch.came(4, 1.03)
    batch.took(10)
    assert batch.due_s() == 1.03 + 0.05
    assert not batch.is_due(2, 1.07)
    batch.took(2)
    assert batch.due_s() is None


def test_what_comes_again_waits_for_nobody() -> None:
    batch = BatchTimer(10, 0.05)
    batch.came(2, 1.0)
    batch.came_again()
    assert batch.is_due(3, 1.0)
    batch.took(1)
    assert not batch.is_due(2, 1.0)
    batch.took(5)
    assert batch.is_due(1, 1.0), "it was counted when it was read for the first time"
