"""The contract of compare-and-set stores, asked of memory, of etcd and of ZooKeeper, and what clients meet in failures.

etcd and ZooKeeper are real, three processes each on loopback; a test starts them once and asks all of the contract.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from columnar.coordination.cas import CasOutcomeUnknown, CasStore, CasUnavailable, VersionConflict
from columnar.coordination.cas_memory import CasMemory
from tests.support.cas_contract import CONTRACT, Connect
from tests.support.coordination_services import Service, running
from tests.support.deep import seeds

SERVICES = ["etcd", "zookeeper"]
FAILURES = seeds("failures of servers of etcd and ZooKeeper", deep=12, short=3)
BRIEF_S = 0.3  # of a call while servers fail
PATIENT_S = 5.0


@pytest.fixture(scope="module", params=SERVICES)
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Three servers, all of which a test leaves serving; each test has a prefix of its own."""
    with running(request.param, tmp_path_factory.mktemp(request.param), 3) as service:
        yield service


@pytest.fixture(params=SERVICES)
def one_server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Service]:
    with running(request.param, tmp_path) as service:
        yield service


@pytest.mark.parametrize("case", CONTRACT, ids=lambda case: case.__name__)
def test_memory_keeps_the_contract(case: Callable[[Connect], None]) -> None:
    store = CasMemory()
    case(lambda: store)


def test_a_service_keeps_the_contract(service: Service, subtests: pytest.Subtests) -> None:
    for case in CONTRACT:
        clients: list[CasStore] = []

        def connect(prefix: str = case.__name__, made: list[CasStore] = clients) -> CasStore:
            made.append(service.connect(prefix, PATIENT_S))
            return made[-1]

        with subtests.test(case.__name__):
            case(connect)
        for client in clients:
            client.close()


def test_a_write_in_a_failure_takes_effect_once_at_most(service: Service) -> None:
    """Servers are killed and frozen one after the other; the sum lies between what was confirmed and what may be."""
    patient, brief = service.connect("failures", PATIENT_S), service.connect("failures", BRIEF_S)
    patient.create_key("leader/count", b"0")
    rng = random.Random(1)
    confirmed = unsure = 0
    for _ in range(FAILURES):
        server = rng.choice(service.servers)
        is_kill = rng.random() < 0.5
        if is_kill:
            server.kill()
        else:
            server.freeze()
        for _ in range(10):
            outcome = _add(brief)
            confirmed += outcome == "confirmed"
            unsure += outcome == "unsure"
        if is_kill:
            server.start()
        else:
            server.thaw()
        service.wait()
    last = [_add(patient) for _ in range(10)]
    assert "confirmed" in last, "the service is whole again"
    confirmed += last.count("confirmed")
    unsure += last.count("unsure")
    found = patient.read_key("leader/count")
    assert found is not None
    assert confirmed <= int(found.value) <= confirmed + unsure
    patient.close()
    brief.close()


def test_without_a_majority_nothing_is_read_or_confirmed(service: Service) -> None:
    client, patient = service.connect("majority", BRIEF_S), service.connect("majority", PATIENT_S)
    version = patient.create_key("nodes/n1", b"before")
    for server in service.servers[:2]:
        server.freeze()
    for call in (lambda: client.read_key("nodes/n1"), lambda: client.list_keys("nodes")):
        began = time.monotonic()
        with pytest.raises(CasUnavailable):
            call()
        assert time.monotonic() - began < PATIENT_S, "a call ends"
    with pytest.raises((CasUnavailable, CasOutcomeUnknown)):
        client.put_key("nodes/n1", b"after", version)
    for server in service.servers[:2]:
        server.thaw()
    service.wait()
    found = patient.read_key("nodes/n1")
    assert found is not None
    assert (found.value, found.version == version) in ((b"before", True), (b"after", False))
    patient.close()
    client.close()


def test_without_any_server_nothing_was_done(one_server: Service) -> None:
    """A write that no server can have received is not of unknown outcome."""
    one_server.kill()
    client = one_server.connect("p", BRIEF_S)
    with pytest.raises(CasUnavailable):
        client.create_key("nodes/n1", b"")
    with pytest.raises(CasUnavailable):
        client.delete_key("nodes/n1", 1)
    client.close()


def _add(store: CasStore) -> str:
    """Add one to the count, by one write at most."""
    try:
        found = store.read_key("leader/count")
        assert found is not None
        store.put_key("leader/count", b"%d" % (int(found.value) + 1), found.version)
    except (CasUnavailable, VersionConflict):
        return "not done"
    except CasOutcomeUnknown:
        return "unsure"
    return "confirmed"
