"""Records stand once: every field reaches the catalogue, the peers and the clients, and a new field is one line."""

from __future__ import annotations

from dataclasses import fields, make_dataclass, replace
from typing import Any

import pytest

from columnar.cluster import message_codec
from columnar.cluster.peer_requests import FlowStatuses, TriggerStatuses, ViewStatuses
from columnar.errors import DamagedData, IllegalArgument
from columnar.model.flow_status import CheckReport, Finding, FlowStatus, ViewStatus, listed, status_of
from columnar.model.flow_status import from_json as flows_of
from columnar.model.flow_status import to_json as json_of_flows
from columnar.model.record_codec import pack_records, unpack_records
from columnar.model.trigger_registration import Registration, from_json, requested, to_json
from columnar.wire.dead_letter import DeadLetter, LetterChange, LoggedCell

FULL = Registration(
    name="links", table="pages", function="m:links", families=("f", "g\xff"), before=True, from_where="beginning",
    timeout_ms=5_000, attempts=3, row=False, side_by_side=2, share=20, rate="10/s", batch=100, within_ms=50,
    process="slow", columns=("f", "g\xff:a"), where=("f:b=1",), look=(("fans", "followers", "row"),), images=True,
    writes=("out",), of_module="m", allow_cycle=True, allow_expiry=True, owner="ann",
)  # fmt: skip
BARE = Registration("links", "pages", "m:links", ("f",))
TRIGGER = replace(
    status_of(FULL), state="paused", lag_changes=1 << 33, lag_seconds=2.5, parked_rows=3, dead_letters=4,
    last_error="no", rate_per_s=0.5,
)  # fmt: skip
VIEW = ViewStatus("w.2", 1 << 33, 2.5, 3, 1 << 40, "no", b"{}\xff", "live", 2, "next", ("s2",))
FLOW = FlowStatus(
    "trigger", "links", ("t/f",), ("u",), ("w",), "paused", 1, 2.5, 0.5, 4, 5, 6, 7, (1.0, *[0.0] * 17), 3.0, "no"
)
CELLS = (LoggedCell("put", b"f:\xff", 5, b"\x00"),)
RECORDS = (
    listed(TRIGGER, FULL, ["s2"]),
    VIEW,
    DeadLetter("t", b"p", b"\xff", "1-1-1", 8, "e", "o", 5, LetterChange(1, 2, 3, CELLS, CELLS, (), True, True)),
    CheckReport("v", 1, 2, 3, 4, (Finding("row", "t", b"\xff", "no"),), 5, 6, 7),
)


def test_every_field_of_a_registration_travels() -> None:
    assert all(getattr(FULL, field.name) != getattr(BARE, field.name) for field in fields(BARE)[3:]), "none by default"
    for one in (FULL, BARE):
        assert from_json(to_json(one)) == one
        assert requested(to_json(one), "bob") == replace(one, owner="bob"), "nobody names another owner"


def test_a_client_may_leave_out_what_has_a_default() -> None:
    data = b'{"name": "links", "table": "default:pages", "function": "m:links", "families": ["f:", "f"], "attempts": 0}'
    assert requested(data) == BARE
    unordered = replace(FULL, families=("g\xff", "f"), columns=("g\xff:a", "f", "f"), writes=("out", "out"))
    assert requested(to_json(unordered), FULL.owner) == FULL


@pytest.mark.parametrize("data", [
    b"", b"{", b"[]", b'{"name": "a"}', b'{"name": 5, "table": "t", "function": "m:f", "families": ["f"]}',
    b'{"name": "a", "table": "t", "function": "m:f", "families": ["f"], "colour": 1}',
    b'{"name": "a", "table": "t", "function": "m:f", "families": ["\\u20ac"]}',
    b'{"name": "a", "table": "t", "function": "m:f", "families": ["f"], "look": [["a", "b"]]}', b"[" * 100_000,
])  # fmt: skip
def test_what_is_no_registration_is_the_clients_fault(data: bytes) -> None:
    with pytest.raises(IllegalArgument):
        requested(data)


@pytest.mark.parametrize("record", RECORDS, ids=lambda one: type(one).__name__)
def test_every_field_of_a_record_reaches_clients(record: Any) -> None:
    assert unpack_records(pack_records([record, record]), type(record)) == [record, record]
    with pytest.raises(DamagedData):
        unpack_records(b"\x93", type(record))


@pytest.mark.parametrize("record", [TRIGGER, VIEW], ids=lambda one: type(one).__name__)
def test_a_new_field_is_one_line(record: Any) -> None:
    """A newer program has a field more; the older one passes over it, and the newer one takes its default."""
    newer: Any = make_dataclass("Newer", [("colour", str, "blue")], bases=(type(record),), frozen=True)
    values = {field.name: getattr(record, field.name) for field in fields(record)}
    sent = pack_records([newer(**values, colour="red")])
    assert unpack_records(sent, newer) == [newer(**values, colour="red")]
    assert unpack_records(sent, type(record)) == [record]
    assert unpack_records(pack_records([record]), newer) == [newer(**values)]


def test_every_field_of_a_status_that_a_server_knows_reaches_its_peers() -> None:
    for message, record, of_gateway in (
        (TriggerStatuses(), TRIGGER, set[str]()),
        (ViewStatuses(), VIEW, {"definition_json", "state", "generation", "role", "silent_servers"}),
        (FlowStatuses(), FLOW, set[str]()),
    ):
        plain = message_codec.answer_to_plain(message, (record,))  # type: ignore[misc]  # of several kinds
        (found,) = message_codec.answer_from_plain(message, plain)  # type: ignore[misc]
        defaults = {field.name: field.default for field in fields(record) if field.name in of_gateway}
        assert found == replace(record, **defaults)


def test_every_field_of_a_flow_reaches_clients() -> None:
    assert flows_of(json_of_flows([FLOW], ["s2"])) == ([FLOW], ["s2"])
