"""The page on which a server says what it has synced, and the pages of a node in its record."""

from __future__ import annotations

import json
import os
from struct import pack_into

from columnar.coordination import server_page
from columnar.coordination.node_record import NodeRecord, encode_record
from columnar.coordination.server_page import ENDED_KEPT, LOGS_BYTES, ServerPage, ServerPages


def page() -> ServerPage:
    made, descriptor = ServerPage.create()
    os.close(descriptor)
    return made


def test_the_parent_reads_what_the_child_wrote() -> None:
    parent, descriptor = ServerPage.create()
    child = ServerPage.open_inherited(os.dup(descriptor))
    os.close(descriptor)
    assert (parent.read_synced(), parent.read_clock_ms()) == ({}, 0)
    child.raise_synced(6, 100)
    child.raise_synced(5, 1 << 40)
    child.raise_clock(1_790_000_000_000)
    assert parent.read_synced() == {5: 1 << 40, 6: 100}
    assert parent.read_clock_ms() == 1_790_000_000_000
    child.raise_synced(5, (1 << 40) + 7)
    child.forget_segments([6, 4])
    assert parent.read_synced() == {5: (1 << 40) + 7}
    child.raise_synced(9, 3)
    child.forget_segments([5])
    assert parent.read_synced() == {9: 3}, "the slot is of a later segment by now"


def test_a_slot_that_is_half_written_counts_as_none() -> None:
    one = page()
    one.raise_synced(5, 100)
    one.raise_clock(1_000)
    for torn in (200, 101):
        pack_into("=Q", one._memory, 24 + 8, torn)
        assert one.read_synced() == {}
    pack_into("=Q", one._memory, 96, 2_000)
    assert one.read_clock_ms() == 0


def test_an_ended_server_is_known_with_its_last_page() -> None:
    pages, one, other = ServerPages(), page(), page()
    pages.add_server("s1.1", one)
    pages.add_server("s2.2", other)
    one.raise_synced(1, 50)
    one.raise_clock(70)
    other.raise_clock(60)
    pages.end_server("s1.1")
    pages.end_server("unknown.9")
    one.raise_synced(1, 99)
    assert pages.synced_lengths("s1.1") == {1: 50}
    assert pages.synced_lengths("s3.3") == {}
    readings = pages.read_pages()
    assert readings.logs == {"s2.2": (), "s1.1": (("00000001", 50),)}
    assert readings.clock_ms == 70, "what an ended server gave counts"


def test_a_server_that_ended_without_a_log_is_named_for_a_while() -> None:
    """As after each stop in order: the names would fill the records, and are needed until all nodes have read them."""
    now_s = 0.0
    pages, one, other = ServerPages(lambda: now_s), page(), page()
    pages.add_server("s1.1", one)
    pages.add_server("s2.2", other)
    one.raise_synced(1, 50)
    one.forget_segments([1])
    one.raise_clock(70)
    other.raise_synced(4, 9)
    pages.end_server("s1.1")
    pages.end_server("s2.2")
    now_s = server_page.EMPTY_NAMED_S - 1
    assert pages.read_pages().logs == {"s2.2": (("00000004", 9),), "s1.1": ()}, "an earlier length counts no more"
    now_s = server_page.EMPTY_NAMED_S
    assert pages.read_pages().logs == {"s2.2": (("00000004", 9),)}, "its log may have to be sealed at any time"
    assert pages.read_pages().clock_ms == 70


def test_servers_without_logs_are_bounded_too() -> None:
    pages = ServerPages(lambda: 0.0)
    for number in range(2 * ENDED_KEPT):
        pages.add_server(f"s{number}", page())
        pages.end_server(f"s{number}")
    assert len(pages._ended) == len(pages._emptied_s) == ENDED_KEPT


def test_a_record_is_bounded_and_has_the_living_servers_first() -> None:
    pages = ServerPages()
    for number in range(1_000):
        one = page()
        for segment in range(server_page.SLOTS):
            one.raise_synced(1_000_000 + segment, 1 << 34)
        pages.add_server(f"a-machine-with-a-name-s16.{number}", one)
        if number < 990:
            pages.end_server(f"a-machine-with-a-name-s16.{number}")
    logs = pages.read_pages().logs
    assert list(logs)[:10] == [f"a-machine-with-a-name-s16.{number}" for number in range(990, 1_000)]
    assert list(logs)[10] == "a-machine-with-a-name-s16.989", "then those that ended last"
    record = json.loads(encode_record(NodeRecord("", "n", 1, "", logs=logs)))
    assert LOGS_BYTES * 0.8 < len(json.dumps(record["logs"], separators=(",", ":"))) <= LOGS_BYTES
    assert len(pages._ended) == ENDED_KEPT
