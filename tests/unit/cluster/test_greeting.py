"""The greeting of a link: proofs of the secret for one link and one side; hostile bytes get nothing but a hello."""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import replace
from functools import partial

import pytest

from columnar.cluster import peer_frames
from columnar.cluster.hello import HELLO, Greeting, Hello, NoProof, obstacle
from columnar.cluster.peer_frames import BadFrame
from columnar.cluster.value_codec import BadValue
from columnar.limits import GREETING_FRAME_BYTES
from columnar.model.owner import Incarnation

S1, S2 = Incarnation("s1", 4), Incarnation("s2", 17)
SECRET = bytes(range(32))
RANDOM1, RANDOM2 = b"1" * 16, b"2" * 16


def greeting(server: Incarnation, secret: bytes | None = SECRET, *, connects: bool, cluster: str = "c") -> Greeting:
    return Greeting(
        Hello(cluster, server), partial(obstacle, cluster=cluster, leader_epoch=0), secret, connects=connects
    )


def sides(secret: bytes = SECRET) -> tuple[Greeting, Greeting, bytes, bytes]:
    near, far = greeting(S1, connects=True), greeting(S2, secret, connects=False)
    return near, far, near.begin(RANDOM1), far.begin(RANDOM2)


def test_both_sides_prove_that_they_know_the_secret() -> None:
    near, far, hello1, hello2 = sides()
    proof1, proof2 = near.take_bytes(hello2), far.take_bytes(hello1)
    assert not near.is_over
    assert not far.is_over
    assert (near.take_bytes(proof2 + b"the frames"), far.take_bytes(proof1)) == (b"", b"")
    assert near.is_over
    assert far.is_over
    assert (near.take_rest(), far.take_rest(), near.take_rest()) == (b"the frames", b"", b"")
    assert (near.peer, far.peer) == (Hello("c", S2), Hello("c", S1))


def test_the_greeting_comes_in_single_bytes() -> None:
    near, far, hello1, hello2 = sides()
    proof1 = b"".join(near.take_bytes(hello2[n : n + 1]) for n in range(len(hello2)))
    far.take_bytes(hello1)
    assert not any(far.is_over for n in range(len(proof1)) if not far.take_bytes(proof1[n : n + 1]) and n < 44)
    assert far.is_over


def test_another_secret_is_no_proof() -> None:
    near, far, hello1, hello2 = sides(b"\1" * 32)
    proof1, proof2 = near.take_bytes(hello2), far.take_bytes(hello1)
    for one, proof in ((near, proof2), (far, proof1)):
        with pytest.raises(NoProof):
            one.take_bytes(proof + b"frames")
        assert not one.is_over


def test_ones_own_proof_is_none_of_the_peers() -> None:
    near, _far, _hello1, hello2 = sides()
    proof1 = near.take_bytes(hello2)
    with pytest.raises(NoProof):
        near.take_bytes(proof1)


def test_a_proof_of_another_link_is_none() -> None:
    near, far, hello1, hello2 = sides()
    proof1 = near.take_bytes(hello2)
    again = greeting(S2, connects=False)
    again.begin(b"3" * 16)
    again.take_bytes(hello1)
    with pytest.raises(NoProof):
        again.take_bytes(proof1)
    far.take_bytes(hello1)
    far.take_bytes(proof1)
    assert far.is_over


def test_a_server_is_no_help_against_itself() -> None:
    """A stranger shows a server its own hello of a second link, and would use the proof of the one for the other."""
    first, second = greeting(S1, connects=False), greeting(S1, connects=False)
    hello1, hello2 = first.begin(RANDOM1), second.begin(RANDOM2)
    proofs = (first.take_bytes(hello2), second.take_bytes(hello1))
    for one, proof in ((first, proofs[1]), (second, proofs[0])):
        with pytest.raises(NoProof):
            one.take_bytes(proof)


@pytest.mark.parametrize("change", [{"server": Incarnation("s3", 1)}, {"leader_epoch": 9}, {"version": 2}])
def test_a_changed_hello_has_no_proof(change: dict[str, object]) -> None:
    near, far, hello1, hello2 = sides()
    fields = HELLO.encode(replace(Hello("c", S1), **change)) | {"random": RANDOM1}  # type: ignore[arg-type]
    assert peer_frames.hello(HELLO.encode(Hello("c", S1)) | {"random": RANDOM1}) == hello1
    far.take_bytes(peer_frames.hello(fields))
    with pytest.raises(NoProof):
        far.take_bytes(near.take_bytes(hello2))


@pytest.mark.parametrize("found", [None, b"", b"1" * 15, b"1" * 17, "1" * 16, 7])
def test_a_hello_without_random_bytes_gets_no_proof(found: object) -> None:
    _near, far, _hello1, _hello2 = sides()
    with pytest.raises(NoProof):
        far.take_bytes(peer_frames.hello(HELLO.encode(Hello("c", S1)) | {"random": found}))


def test_a_peer_of_another_cluster_gets_no_proof() -> None:
    far = greeting(S2, connects=False)
    far.begin(RANDOM2)
    assert far.take_bytes(greeting(S1, connects=True, cluster="d").begin(RANDOM1)) == b""
    assert far.refusal == "s1.4 is of cluster d, not of c"


def test_a_side_without_a_secret_has_no_proof() -> None:
    for secret in (None, b""):
        with pytest.raises(NoProof):
            greeting(S1, secret, connects=True).begin(RANDOM1)


def test_without_random_bytes_the_hello_is_all() -> None:
    near, far = greeting(S1, connects=True), greeting(S2, None, connects=False)
    hello1, hello2 = near.begin(b""), far.begin(b"")
    assert hello1 == peer_frames.hello(HELLO.encode(Hello("c", S1)))
    assert (near.take_bytes(hello2 + b"rest"), near.is_over, near.take_rest()) == (b"", True, b"rest")
    assert (far.take_bytes(hello1), far.is_over) == (b"", True)


def test_a_long_frame_is_refused_by_its_head() -> None:
    near, far, hello1, hello2 = sides()
    with pytest.raises(BadFrame):
        far.take_bytes((GREETING_FRAME_BYTES + 1).to_bytes(4, "big") + hello1[4:13])
    near.take_bytes(hello2)
    with pytest.raises(BadFrame):
        near.take_bytes((GREETING_FRAME_BYTES + 1).to_bytes(4, "big") + peer_frames.proof(b"")[4:])


def test_hostile_bytes_end_the_greeting_or_wait() -> None:
    rng = random.Random(7)
    whole = [sides()[2], peer_frames.request_frame(1, "close_table", {"table": "t"}), peer_frames.answer_head(1, 0)]
    for _ in range(20_000):
        _near, far, _hello1, _hello2 = sides()
        data = bytearray(b"".join(rng.choices(whole, k=2)) if rng.random() < 0.7 else rng.randbytes(rng.randrange(80)))
        for _change in range(rng.randrange(4)):
            if data:
                data[rng.randrange(len(data))] = rng.randrange(256)
        with suppress(BadFrame, BadValue):
            far.take_bytes(bytes(data))
        assert not far.is_over
