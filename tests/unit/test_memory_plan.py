"""The split of a store's memory: it never exceeds what was ordered, and no part is useless."""

from __future__ import annotations

import pytest

from columnar import limits
from columnar.errors import HostError
from columnar.limits import MIB
from columnar.memory_plan import (
    ALONE,
    CACHES,
    GIB,
    LEAST_CACHE_BYTES,
    LEAST_MESSAGE_BYTES,
    NODE_BYTES,
    PROCESS_BYTES,
    WORKER_BYTES,
    least_bytes,
    ordinary,
    parse_bytes,
    planned,
    readable_bytes,
)

SERVERS = (ALONE, 1, 2, 3, 8, 64)
SIZES = [*range(200, 2_048, 7), *range(2_048, 65_536, 511), 1 << 20]  # MiB


@pytest.mark.parametrize("servers", SERVERS)
@pytest.mark.parametrize("has_triggers", [False, True])
def test_all_parts_of_all_processes_are_what_was_ordered(servers: int, has_triggers: bool) -> None:
    least, before = least_bytes(servers, has_triggers=has_triggers), 0
    for size in [least, *(one * MIB for one in SIZES if one * MIB > least)]:
        plan = planned(size, servers, has_triggers=has_triggers)
        each = sum(plan.bounds.values()) + PROCESS_BYTES + WORKER_BYTES * has_triggers
        whole = each * max(1, servers) + NODE_BYTES * (servers > 0)
        assert size - max(1, servers) <= whole <= size
        peers = {name for name, bound in plan.bounds.items() if bound == 0}
        assert peers == ({"peer_calls", "peer_replies"} if servers == ALONE else set()), "a bound of 0 refuses all"
        assert plan.block_cache >= LEAST_CACHE_BYTES
        assert plan.block_cache >= before, "more memory is a larger cache"
        assert plan.message_bytes >= LEAST_MESSAGE_BYTES > limits.CELL_BYTES, "the largest cell can be written"
        assert 1 <= plan.open_regions <= limits.OPEN_REGIONS
        before = plan.block_cache


@pytest.mark.parametrize("servers", SERVERS)
def test_no_buffer_exceeds_its_bound_and_a_large_store_gives_nearly_all_to_its_caches(servers: int) -> None:
    plan = planned(max(1, servers) * 64 * GIB, servers)
    assert (plan.requests, plan.replies) == (limits.SERVER_INPUT_BYTES, limits.SERVER_OUTPUT_BYTES)
    assert plan.gathered == limits.GATHERED_BYTES
    assert plan.message_bytes == limits.MESSAGE_BYTES
    assert plan.open_regions == limits.OPEN_REGIONS
    assert sum(plan.bounds[name] for name in CACHES) > 0.9 * 64 * GIB


@pytest.mark.parametrize("servers", SERVERS)
def test_less_than_the_least_is_refused_with_the_least(servers: int) -> None:
    least = least_bytes(servers)
    planned(least, servers)
    with pytest.raises(HostError, match=f"at least {readable_bytes(least)} are needed"):
        planned(least - MIB, servers)


@pytest.mark.parametrize("servers", SERVERS)
@pytest.mark.parametrize("size", [0, 64 * MIB, 300 * MIB, GIB, 6 * GIB, 64 * GIB])
def test_without_an_order_only_caches_grow_and_nothing_shrinks(servers: int, size: int) -> None:
    plan, usual = planned(size, servers, is_ordered=False), ordinary(servers)
    for name, most in plan.bounds.items():
        assert most >= usual.bounds[name]
        assert name in CACHES or most == usual.bounds[name]
    if size >= 6 * GIB and servers <= 1:
        assert plan.block_cache > GIB


def test_one_process_without_an_order_has_the_bounds_of_limits() -> None:
    plan = ordinary()
    assert (plan.requests, plan.replies, plan.gathered) == (256 * MIB, 256 * MIB, 64 * MIB)
    assert (plan.message_bytes, plan.scanners, plan.open_regions) == (64 * MIB, 64 * MIB, 2_000)
    assert (plan.tails_bytes, plan.at_hand_bytes) == (64 * MIB, 64 * MIB)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("2GiB", 2 * GIB),
        ("512MiB", 512 * MIB),
        ("512 mib", 512 * MIB),
        ("1.5g", 3 * GIB // 2),
        ("4G", 4 * GIB),
        ("1000000000", 10**9),
        ("1_000_000_000", 10**9),
        ("3 GB", 3 * 10**9),
        ("1tib", 1024 * GIB),
    ],
)
def test_amounts(text: str, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "GiB", "-1GiB", "0", "0.5", "0.9b", "2 GiBs", "nan", "inf", "1e30", "10%"])
def test_other_texts_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="write for example 512MiB or 2GiB"):
        parse_bytes(text)


def test_sizes_are_readable_and_can_be_written_again() -> None:
    assert [readable_bytes(size) for size in (100, 1_536, 205 * MIB, GIB, 3 * GIB // 2)] == [
        "100 bytes", "1.5KiB", "205MiB", "1GiB", "1.5GiB",
    ]  # fmt: skip
    assert parse_bytes(readable_bytes(205 * MIB)) == 205 * MIB
