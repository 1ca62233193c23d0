"""The contract of every compare-and-set store (``columnar.coordination.cas``), as functions of its clients.

A case gets ``connect``: it makes a client of a store that is empty for this case.  Clients are closed by the caller.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Final

import pytest

from columnar.coordination.cas import VALUE_BYTES, CasStore, Condition, VersionConflict

Connect = Callable[[], CasStore]
WRITERS: Final = 4
ROUNDS: Final = 15
WAIT_S: Final = 30.0


def a_key_is_created_once(connect: Connect) -> None:
    store = connect()
    version = store.create_key("nodes/n1.1", b"first")
    with pytest.raises(VersionConflict) as refused:
        store.create_key("nodes/n1.1", b"second")
    assert refused.value.key == "nodes/n1.1"
    found = store.read_key("nodes/n1.1")
    assert found is not None
    assert (found.value, found.version) == (b"first", version)


def a_put_needs_the_version_that_stands(connect: Connect) -> None:
    store = connect()
    old = store.create_key("nodes/n1", b"0")
    new = store.put_key("nodes/n1", b"1", old)
    for version in (old, new + 1, -1):
        with pytest.raises(VersionConflict):
            store.put_key("nodes/n1", b"2", version)
    found = store.read_key("nodes/n1")
    assert found is not None
    assert (found.value, found.version) == (b"1", new)


def a_put_creates_nothing(connect: Connect) -> None:
    """Check that a put creates no key, also at version 0 or -1, which mean "missing" or "any" in some services."""
    store = connect()
    store.create_key("nodes/other", b"")
    for version in (0, -1, 1, 2):
        with pytest.raises(VersionConflict):
            store.put_key("nodes/n1", b"1", version)
    assert store.read_key("nodes/n1") is None


def each_value_has_a_version_of_its_own(connect: Connect) -> None:
    store = connect()
    versions = [store.create_key("nodes/n1", b"same")]
    for _ in range(10):
        versions.append(store.put_key("nodes/n1", b"same", versions[-1]))
    assert sorted(set(versions)) == versions


def a_deletion_needs_the_version_that_stands(connect: Connect) -> None:
    store = connect()
    old = store.create_key("nodes/n1", b"0")
    new = store.put_key("nodes/n1", b"1", old)
    for version in (old, new + 1, -1):
        with pytest.raises(VersionConflict):
            store.delete_key("nodes/n1", version)
    store.delete_key("nodes/n1", new)
    assert store.read_key("nodes/n1") is None
    with pytest.raises(VersionConflict):
        store.delete_key("nodes/n1", new)


def a_deletion_needs_its_second_condition(connect: Connect) -> None:
    store = connect()
    version = store.create_key("nodes/n1", b"")
    old = store.create_key("leader/leader", b"0")
    new = store.put_key("leader/leader", b"1", old)
    for also in (Condition("leader/leader", old), Condition("leader/leader", -1), Condition("leader/missing", 0)):
        with pytest.raises(VersionConflict):
            store.delete_key("nodes/n1", version, also)
    with pytest.raises(VersionConflict):
        store.delete_key("nodes/n1", version + 1, Condition("leader/leader", new))
    assert store.read_key("nodes/n1") is not None
    store.delete_key("nodes/n1", version, Condition("leader/leader", new))
    assert store.read_key("nodes/n1") is None
    assert store.put_key("leader/leader", b"2", new) != new, "the second key is only looked at"


def a_deleted_key_is_created_anew(connect: Connect) -> None:
    store = connect()
    store.delete_key("nodes/n1", store.create_key("nodes/n1", b"old"))
    version = store.create_key("nodes/n1", b"new")
    found = store.read_key("nodes/n1")
    assert found is not None
    assert (found.value, found.version) == (b"new", version)


def values_are_any_bytes_up_to_the_bound(connect: Connect) -> None:
    store = connect()
    version = store.create_key("nodes/n1", b"")
    for value in (b'\0\xff\n"{}', bytes(range(256)), b"x" * VALUE_BYTES, b""):
        version = store.put_key("nodes/n1", value, version)
        found = store.read_key("nodes/n1")
        assert found is not None
        assert found.value == value
        assert store.list_keys("nodes")["nodes/n1"].value == value


def a_folder_is_listed_alone(connect: Connect) -> None:
    store = connect()
    assert store.list_keys("nodes") == {}
    names = [f"nodes/n{number}" for number in range(20)]
    for key in (*names, "node/n", "nodes0/n", "nodes-a/n", "nodesa/n", "nodes.a/n"):
        store.create_key(key, key.encode())
    found = store.list_keys("nodes")
    assert {key: one.value for key, one in found.items()} == {key: key.encode() for key in names}
    store.delete_key("nodes/n7", found["nodes/n7"].version)
    assert store.list_keys("nodes").keys() == set(names) - {"nodes/n7"}


def a_read_sees_what_another_client_wrote(connect: Connect) -> None:
    writer, reader = connect(), connect()
    version = writer.create_key("nodes/n1", b"")
    for number in range(100):
        version = writer.put_key("nodes/n1", b"%d" % number, version)
        found = reader.read_key("nodes/n1")
        assert found is not None
        assert found.value == b"%d" % number
    while reader.list_keys("nodes")["nodes/n1"].version != version:  # a list may lag
        pass


def of_writers_beside_each_other_none_is_overwritten(connect: Connect) -> None:
    connect().create_key("leader/count", b"0")
    clients = [connect() for _ in range(WRITERS)]
    conflicts: list[VersionConflict] = []

    def write(store: CasStore) -> None:
        for _ in range(ROUNDS):
            while not _is_added(store, conflicts):
                pass

    _beside(write, clients)
    found = connect().read_key("leader/count")
    assert found is not None
    assert found.value == b"%d" % (WRITERS * ROUNDS)


def of_creators_beside_each_other_one_succeeds(connect: Connect) -> None:
    clients = [connect() for _ in range(WRITERS)]
    created: list[tuple[int, int]] = []

    def create(store: CasStore) -> None:
        for number in range(ROUNDS):
            try:
                store.create_key(f"nodes/n{number}", b"%d" % clients.index(store))
            except VersionConflict:
                continue
            created.append((number, clients.index(store)))

    _beside(create, clients)
    found = clients[0].list_keys("nodes")
    assert len(created) == ROUNDS
    assert all(found[f"nodes/n{number}"].value == b"%d" % creator for number, creator in created)


def creators_of_different_keys_do_not_disturb_each_other(connect: Connect) -> None:
    """Also if the folder of the keys is missing, and all of them make it."""
    clients = [connect() for _ in range(WRITERS)]
    together, own = threading.Barrier(WRITERS), itertools.count()

    def create(store: CasStore) -> None:
        name = next(own)
        for number in range(ROUNDS):
            together.wait(WAIT_S)
            store.create_key(f"folder{number}/n{name}", b"")

    _beside(create, clients)
    assert all(len(clients[0].list_keys(f"folder{number}")) == WRITERS for number in range(ROUNDS))


def _is_added(store: CasStore, conflicts: list[VersionConflict]) -> bool:
    found = store.read_key("leader/count")
    assert found is not None
    try:
        store.put_key("leader/count", b"%d" % (int(found.value) + 1), found.version)
    except VersionConflict as error:
        conflicts.append(error)
        return False
    return True


def _beside(work: Callable[[CasStore], None], clients: list[CasStore]) -> None:
    """Run the work of each client in a thread, and raise what a thread raised."""
    raised: list[BaseException] = []

    def run(client: CasStore) -> None:
        try:
            work(client)
        except BaseException as error:  # noqa: BLE001 - raised below, in the test's own thread
            raised.append(error)

    threads = [threading.Thread(target=run, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]


CONTRACT: Final = (
    a_key_is_created_once,
    a_put_needs_the_version_that_stands,
    a_put_creates_nothing,
    each_value_has_a_version_of_its_own,
    a_deletion_needs_the_version_that_stands,
    a_deletion_needs_its_second_condition,
    a_deleted_key_is_created_anew,
    values_are_any_bytes_up_to_the_bound,
    a_folder_is_listed_alone,
    a_read_sees_what_another_client_wrote,
    of_writers_beside_each_other_none_is_overwritten,
    of_creators_beside_each_other_one_succeeds,
    creators_of_different_keys_do_not_disturb_each_other,
)
