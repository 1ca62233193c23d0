"""Attributes of messages: what AWS allows, their digests, the headers that they become."""

from __future__ import annotations

from typing import Any

import pytest

from columnar.sqs.errors import SqsError
from columnar.sqs.message_attributes import (
    OWN_HEADER,
    Attribute,
    OwnFields,
    attributes_of,
    checked_body,
    chosen,
    headers_of,
    md5_of_attributes,
    md5_of_body,
    read_attributes,
    text_of_body,
)

COLOUR = Attribute("colour", "String", "grün".encode())
SIZE = Attribute("size", "Number.int", b"42")
RAW = Attribute("raw", "Binary", b"\x00\xff")


def test_digests_are_those_of_aws() -> None:
    """The second one is the answer of SQS that the tests of moto have recorded."""
    assert md5_of_body("This is a test message") == "fafb00f5732ab283681e124bf8747ed1"
    assert md5_of_attributes([Attribute("timestamp", "Number.java.lang.Long", b"1493147359900")]) == (
        "2e2e4876d8e0bd6b8c2c8f556831c349"
    )
    assert md5_of_attributes([RAW, SIZE, COLOUR]) == md5_of_attributes([COLOUR, RAW, SIZE])
    assert md5_of_attributes([Attribute("a", "String", b"x")]) != md5_of_attributes([Attribute("a", "Binary", b"x")])


def test_attributes_are_read_as_they_are_sent() -> None:
    sent = {
        "colour": {"DataType": "String", "StringValue": "grün"},
        "size": {"DataType": "Number.int", "StringValue": "42"},
        "raw": {"DataType": "Binary", "BinaryValue": "AP8="},
    }
    found = read_attributes(sent)
    assert found == (COLOUR, SIZE, RAW)
    assert [one.as_json() for one in found] == list(sent.values())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("", {"DataType": "String", "StringValue": "a"}),
        ("AWS.a", {"DataType": "String", "StringValue": "a"}),
        ("amazon.a", {"DataType": "String", "StringValue": "a"}),
        (".a", {"DataType": "String", "StringValue": "a"}),
        ("a..b", {"DataType": "String", "StringValue": "a"}),
        ("a b", {"DataType": "String", "StringValue": "a"}),
        ("sqs:", {"DataType": "String", "StringValue": "a"}),
        ("n" * 257, {"DataType": "String", "StringValue": "a"}),
        ("a", {"DataType": "Text", "StringValue": "a"}),
        ("a", {"DataType": "", "StringValue": "a"}),
        ("a", {"StringValue": "a"}),
        ("a", {"DataType": "String", "StringValue": ""}),
        ("a", {"DataType": "String", "BinaryValue": "AA=="}),
        ("a", {"DataType": "String", "StringValue": "\x00"}),
        ("a", {"DataType": "Number", "StringValue": "1e"}),
        ("a", {"DataType": "Number", "StringValue": "\u0661"}),
        ("a", {"DataType": "Binary", "BinaryValue": "A"}),
        ("a", {"DataType": "Binary", "BinaryValue": "\u00fc"}),
        ("a", {"DataType": "String", "StringValue": 5}),
        ("a", "b"),
        ("a", None),
        ("a", {"DataType": "String", "StringValue": "x" * 65_536}),
    ],
)
def test_other_attributes_are_refused(name: str, value: Any) -> None:
    with pytest.raises(SqsError):
        read_attributes({name: value})


def test_a_message_has_ten_attributes() -> None:
    sent = {f"a{n}": {"DataType": "String", "StringValue": "v"} for n in range(11)}
    with pytest.raises(SqsError, match=r"\[11\] exceeds"):
        read_attributes(sent)


def test_headers_keep_what_was_sent() -> None:
    own = OwnFields("dedup", "Root=1-5759e988-bd862e3fe1be46a994272793", "AKIA")
    headers = headers_of((COLOUR, SIZE, RAW), own)
    assert (headers[b"colour"], headers[b"size"], headers[b"raw"]) == ("grün".encode(), b"42", b"\x00\xff")
    assert attributes_of(headers) == ((COLOUR, SIZE, RAW), own)
    assert headers_of((COLOUR,), OwnFields()) == {b"colour": "grün".encode()}, (
        "nothing more where nothing is to be kept"
    )


@pytest.mark.parametrize("own", [b"", b"{", b"[]", b"5", b'{"types": 5, "dedup": [], "sender": null}', b"[" * 100_000])
def test_headers_of_others_are_shown(own: bytes) -> None:
    found, fields = attributes_of({b"text": b"a", b"bytes": b"\xff", b"\xff": b"", OWN_HEADER: own})
    assert found == (
        Attribute("text", "String", b"a"), Attribute("bytes", "Binary", b"\xff"), Attribute("\\xff", "String", b"")
    )  # fmt: skip
    assert fields == OwnFields()


def test_a_body_that_is_no_text_is_shown_in_base64() -> None:
    assert text_of_body("grün".encode()) == ("grün", ())
    assert text_of_body(b"\xff\xfe") == ("//4=", (Attribute("encoding", "String", b"base64"),))


def test_characters_that_xml_does_not_have_are_refused() -> None:
    assert checked_body("\t\n\r ~ü\ud7ff\ue000\ufffd\U0010ffff")
    for one in "\x00\x0b\x1f\ufffe\uffff\ud800":
        with pytest.raises(SqsError, match="InvalidMessageContents"):
            checked_body(f"a{one}")


def test_attributes_are_chosen_by_name_and_prefix() -> None:
    found = [Attribute(name, "String", b"v") for name in ("a", "b.x", "b.y", "bc")]
    for names, expected in (
        ((), []),
        (("All",), ["a", "b.x", "b.y", "bc"]),
        ((".*",), ["a", "b.x", "b.y", "bc"]),
        (("b.*",), ["b.x", "b.y", "bc"]),
        (("a", "bc", "d"), ["a", "bc"]),
    ):
        assert [one.name for one in chosen(found, names)] == expected
