"""SASL as a machine of bytes: where it begins, hostile messages in any pieces, and stores without users."""

from __future__ import annotations

import random

import pytest

from columnar.errors import SignInRefused
from columnar.security.scram import ScramServer, Verifier
from columnar.wire.codec import ServiceCodec
from columnar.wire.detect import NotThrift, Protocol, Speech, detect
from columnar.wire.framing import Hangup, RequestStream
from columnar.wire.idl import SERVICE
from columnar.wire.sasl import (
    BAD,
    COMPLETE,
    HEAD_BYTES,
    OK,
    PAYLOAD_BYTES,
    PLAIN,
    SCRAM,
    START,
    Reply,
    SaslServer,
    SignedIn,
    Verify,
    begins_sasl,
    sasl_message,
)
from tests.support.seeds import seed

VERIFIER = Verifier.of_password("pencil", b"0123456789abcdef", 4_096)


def made() -> SaslServer:
    return SaslServer(ScramServer(lambda _: VERIFIER, "more-of-the-nonce"), takes_plain=True)


def test_a_start_is_told_from_frames_of_its_length() -> None:
    assert begins_sasl(sasl_message(START, PLAIN))
    assert begins_sasl(sasl_message(START, SCRAM)[:1])
    for frame in (b"\x01\x00\x00\x00\x80\x01\x00\x01", b"\x01\x02\x00\x00\x80\x01", b"\x01\x00\x10\x00\x82\x21"):
        assert not begins_sasl(frame), frame.hex()
    assert detect(b"\x01\x00\x00\x00\x80\x01\x00\x01") == Speech(framed=True, protocol=Protocol.BINARY)


def test_a_store_without_users_says_so_in_sasl() -> None:
    found = detect(sasl_message(START, PLAIN))
    assert isinstance(found, NotThrift)
    stream = RequestStream(ServiceCodec(SERVICE))
    stream.feed(sasl_message(START, PLAIN))
    with pytest.raises(Hangup) as hangup:
        stream.next()
    assert hangup.value.answer[0] == BAD
    assert int.from_bytes(hangup.value.answer[1:HEAD_BYTES], "big") == len(hangup.value.answer) - HEAD_BYTES
    assert b"connect without SASL" in hangup.value.answer


@pytest.mark.parametrize("status", [OK, COMPLETE])  # thrift_sasl sends the one, Java's transport the other
def test_the_response_of_each_client_is_taken(status: int) -> None:
    server = made()
    server.feed(sasl_message(START, PLAIN) + sasl_message(status, b"\0ann\0secret") + b"rest")
    step = server.next_step()
    assert isinstance(step, Verify)
    assert (step.credentials.user, step.credentials.secret) == ("ann", "secret")
    assert server.take_rest() == b"rest"


def test_a_payload_over_the_bound_is_refused_before_it_arrives() -> None:
    server = made()
    server.feed(sasl_message(START, PLAIN) + bytes([OK]) + (PAYLOAD_BYTES + 1).to_bytes(4, "big"))
    with pytest.raises(SignInRefused, match="allowed"):
        server.next_step()


def test_whatever_comes_in_whatever_pieces_is_refused_or_signs_nobody_in() -> None:
    rng = random.Random(seed(36))
    first = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    for _ in range(3_000):
        sent = bytearray()
        for _ in range(rng.randrange(1, 5)):
            payload = rng.choice(
                [PLAIN, SCRAM, first, b"c=biws,r=x,p=AAAA", b"\0a\0b", rng.randbytes(rng.randrange(40))]
            )
            sent += sasl_message(rng.choice([START, OK, COMPLETE, BAD, rng.randrange(256)]), payload)
        for _ in range(rng.randrange(3)):
            sent[rng.randrange(len(sent))] = rng.randrange(256)
        server, at = made(), 0
        try:
            while at < len(sent):
                piece = bytes(sent[at : at + rng.randrange(1, 30)])
                at += len(piece)
                server.feed(piece)
                while (step := server.next_step()) is not None:
                    assert not isinstance(step, SignedIn), bytes(sent).hex()
                    if isinstance(step, Verify):
                        raise SignInRefused("verified by the account")
                    assert isinstance(step, Reply)
        except SignInRefused:
            pass
