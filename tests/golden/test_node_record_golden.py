"""Golden bytes of the records that nodes and leaders keep in the coordination service."""

from __future__ import annotations

import json

import pytest

from columnar.coordination.node_record import (
    ClusterRecord,
    LeaderRecord,
    MaintenanceRecord,
    MountRecord,
    NodeRecord,
    Record,
    decode_cluster_record,
    decode_leader_record,
    decode_maintenance_record,
    decode_mount_record,
    decode_node_record,
    decode_number,
    encode_number,
    encode_record,
    nonce_and_epoch,
)
from columnar.errors import DamagedData
from tests.support.golden import golden, hold_to

FILE = "node-records.txt"
NODES = {
    "node": NodeRecord(
        "00112233445566778899aabbccddeeff",
        "n1",
        17,
        "10.0.0.1:9100",
        ("n1-s1.41", "n1-s2.42"),
        {"n1-s1.41": (("00000001", 65_536), ("00000002", 0)), "n1-s2.42": ()},
        1_790_000_000_000,
    ),
    "node that has just joined": NodeRecord("ff" * 16, "knoten-ü", 1, "[::1]:9100"),
    "node that says its machine's clock": NodeRecord(
        "ff" * 16,
        "n1",
        17,
        "10.0.0.1:9100",
        ("n1-s1.41",),
        {"n1-s1.41": (("00000003", 65_536),), "n1-s2.40": (("00000001", 12),)},
        1_790_000_000_020,
        1_790_000_000_001,
        1_790_000_001_200,
    ),
    "node in a zone": NodeRecord("ff" * 16, "n1", 17, "10.0.0.1:9100", system_ms=1_790_000_000_001, zone="eu-1a"),
    "node that never leads": NodeRecord("ff" * 16, "n1", 17, "10.0.0.1:9100", never_leads=True),
    "node with a long lease": NodeRecord("ff" * 16, "n1", 17, "10.0.0.1:9100", lease_ms=15_000),
    "node that withdrew": NodeRecord("ff" * 16, "n1", 17, "10.0.0.1:9100", withdrawn=True),
}
MOUNTS = {
    "mount": MountRecord("n1", 17, "10.0.0.1:9100", "client4151"),
    "mount without a name": MountRecord("n1", 17, "[::1]:9100"),
}
LEADERS = {
    "leader": LeaderRecord("00" * 16, "n1", 9, "10.0.0.1:9100"),
    "leader that resigned": LeaderRecord("00" * 16, "n1", 9, "10.0.0.1:9100", vacated=True),
    "leader with pages": LeaderRecord("00" * 16, "n1", 9, "10.0.0.1:9100", web="http://10.0.0.1:9095/"),
}
LOCKS = {
    "maintenance": MaintenanceRecord(
        "ab" * 16, "columnar restart --rolling by root at höst-1", "n1", 1_790_000_000_000
    ),
    "maintenance of nobody": MaintenanceRecord(),
}
NUMBER = 4_711
CLUSTER = ClusterRecord("0f" * 16, "9b" * 16)


def test_records_are_written_as_ever() -> None:
    records: dict[str, Record] = {**NODES, **MOUNTS, **LEADERS, **LOCKS}
    others = {"counter": encode_number(NUMBER), "cluster": encode_record(CLUSTER)}
    hold_to(FILE, {name: encode_record(one) for name, one in records.items()} | others)


def test_records_are_read_as_ever() -> None:
    found = golden(FILE)
    assert {name: decode_node_record(found[name]) for name in NODES} == NODES
    assert {name: decode_mount_record(found[name]) for name in MOUNTS} == MOUNTS
    assert MOUNTS["mount"].key == "mounts/n1.17"
    assert {name: decode_leader_record(found[name]) for name in LEADERS} == LEADERS
    assert {name: decode_maintenance_record(found[name]) for name in LOCKS} == LOCKS
    assert [one.is_free for one in LOCKS.values()] == [False, True]
    assert decode_number(found["counter"]) == NUMBER
    assert decode_cluster_record(found["cluster"]) == CLUSTER
    assert nonce_and_epoch(found["node"]) == (NODES["node"].nonce, 0)
    assert nonce_and_epoch(found["leader"]) == (LEADERS["leader"].nonce, 9)
    assert NODES["node"].key == "nodes/n1.17"


def test_a_record_of_a_newer_program_is_read() -> None:
    newer = {**json.loads(golden(FILE)["node"]), "format": 2, "rack": "a"}
    assert decode_node_record(json.dumps(newer).encode()) == NODES["node"]


@pytest.mark.parametrize(
    "value",
    [b"", b"\xff", b"[]", b"1", b"{}", b'{"nonce":1}', encode_record(NODES["node"])[:-1]],
)
def test_what_is_no_record_is_damage(value: bytes) -> None:
    decoders = (decode_node_record, decode_mount_record, decode_leader_record, decode_cluster_record)
    for decode in (*decoders, decode_maintenance_record, nonce_and_epoch, decode_number):
        with pytest.raises(DamagedData):
            decode(value)


@pytest.mark.parametrize(
    "field",
    ["nonce", "node", "incarnation", "address", "servers", "logs", "clock_ms", "system_ms", "cluster_ms", "zone"],
)
def test_a_field_of_another_type_is_damage(field: str) -> None:
    record = {**json.loads(golden(FILE)["node"]), field: None}
    with pytest.raises(DamagedData):
        decode_node_record(json.dumps(record).encode())


@pytest.mark.parametrize("field", ["node", "incarnation", "address", "client"])
def test_a_field_of_a_mount_of_another_type_is_damage(field: str) -> None:
    for record in ({**json.loads(golden(FILE)["mount"]), field: None}, json.loads(golden(FILE)["mount"])):
        if record[field] is not None:
            del record[field]
        with pytest.raises(DamagedData):
            decode_mount_record(json.dumps(record).encode())


@pytest.mark.parametrize("field", ["nonce", "holder", "what", "since_ms"])
def test_a_field_of_a_lock_of_another_type_is_damage(field: str) -> None:
    record = {**json.loads(golden(FILE)["maintenance"]), field: None}
    with pytest.raises(DamagedData):
        decode_maintenance_record(json.dumps(record).encode())


@pytest.mark.parametrize("web", [None, 1, ["http://10.0.0.1:9095/"]])
def test_the_address_of_pages_that_is_no_text_is_damage(web: object) -> None:
    with pytest.raises(DamagedData):
        decode_leader_record(json.dumps({**json.loads(golden(FILE)["leader"]), "web": web}).encode())


@pytest.mark.parametrize("flag", [None, 1, "true"])
def test_a_flag_that_is_no_boolean_is_damage(flag: object) -> None:
    node = {**json.loads(golden(FILE)["node"]), "withdrawn": flag}
    leader = {**json.loads(golden(FILE)["leader"]), "vacated": flag}
    with pytest.raises(DamagedData):
        decode_node_record(json.dumps(node).encode())
    with pytest.raises(DamagedData):
        decode_leader_record(json.dumps(leader).encode())
