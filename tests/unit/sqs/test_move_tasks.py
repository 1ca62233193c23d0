"""Tasks that move messages back, as the cell of a dead-letter queue keeps them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from columnar.sqs.errors import SqsError
from columnar.sqs.move_tasks import (
    COMPLETED,
    FAILED,
    MOST_KEPT,
    SILENT_MS,
    MoveTask,
    handle_of,
    task_of_handle,
    with_task,
)
from columnar.sqs.queue_attributes import OwnAttributes, pack_cell, unpack_cell

TASK = MoveTask("a", to="b", rate=5, started_ms=100, moved=3, total=9, seen_ms=200)


def test_a_task_without_its_server_has_failed() -> None:
    assert TASK.as_of(200 + SILENT_MS) == TASK
    late = TASK.as_of(201 + SILENT_MS)
    assert (late.state, late.why) == (FAILED, "ServerEnded")
    done = replace(TASK, state=COMPLETED)
    assert done.as_of(10**12) == done


def test_the_newest_tasks_are_kept() -> None:
    tasks: tuple[MoveTask, ...] = ()
    for number in range(MOST_KEPT + 3):
        tasks = with_task(tasks, MoveTask(str(number)))
    assert [one.id for one in tasks] == [str(number) for number in reversed(range(3, MOST_KEPT + 3))]
    changed = with_task(tasks, MoveTask("5", moved=7))
    assert [one.id for one in changed] == [one.id for one in tasks]
    assert next(one.moved for one in changed if one.id == "5") == 7


def test_tasks_are_in_the_cell() -> None:
    kept = OwnAttributes(1, 2, {"DelaySeconds": "5"}, (TASK,))
    assert unpack_cell(pack_cell(kept)) == kept
    for damaged in (b'[{"id": 5}]', b'[{"id": "a", "state": "FLYING"}]', b'[{"id": "a", "moved": "x"}]', b"5", b"[5]"):
        cell = pack_cell(kept).replace(pack_cell(kept).partition(b'"tasks": ')[2], damaged + b"}")
        assert unpack_cell(cell) == OwnAttributes()


def test_a_running_task_is_shown_with_its_handle() -> None:
    found = TASK.as_json(b"dead", "eu-west-1")
    assert task_of_handle(found["TaskHandle"]) == ("a", b"dead")
    assert found["DestinationArn"] == "arn:aws:sqs:eu-west-1:000000000000:b"
    over = replace(TASK, state=FAILED, why="ServerEnded").as_json(b"dead", "eu-west-1")
    assert "TaskHandle" not in over
    assert over["FailureReason"] == "ServerEnded"


@pytest.mark.parametrize("handle", ["", "no", "e30=", "W10=", "bnVsbA==", handle_of("a", b"b/c", "x"), "é"])
def test_a_handle_that_is_none(handle: str) -> None:
    with pytest.raises(SqsError, match="ResourceNotFoundException"):
        task_of_handle(handle)
