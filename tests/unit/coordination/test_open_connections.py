"""How many connections a server has is known at any moment, however late its beats are."""

from __future__ import annotations

import random

import pytest

from columnar.connections.connection_dispatcher import TOLERATED_PART, OpenConnections
from columnar.coordination.processes import BEAT_BYTES, Beat, last_of, packed
from tests.support.seeds import seed


def test_the_last_beat_counts() -> None:
    beats = [Beat(1), Beat(1 << 40, 10_000, 1 << 40, 3, 1 << 33)]
    assert last_of(b"".join(map(packed, beats))) == beats[-1]
    beat = "0000000000000001 00000002 0000000000000003 0000000000000004 0000000000000005"
    assert packed(Beat(1, 2, 3, 4, 5)) == bytes.fromhex(beat)
    assert len(packed(beats[0])) == BEAT_BYTES


def test_what_is_on_the_way_counts_and_nothing_counts_twice() -> None:
    counts: OpenConnections[str] = OpenConnections()
    counts.joined("s1")
    counts.joined("s2")
    assert counts.fewest_first(["s2", "s1", "unknown"]) == ["s1", "s2"]
    counts.count_dispatched("s1")
    assert (counts.of("s1"), counts.fewest_first(["s1", "s2"])) == (1, ["s2", "s1"])
    counts.said("s1", Beat(1, open=0, taken=0))
    assert counts.of("s1") == 1, "it has not taken it by then"
    counts.said("s1", Beat(2, open=1, taken=1))
    assert counts.of("s1") == 1
    counts.said("s1", Beat(3, open=0, taken=1))
    assert counts.of("s1") == 0, "the client has gone"
    counts.said("s1", Beat(4, open=7, taken=1))
    counts.count_returned("s1")
    assert counts.of("s1") == 6, "on its own port clients connect by themselves"
    counts.said("s1", Beat(5, open=6, taken=1, given=1))
    assert counts.of("s1") == 6
    counts.ended("s1")
    counts.count_returned("s1")
    counts.said("s1", Beat(6, open=6))
    assert (counts.of("s1"), counts.fewest_first(["s1", "s2"])) == (0, ["s2"])


def test_when_a_beat_comes_the_count_is_exact() -> None:
    """Connections come, are taken, end and go back; beats come late, some never."""
    first = seed(20261123)
    print(f"COLUMNAR_SEED={first}")
    for number in range(first, first + 30):
        rng = random.Random(number)
        counts: OpenConnections[str] = OpenConnections()
        counts.joined("s")
        coming, open_now, going, taken, given = 0, 0, 0, 0, 0
        for _ in range(300):
            step = rng.choice(("hand", "hand", "take", "take", "end", "send", "return", "beat"))
            if step == "hand":
                counts.count_dispatched("s")
                coming += 1
            elif step == "take" and coming:
                coming, open_now, taken = coming - 1, open_now + 1, taken + 1
            elif step == "end" and open_now:
                open_now -= 1
            elif step == "send" and open_now:
                open_now, going, given = open_now - 1, going + 1, given + 1
            elif step == "return" and going:
                going -= 1
                counts.count_returned("s")
            elif step == "beat":
                counts.said("s", Beat(1, open_now, taken, given))
                assert counts.of("s") == open_now + coming, f"seed {number}"


def with_open(counts: dict[str, int]) -> OpenConnections[str]:
    found: OpenConnections[str] = OpenConnections()
    for server, count in counts.items():
        found.joined(server)
        found.said(server, Beat(1, open=count))
    return found


@pytest.mark.parametrize(
    ("counts", "surplus"),
    [
        ({}, None),
        ({"s1": 100}, None),
        ({"s1": 1, "s2": 0}, None),
        ({"s1": 2, "s2": 0}, ("s1", 1)),
        ({"s1": 3, "s2": 2}, None),
        ({"s1": 8, "s2": 0}, ("s1", 4)),
        ({"s1": 0, "s2": 50, "s3": 51}, ("s3", 17)),
        ({"s1": 33, "s2": 34, "s3": 34}, None),
        ({"s1": 104, "s2": 96}, None),
        ({"s1": 113, "s2": 87}, ("s1", 13)),
    ],
)
def test_a_surplus_is_what_the_fullest_has_over_its_share(
    counts: dict[str, int], surplus: tuple[str, int] | None
) -> None:
    assert with_open(counts).surplus(counts) == surplus


def test_servers_that_take_no_connections_have_no_share() -> None:
    assert with_open({"s1": 8, "s2": 0, "leaves": 90}).surplus(["s1", "s2", "unknown"]) == ("s1", 4)


def test_what_goes_from_the_fullest_to_the_emptiest_ends_even() -> None:
    """As a supervisor does it: nothing goes to and fro."""
    first = seed(20261123)
    print(f"COLUMNAR_SEED={first}")
    for number in range(first, first + 200):
        rng = random.Random(number)
        counts = {f"s{n}": rng.randrange(300) for n in range(rng.randrange(2, 9))}
        emptied: set[str] = set()
        while (found := with_open(counts).surplus(counts)) is not None:
            server, over = found
            assert server not in emptied, "its surplus has gone"
            emptied.add(server)
            for _ in range(over):
                counts[server] -= 1
                counts[min(counts, key=counts.__getitem__)] += 1
        share = -(-sum(counts.values()) // len(counts))
        assert max(counts.values()) <= share + max(1, share // TOLERATED_PART)
