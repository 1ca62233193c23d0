"""Random sessions: against a real HBase where COLUMNAR_TEST_HBASE=HOST:PORT names one, else our own doors.

docs/differential.md says how to run the long ones, and what is left out of them.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.differential.answers import Answer
from tests.differential.calls import Call, from_text, to_text
from tests.differential.comparison import compare
from tests.differential.documented import EVERY
from tests.differential.endpoint import Endpoint
from tests.differential.generator import Generator
from tests.differential.shrinking import of_one_table
from tests.support.many_nodes import PATIENT, many_nodes
from tests.support.standalone_store import StoreProcess

GATEWAY = os.environ.get("COLUMNAR_TEST_HBASE", "")
ROOT = Path(__file__).parents[2]


def test_both_protocols_and_framings_answer_alike(tmp_path: Path) -> None:
    seed = 11
    print(f"seed {seed}")
    with StoreProcess(tmp_path / "a") as one, StoreProcess(tmp_path / "b") as other:
        plain = Endpoint.at(f"127.0.0.1:{one.port}", b"d_")
        dressed = Endpoint.at(f"127.0.0.1:{other.port}/framed/compact", b"d_")
        found = compare(Generator(seed, b"d_").calls(800), plain, dressed, strict=True)
        plain.close()
        dressed.close()
    assert not found.differences, "\n".join(map(str, found.differences))
    assert min(found.calls.values()) > 0


def test_three_nodes_answer_as_one_process(tmp_path: Path) -> None:
    """One session through each node; one of the three leads."""
    with StoreProcess(tmp_path / "alone") as alone, many_nodes(tmp_path, *PATIENT) as cluster:
        for seed, node in enumerate(cluster.nodes, 13):
            prefix = b"%s_" % node.name.encode()
            both = [Endpoint.at(f"127.0.0.1:{port}", prefix) for port in (alone.port, node.port)]
            found = compare(Generator(seed, prefix).calls(100), both[0], both[1], strict=True)
            for one in both:
                one.close()
            assert not found.differences, f"seed {seed}\n" + "\n".join(map(str, found.differences))
            assert found.calls.total() >= 100


@pytest.mark.skipif(not GATEWAY, reason="COLUMNAR_TEST_HBASE names no HBase gateway: nothing was compared with one")
@pytest.mark.timeout(600)  # a table takes HBase a second
def test_as_a_real_hbase(tmp_path: Path) -> None:
    seed, prefix = 12, b"dft_"
    print(f"seed {seed}")
    with StoreProcess(tmp_path / "data") as store:
        hbase, ours = Endpoint.at(GATEWAY, prefix), Endpoint.at(f"127.0.0.1:{store.port}", prefix)
        hbase.drop_tables(prefix)
        try:
            found = compare(Generator(seed, prefix).calls(2000), hbase, ours)
        finally:
            hbase.drop_tables(prefix)
            hbase.close()
            ours.close()
    assert not found.differences, "\n".join(map(str, found.differences))


def test_a_session_is_the_same_from_the_same_seed_and_from_its_text() -> None:
    calls = list(Generator(5, b"d_").calls(3000))
    assert calls == list(Generator(5, b"d_").calls(3000))
    assert [from_text(to_text(call)) for call in calls] == calls


def test_a_difference_is_found_and_led_back_to_its_table() -> None:
    calls = list(Generator(5, b"d_").calls(3000))
    wrong = next(n for n, call in enumerate(calls) if n > 2000 and call.method == "getRow")

    class Server:
        def __init__(self, mistaken: bool) -> None:
            self.mistaken = mistaken
            self.asked = -1

        def run(self, call: Call) -> Answer:
            self.asked += 1
            return ["ok", [] if self.asked == wrong and self.mistaken else None]

    found = compare(calls, Server(False), Server(True))
    assert [one.number for one in found.differences] == [wrong]
    fewer = of_one_table(calls[: wrong + 1])
    assert fewer[-1] == calls[wrong]
    assert fewer[0].method == "createTable"
    assert {call.table for call in fewer} == {calls[wrong].table}
    assert len(fewer) < wrong / 2


def test_every_documented_difference_has_its_paragraph() -> None:
    page = (ROOT / "COMPATIBILITY.md").read_text()
    assert [name for name in EVERY if f'<a id="{name}"></a>' not in page] == []
