"""Effects as mutations: stamped, in order, refused where they cannot be written."""

from __future__ import annotations

from typing import Any

import pytest

from columnar.errors import CallerError, IllegalArgument
from columnar.flows.effect_contributions import ChangeContributions, Giver
from columnar.flows.effects import for_table, writes_of
from columnar.limits import CELL_BYTES, ROW_KEY_BYTES, ROW_OPERATIONS
from columnar.model.effect import SEND, Send
from columnar.model.mutation import Delete, Put, RowMutation
from columnar.model.schema import Family, make_table

MARKED = make_table("m", [Family("f"), Family("g")], {"DELETE_MARKERS": "1000"})
PLAIN = make_table("p", [Family("f")])


def test_all_that_a_change_leads_to_bears_its_stamp() -> None:
    found = writes_of([[1, b"t", b"r", {b"f:a": b"1", b"f:": b"2"}], [2, b"t", b"s", [b"f:a", b"g"]]], 77, 2)
    assert found == [
        (b"t", RowMutation(b"r", (Put(b"f", b"a", b"1", 77), Put(b"f", b"", b"2", 77)), hops=3)),
        (b"t", RowMutation(b"s", (Delete(b"f", b"a", 77), Delete(b"g", None, 77)), hops=3)),
    ]
    ((_, whole),) = writes_of([[2, b"m", b"r", None]], 77)
    assert for_table(whole, MARKED).hops == 1


def test_a_delete_without_columns_is_of_the_whole_row() -> None:
    ((_, mutation),) = writes_of([[2, b"m", b"r", None]], 77)
    assert for_table(mutation, MARKED).operations == (Delete(b"f", None, 77), Delete(b"g", None, 77))


def test_a_delete_needs_markers_and_a_put_does_not() -> None:
    (_, put), (_, delete) = writes_of([[1, b"p", b"r", {b"f:a": b"1"}], [2, b"p", b"r", [b"f:a"]]], 77)
    assert for_table(put, PLAIN) is put
    assert for_table(delete, MARKED) is delete
    with pytest.raises(IllegalArgument, match="columnar alter p --set DELETE_MARKERS="):
        for_table(delete, PLAIN)


@pytest.mark.parametrize(
    "effect",
    [
        5, [], [9, b"t", b"r", {}], [1, b"t", b"r", {}], [1, b"t", b"", {b"f:a": b"1"}], [1, b"t", b"r", {b"f": b"1"}],
        [1, b"t", b"r", {b"f:a": 1}], [1, b"t", b"r", {5: b"1"}], [1, b"t", b"r", {b":a": b"1"}], [1, "t", b"r", {}],
        [2, b"t", b"r", []], [2, b"t", b"r", [5]], [2, b"t", b"r", [b":q"]], [3, b"state"],
    ],
)  # fmt: skip
def test_what_is_no_effect_is_refused(effect: Any) -> None:
    with pytest.raises(IllegalArgument, match="an effect"):
        writes_of([effect], 77)


@pytest.mark.parametrize(
    ("effect", "says"),
    [
        ([1, b"t", b"r" * (ROW_KEY_BYTES + 1), {b"f:a": b"1"}], "row key has 32768 bytes"),
        ([2, b"t", b"r" * (ROW_KEY_BYTES + 1), None], "row key has 32768 bytes"),
        ([1, b"t", b"r", {b"f:a": bytes(CELL_BYTES - 2)}], "KeyValue size too large"),
        ([1, b"t", b"r", {b"f:%d" % number: b"" for number in range(ROW_OPERATIONS + 1)}], "names 20001 columns"),
        ([2, b"t", b"r", [b"f:%d" % number for number in range(ROW_OPERATIONS + 1)]], "names 20001 columns"),
    ],
)
def test_what_a_client_may_not_send_no_effect_writes(effect: Any, says: str) -> None:
    with pytest.raises(CallerError, match=says):
        writes_of([effect], 77)


def test_a_gift_to_a_row_that_can_be_none_is_refused() -> None:
    effect = [4, b"t", b"r" * (ROW_KEY_BYTES + 1), {b"n:a": 1}, b"m", None, {}, None, b"", 0]
    with pytest.raises(IllegalArgument, match="row key has 32768 bytes"):
        writes_of([effect], 77, 0, lambda: ChangeContributions(Giver("t"), b"r", (1, 1, 1)))


def test_a_message_has_the_same_name_in_each_run_for_its_change_and_another_for_another() -> None:
    def name_of(effect: Send, sender: bytes) -> bytes:
        ((target, mutation),) = writes_of([list(effect)], 5, name_sender=lambda: sender)
        assert (target, mutation.operations) == (b"queue:q", ())
        return mutation.sends[0].name

    one = Send("queue:q", b"body", headers={b"h": b"v"}, priority=3, delay_ms=7)
    names = {name_of(one, b"t 7-1-1"), name_of(one, b"t 7-1-2"), name_of(Send("queue:q", b"other"), b"t 7-1-1")}
    assert len(names) == 3
    assert all(len(name) <= 200 for name in names)
    assert name_of(Send("queue:q", b"body", headers={b"h": b"v"}, priority=3, delay_ms=7), b"t 7-1-1") in names
    assert name_of(Send("queue:q", b"body", name="mine"), b"t 7-1-1") == b"mine"


def test_a_message_that_goes_nowhere_is_refused_where_it_is_made() -> None:
    for target in ("jobs", "queue:", "topic:t"):
        with pytest.raises(ValueError, match="queue:NAME"):
            Send(target, b"")
    with pytest.raises(TypeError, match="body"):
        Send("queue:q", "text")  # type: ignore[arg-type]
    with pytest.raises(IllegalArgument, match="queue:NAME"):
        writes_of([[SEND, b"topic:t", b"", b"", b"", 0, 0, {}]], 5)
