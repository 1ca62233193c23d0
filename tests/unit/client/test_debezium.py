"""Messages of Debezium's form: operations, tombstones, values as declared, and transactions of one step."""

from __future__ import annotations

import json
from typing import Any

import pytest

from columnar.client.changes import Change, Entry, Forget, Idle, Row
from columnar.client.debezium import Debezium
from columnar.model.debezium import NotDeclared, ValueForms
from columnar.shell.changes import value_forms

Cells = dict[bytes, bytes]
NOW = 2_000


def change(before: Cells | None, after: Cells | None, sequence: str = "1-1-1", *, more: bool = False) -> Change:
    return Change(b"r", (Entry("put", b"f:x", 1, b""),), before, after, 1_500, sequence, more, b"p")


def value_of(event: Any, forms: ValueForms | None = None) -> dict[str, Any]:
    (found, *_) = Debezium("t", forms or ValueForms()).messages_of(event, NOW)
    assert found.value is not None
    return found.value


def test_a_message_has_all_that_readers_of_debezium_look_at() -> None:
    (message,) = Debezium("team:pages", ValueForms()).messages_of(change({}, {b"f:x": b"1"}, "7-2-30"), NOW)
    version = message.value["source"].pop("version") if message.value is not None else ""
    assert version
    assert message == (
        {"row": "r"},
        {
            "before": None,
            "after": {"row": "r", "f:x": "1"},
            "source": {"connector": "columnar", "name": "columnar", "db": "team", "table": "pages", "ts_ms": 1_500,
                       "snapshot": "false", "sequence": "7-2-30"},
            "op": "c",
            "ts_ms": NOW,
            "transaction": None,
        },
    )  # fmt: skip


def test_the_operations() -> None:
    x, y = {b"f:x": b"1"}, {b"f:x": b"2"}
    made = Debezium("t", ValueForms())
    assert value_of(change(x, y))["op"] == "u"
    delete, tombstone = made.messages_of(change(x, {}), NOW)
    assert delete.value is not None
    assert (delete.value["op"], delete.value["before"], delete.value["after"]) == ("d", {"row": "r", "f:x": "1"}, None)
    assert tombstone == ({"row": "r"}, None)
    assert made.messages_of(change({}, {}), NOW) == []
    assert made.messages_of(Idle(5, b"p"), NOW) == []
    row = value_of(Row(b"r", {b"f:x": (b"1", 9)}, "1-1-1", b"p"))
    assert (row["op"], row["before"], row["after"]) == ("r", None, {"row": "r", "f:x": "1"})
    assert (row["source"]["snapshot"], row["source"]["ts_ms"]) == ("true", NOW)


def test_values_are_of_the_declared_form_and_of_no_other() -> None:
    cells = {b"f:x": b'{"a": 1}', b"f:y": b"\xff", b"g:z": b"12"}
    forms = value_forms(["f:x=json", "f:y=base64", "g:=text", "row=base64"])
    after = value_of(change({}, cells), forms)["after"]
    assert after == {"row": "cg==", "f:x": {"a": 1}, "f:y": "/w==", "g:z": "12"}
    assert value_of(change({}, {b"g:z": b"12"}), value_forms(["json"]))["after"]["g:z"] == 12
    assert value_of(change({}, {b"g:z": b"12"}), value_forms(["json", "g:=text"]))["after"]["g:z"] == "12"


@pytest.mark.parametrize(
    ("cells", "forms", "says"),
    [
        ({b"f:y": b"\xff"}, (), "f:y=base64"),
        ({b"f:y": b"{"}, ("json",), "no JSON"),
        ({b"f:y": b"NaN"}, ("json",), "no JSON"),
        ({b"f:y": b"[" * 100_000}, ("json",), "no JSON"),
        ({b"f:\xff": b"1"}, (), "--columns"),
    ],
)
def test_a_value_that_is_not_as_declared_is_refused_with_the_remedy(
    cells: Cells, forms: tuple[str, ...], says: str
) -> None:
    with pytest.raises(NotDeclared, match=says):
        value_of(change({}, cells), value_forms(forms))


def test_what_the_form_cannot_say_is_refused() -> None:
    with pytest.raises(NotDeclared, match="CHANGE_LOG_IMAGES"):
        value_of(change(None, None))
    with pytest.raises(NotDeclared, match="forget"):
        Debezium("t", ValueForms()).messages_of(Forget(b"", b"", b"p"), NOW)
    row = Row(b"\xff", {b"f:x": (b"1", 9)}, "1-1-1", b"p")
    with pytest.raises(NotDeclared, match="row=base64"):
        value_of(row)


@pytest.mark.parametrize("text", ["xml", "f=json", "row=json", "f:x=", ""])
def test_wrong_forms(text: str) -> None:
    with pytest.raises(Exception, match="--value"):
        value_forms([text])


def test_records_of_a_step_are_a_transaction_also_between_those_of_other_regions() -> None:
    made = Debezium("t", ValueForms())

    def transaction(sequence: str, *, more: bool = False) -> Any:
        (found,) = made.messages_of(change({}, {b"f:x": b"1"}, sequence, more=more), NOW)
        assert found.value is not None
        step = found.value["transaction"]
        return step and (step["id"], step["total_order"])

    assert transaction("1-1-1") is None
    assert transaction("1-1-2", more=True) == ("1-1-2", 1)
    assert transaction("2-1-2", more=True) == ("2-1-2", 1)
    assert transaction("1-1-3", more=True) == ("1-1-2", 2)
    assert transaction("1-1-4") == ("1-1-2", 3)
    assert transaction("2-1-3") == ("2-1-2", 2)
    assert transaction("1-1-5") is None
    assert transaction("1-1-6", more=True) == ("1-1-6", 1)
    assert transaction("1-1-8") is None, "the record between is not wanted, and was the step's last"
    assert transaction("1-1-9", more=True) == ("1-1-9", 1)
    assert transaction("1-2-10") is None, "of another opening of the region"
    assert json.dumps(made._messages._steps, default=str) == "{}"
