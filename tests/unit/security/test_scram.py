"""SCRAM-SHA-256: the example of RFC 7677, both ends against each other, and what neither end accepts."""

from __future__ import annotations

import base64
import random

import pytest

from columnar.errors import IllegalArgument, SignInRefused
from columnar.security.saslprep import prepared
from columnar.security.scram import ITERATIONS, ScramClient, ScramServer, Verifier
from tests.support.seeds import seed

CLIENT_NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
VERIFIER = Verifier.of_password("pencil", SALT, 4096)
FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
CHALLENGE = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
FINAL = b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
LAST = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def server(verifier: Verifier = VERIFIER) -> ScramServer:
    return ScramServer(lambda _: verifier, SERVER_NONCE)


def test_the_example_of_the_rfc_at_both_ends() -> None:
    ours, client = server(), ScramClient("user", "pencil", CLIENT_NONCE)
    assert client.first() == FIRST
    assert ours.challenge(FIRST) == CHALLENGE
    assert client.proof(CHALLENGE) == FINAL
    assert ours.verify_proof(FINAL) == LAST
    client.check(LAST)
    assert ours.user == "user"


def test_a_verifier_is_read_as_it_was_written() -> None:
    assert Verifier.of_text(VERIFIER.encoded) == VERIFIER
    assert VERIFIER.encoded.startswith("SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$")
    assert "pencil" not in VERIFIER.encoded + repr(VERIFIER)
    for text in ("", "SCRAM-SHA-256$4096:$x:y", VERIFIER.encoded.replace("4096", "4095"), VERIFIER.encoded[:-4]):
        with pytest.raises(ValueError, match=r".*"):
            Verifier.of_text(text)


@pytest.mark.parametrize("name", ["a,b=c", "jürgen", "=2C"])
def test_names_are_escaped(name: str) -> None:
    ours, client = server(), ScramClient(name, "pencil", CLIENT_NONCE)
    ours.verify_proof(client.proof(ours.challenge(client.first())))
    assert ours.user == name


def test_a_wrong_password_proves_nothing() -> None:
    ours, client = server(), ScramClient("user", "Pencil", CLIENT_NONCE)
    final = client.proof(ours.challenge(client.first()))
    with pytest.raises(SignInRefused, match="not right"):
        ours.verify_proof(final)


def test_no_password_fits_an_unknown_user_and_its_challenge_is_the_same_each_time() -> None:
    nobody = Verifier.of_nobody(b"key", "nobody")
    assert nobody == Verifier.of_nobody(b"key", "nobody") != Verifier.of_nobody(b"key", "other")
    assert (nobody.iterations, len(nobody.salt)) == (ITERATIONS, len(SALT))
    ours, client = server(nobody), ScramClient("nobody", "pencil", CLIENT_NONCE)
    final = client.proof(ours.challenge(client.first()))
    with pytest.raises(SignInRefused):
        ours.verify_proof(final)


@pytest.mark.parametrize(
    "first",
    [
        b"p=tls-unique,,n=user,r=" + CLIENT_NONCE.encode(),
        b"n,a=root,n=user,r=" + CLIENT_NONCE.encode(),
        b"n,,m=ext,n=user,r=" + CLIENT_NONCE.encode(),
        b"n,,n=us=er,r=" + CLIENT_NONCE.encode(),
        b"n,,n=user,r=short",
        b"n,,n=,r=" + CLIENT_NONCE.encode(),
        b"n,,n=user",
        b"\xff\xfe",
        b"",
    ],
)
def test_first_messages_that_are_refused(first: bytes) -> None:
    with pytest.raises(SignInRefused):
        server().challenge(first)


@pytest.mark.parametrize(
    ("part", "other"),
    [
        (b"c=biws", b"c=eSws"),  # y,, instead of n,,
        (b"FIlj)hN", b"FIlj)hM"),  # another nonce
        (b"p=dHzb", b"p=dHzc"),
        (b"VQ=", b""),
        (b",p=", b",q="),
    ],
)
def test_last_messages_that_are_refused(part: bytes, other: bytes) -> None:
    ours = server()
    ours.challenge(FIRST)
    with pytest.raises(SignInRefused):
        ours.verify_proof(FINAL.replace(part, other))


def test_a_client_refuses_a_server_that_does_not_know_the_password() -> None:
    client = ScramClient("user", "pencil", CLIENT_NONCE)
    client.proof(CHALLENGE)
    with pytest.raises(SignInRefused):
        client.check(LAST.replace(b"6rri", b"6rrj"))
    for challenge in (
        CHALLENGE.replace(b"4096", b"1"),  # a password that is cheap to guess
        CHALLENGE.replace(b"4096", b"999999999"),
        CHALLENGE.replace(b"rOpr", b"rOps"),
        b"r=rOprNGfwEbeRWgbNEkqO,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
    ):
        with pytest.raises(SignInRefused):
            ScramClient("user", "pencil", CLIENT_NONCE).proof(challenge)


def test_whatever_comes_is_answered_or_refused() -> None:
    rng = random.Random(seed(36))
    for _ in range(2_000):
        ours, first, final = server(), bytearray(FIRST), bytearray(FINAL)
        for message in (first, final):
            for _ in range(rng.randrange(3)):
                message[rng.randrange(len(message))] = rng.choice(b"=,nrpcav\x00\xff\xc3")
        try:
            ours.challenge(bytes(first))
            ours.verify_proof(bytes(final))
        except SignInRefused:
            continue
        assert (first, final) == (FIRST, FINAL)


def test_passwords_are_prepared() -> None:
    assert prepared("I\u00adX") == "IX"  # the examples of RFC 4013
    assert prepared("\u2168") == "IX"
    assert prepared("a\u00a0b") == "a b"
    assert prepared("user") == "user"
    for bad in ("", "\u00ad", "a\x07", "a\x00b", "x" * 1_025):
        with pytest.raises(IllegalArgument):
            prepared(bad)
