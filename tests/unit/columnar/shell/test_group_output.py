"""The output of a member of a group: leases while it is written, refused commits, and how the group is left."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Self

import pytest

from columnar.client.group_changes import CommitRefused
from columnar.shell.changes import LEAVE_MS, GroupOutput


class Store:
    """The connection of the command, and the changes of a member over it."""

    group, member = "g", "m"

    def __init__(self, position: bytes = b"p", refused: bool = False, is_away: bool = False) -> None:
        self.position = position
        self._refused = refused
        self._is_away = is_away
        self.calls: list[object] = []

    def another(self, timeout_ms: int) -> Store:
        self.calls.append(("another", timeout_ms))
        if self._is_away:
            raise ConnectionRefusedError("away")
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.calls.append("closed")

    def commit(self) -> None:
        self.calls.append("commit")
        if self._refused:
            raise CommitRefused("g", [b"a"])

    def leave_group(self, connection: object) -> None:
        assert connection is self
        self.calls.append("left")


def output_of(store: Any, written: list[str]) -> GroupOutput:
    output: Any = SimpleNamespace(write=written.append)
    return GroupOutput(store, store, output)


def test_the_lease_is_held_from_a_write_to_its_commit() -> None:
    store, needs = Store(), []
    with output_of(store, []) as group:
        group._output = SimpleNamespace(write=lambda _text: needs.append(group._renewal.work.needs_lease))  # type: ignore[assignment]
        group.write("line\n")
        needs.append(group._renewal.work.needs_lease)
        group.commit()
        needs.append(group._renewal.work.needs_lease)
    assert needs == [True, True, False]
    assert store.calls == ["commit", ("another", LEAVE_MS), "left", "closed"]


def test_changes_that_went_to_others_and_a_group_that_cannot_be_left_are_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with output_of(Store(refused=True, is_away=True), []) as group:
        group.commit()
    refused, left = capsys.readouterr().err.splitlines()
    assert refused.startswith("columnar: group g has given 1 of this member's ranges to others")
    assert left == "columnar: group g is left when the lease ends, in 30 s: away"


def test_a_group_that_was_never_joined_is_not_left() -> None:
    store = Store(position=b"")
    with pytest.raises(KeyboardInterrupt), output_of(store, []):
        raise KeyboardInterrupt
    assert store.calls == []
