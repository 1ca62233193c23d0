"""Kafka's messages as bytes: golden ones of a client's own encoder, and hostile ones."""

from __future__ import annotations

import random
from typing import Any

import pytest

from columnar.kafka import codec
from columnar.kafka.codec import BadMessage, answer_frame, read_answer, read_fields, read_head, request_frame
from columnar.kafka.schemas import API_VERSIONS, APIS, FETCH, LIST_GROUPS, METADATA, PRODUCE, Api, Array, Field
from tests.support.deep import seeds

# what kafka-python 3.0.12 sends, as client "a" with correlation 7
GOLDEN = {
    "000000110012000300000007000161000278023100": (
        API_VERSIONS, 3, {"software_name": "x", "software_version": "1"},
    ),
    "0000001300030004000000070001610000000100017401": (METADATA, 4, {"topics": [{"name": "t"}], "may_create": True}),
    "000000290000000700000007000161ffffffff000003e800000001000174000000010000000200000003616263": (
        PRODUCE, 7,
        {
            "transactional_id": None, "acks": -1, "timeout_ms": 1_000,
            "topics": [{"name": "t", "partitions": [{"index": 2, "records": b"abc"}]}],
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("given", GOLDEN)
def test_requests_of_a_client(given: str) -> None:
    api, version, values = GOLDEN[given]
    frame = bytes.fromhex(given)
    head = read_head(frame[4:])
    assert (head.api, head.version, head.correlation, head.client) == (api.number, version, 7, "a")
    found = read_fields(api, version, frame[4:], head.at)
    assert {name: found[name] for name in values} == values
    assert request_frame(api, version, 7, "a", values).hex() == given


def test_answers_have_the_heads_that_clients_expect() -> None:
    plain = answer_frame(API_VERSIONS, 3, 7, {"apis": [{"number": 1, "first": 4, "last": 11}]})
    assert plain.hex() == "000000130000000700000200010004000b000000000000"
    tagged = answer_frame(LIST_GROUPS, 3, 7, {"groups": []})
    assert tagged.hex() == "0000000d00000007000000000000000100"


def drawn(kind: Any, rng: random.Random, version: int, field: Field) -> Any:
    if version >= field.nullable and rng.random() < 0.2:
        return None
    if isinstance(kind, Array):
        return [drawn(kind.of, rng, version, field.element()) for _ in range(rng.choice((0, 1, 3, 200)) % 7)]
    if isinstance(kind, tuple):
        return {one.name: drawn(one.kind, rng, version, one) for one in kind if one.is_in(version)}
    if kind == "string":
        return "".join(rng.choices("aß\0😀", k=rng.choice((0, 1, 130))))
    if kind == "bytes":
        return rng.randbytes(rng.choice((0, 1, 127, 20_000)))
    if kind == "uuid":
        return rng.randbytes(16)
    if kind == "bool":
        return rng.random() < 0.5
    bits = int(kind.removeprefix("int"))
    return rng.choice((-(1 << bits - 1), -1, 0, 5, (1 << bits - 1) - 1))


def covers(found: Any, given: Any) -> bool:
    if isinstance(given, dict):
        return all(covers(found[name], value) for name, value in given.items())
    if isinstance(given, list):
        return len(found) == len(given) and all(map(covers, found, given))
    return bool(found == given)


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_messages_come_back_in_each_version(api: Api) -> None:
    rng = random.Random(f"{api.name}")
    for version in range(api.first, api.last + 1):
        asked = drawn(api.request, rng, version, Field("", api.request))
        frame = bytes(request_frame(api, version, 9, "c", asked))
        head = read_head(frame[4:])
        assert covers(read_fields(api, version, frame[4:], head.at), asked)
        answered = drawn(api.response, rng, version, Field("", api.response))
        frame = bytes(answer_frame(api, version, 9, answered))
        correlation, found = read_answer(api, version, frame[4:])
        assert correlation == 9
        assert covers(found, answered)


def test_tags_that_are_not_known_are_skipped() -> None:
    frame = bytes(request_frame(API_VERSIONS, 3, 1, "a", {}))[4:]
    assert frame.endswith(b"\0")
    with_tags = frame[:-1] + bytes.fromhex("020503616263ff0100")
    head = read_head(with_tags)
    assert read_fields(API_VERSIONS, 3, with_tags, head.at)["software_name"] == ""


@pytest.mark.parametrize(
    "damaged",
    [
        "", "0003", "000300040000000700", "00030004000000070005", "0003000400000007ffff7fffffff",  # a count
        "0003000400000007ffff000000010005",  # a string beyond the end
        "0003000400000007ffff000000010002fffe00",  # no UTF-8
        "0003000400000007ffff000000000000",  # one byte too many
        "0012000300000007000161ff" "ffffffffffff",  # a number without end
        "00120003000000070001610" "00278023101" "05ffffffff0f",  # a tag beyond the end
    ],
)  # fmt: skip
def test_damaged_requests_are_refused(damaged: str) -> None:
    frame = bytes.fromhex(damaged)
    with pytest.raises(BadMessage):
        read_whole(frame)


def read_whole(frame: bytes) -> None:
    head = read_head(frame)
    api = APIS.get(head.api)
    if api is not None and api.serves(head.version):
        read_fields(api, head.version, frame, head.at)


def test_a_message_has_a_bound_of_values(monkeypatch: pytest.MonkeyPatch) -> None:
    topics = [{"name": ""}] * 50
    frame = bytes(request_frame(METADATA, 4, 1, "", {"topics": topics}))[4:]
    read_whole(frame)
    monkeypatch.setattr(codec, "VALUES", 49)
    with pytest.raises(BadMessage, match="50 elements"):
        read_whole(frame)


def test_hostile_bytes_are_refused_and_nothing_else() -> None:
    rng = random.Random(50)
    good = []
    for api in APIS.values():
        for version in range(api.first, api.last + 1):
            asked = drawn(api.request, rng, version, Field("", api.request))
            good.append(bytes(request_frame(api, version, 9, "c", asked))[4:])
    refused = 0
    for _ in range(seeds("hostile Kafka requests", deep=300_000, short=3_000)):
        frame = bytearray(rng.choice(good))
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(frame))
            what = rng.random()
            if what < 0.5:
                frame[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
            elif what < 0.75:
                del frame[at : at + rng.randint(1, 8)]
            else:
                frame[at:at] = rng.randbytes(rng.randint(1, 8))
            if not frame:
                break
        try:
            read_whole(bytes(frame))
        except BadMessage:
            refused += 1
    assert refused > 100


def test_fetch_answers_are_not_copied_more_than_once() -> None:
    """An answer of megabytes is built in one buffer."""
    records = bytes(4 * 1024 * 1024)
    partition = {"index": 0, "error": 0, "high_watermark": 1, "records": records}
    frame = answer_frame(FETCH, 11, 1, {"topics": [{"name": "t", "partitions": [partition]}]})
    assert len(frame) - len(records) < 200


def test_a_size_is_not_believed_where_it_is_read() -> None:
    named = bytes.fromhex("0003000400000007") + b"\x00\x09abc"
    with pytest.raises(BadMessage, match="9 bytes are announced at 10, and 3 are there"):
        read_head(named)
    frame = bytes(request_frame(METADATA, 4, 7, "a", {"topics": [{"name": "t"}], "may_create": True}))[4:]
    head = read_head(frame)
    many = frame[: head.at] + (codec.VALUES - 1).to_bytes(4, "big") + frame[head.at + 4 :]
    with pytest.raises(BadMessage, match="an array of 199999 elements does not fit the message"):
        read_fields(METADATA, 4, many, head.at)
    long = frame[: head.at + 4] + b"\x00\x05" + frame[head.at + 6 :]
    with pytest.raises(BadMessage, match="5 bytes are announced"):
        read_fields(METADATA, 4, long, head.at)


def test_a_clients_name_is_kept_in_part() -> None:
    frame = bytes(request_frame(API_VERSIONS, 0, 7, "a" * 5_000, {}))[4:]
    assert read_head(frame).client == "a" * codec.CLIENT_CHARACTERS
