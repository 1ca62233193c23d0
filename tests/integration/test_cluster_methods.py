"""Our methods on a cluster over the wire: of a cluster, and of a store that is one process."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from columnar.client import ClusterAdmin
from columnar.client.errors import IllegalArgument, IOError
from tests.support.cluster_store import ClusterStore
from tests.support.serving import Serving


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterStore]:
    made = ClusterStore(tmp_path_factory.mktemp("cluster") / "data")
    yield made
    made.stop()


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    serving = Serving(tmp_path_factory.mktemp("alone") / "data").start()
    serving.connect().admin.create_table("pages", {"text": {}}, splits=[b"m"])
    yield serving
    serving.stop()


# --- a cluster -----------------------------------------------------------------------------------------


def test_every_field_of_a_look_comes_over(store: ClusterStore) -> None:
    admin = ClusterAdmin(store.connect())
    store.serving.do(lambda: store.cluster.rated({b"d": 40.0}))
    status = admin.servers()
    assert [(one.name, one.state, one.incarnation) for one in status.servers] == [(f"s{n}", "up", 1) for n in (1, 2, 3)]
    assert (status.regions, status.unassigned, status.transitions) == (6, 0, 0)
    assert (status.balancer, status.auto_split, status.remarks) == (True, True, ())
    assert (status.servers[1].address, status.servers[1].version) == ("127.0.0.1:40002", "9.9")
    assert (status.servers[1].pid, status.servers[1].connections) == (4702, 2)
    regions = admin.locations(b"pages")
    assert [one.start_key for one in regions] == [b"", b"d", b"h", b"m", b"r", b"w"]
    found = admin.locate(b"pages", b"dog")
    assert found.region == admin.locations(b"pages")[1]
    assert (found.region.reads_per_s, found.region.state, found.region.epoch) == (40.0, "OPEN", 1)
    assert (found.region.host, found.region.port) == ("127.0.0.1", 40_000 + int(found.region.server[1]))
    assert found.server is not None
    assert found.server.name == found.region.server
    assert found.decisions[0].text.endswith(f"goes to {found.region.server}: new")
    assert admin.decisions()[-1].kind == "give"


def test_a_region_is_named_by_its_full_or_encoded_name(store: ClusterStore) -> None:
    admin = ClusterAdmin(store.connect())
    region = admin.locations(b"pages")[3]
    assert admin.move(region.name, dry_run=True) == admin.move(region.encoded_name.encode(), dry_run=True)
    moved = admin.move(region.name).moves[0]
    assert admin.locate(b"pages", b"mouse").region.server == moved.to_server != region.server
    for name, error in ((b"", IllegalArgument), (b"nothing", IOError)):
        with pytest.raises(error):
            admin.move(name)


def test_a_disabled_table_says_so(store: ClusterStore) -> None:
    connection = store.connect()
    connection.disable_table("pages")
    try:
        (said,) = ClusterAdmin(connection).locate(b"pages", b"x").remarks
    finally:
        connection.enable_table("pages")
    assert said == "the table is disabled; 'columnar enable pages' opens it"


def test_only_who_may_ends_a_server(store: ClusterStore) -> None:
    admin = ClusterAdmin(store.connect())
    for work in (admin.stop, admin.restart, admin.fence):
        for dry_run in (True, False):
            with pytest.raises(IOError, match=r"not everybody who reaches this port may do.*--data DIR"):
                work("s1", dry_run=dry_run)
    assert store.cluster.ended == []
    store.serving.do(lambda: store.answer_as(may_end_servers=True))
    try:
        assert admin.restart("s1").text.startswith("s1 is up again as s1.2")
    finally:
        store.serving.do(lambda: store.answer_as(may_end_servers=False))
    assert store.cluster.ended == ["stop s1.1", "start s1"]


def test_wishes(store: ClusterStore) -> None:
    admin = ClusterAdmin(store.connect())
    assert admin.drain("s2", wait_s=30).regions_left == 0
    assert [one.drained for one in admin.servers().servers] == [False, True, False]
    admin.undrain("s2")
    admin.switch("balancer", False)
    assert not admin.servers().balancer
    admin.switch("balancer", True)
    with pytest.raises(IllegalArgument, match="say which server"):
        admin.drain("")


# --- one process ---------------------------------------------------------------------------------------


def test_one_process_shows_itself(alone: Serving) -> None:
    admin = ClusterAdmin(alone.connect())
    (server,) = admin.servers().servers
    assert (server.name, server.state, server.pid) == ("standalone", "up", os.getpid())
    assert server.address == f"127.0.0.1:{alone.store.port}"
    assert server.regions == 2 + len(alone.store.serving.server.tables.all()) - 1
    assert 0 <= server.state_ms < 600_000
    assert [(one.start_key, one.server, one.state) for one in admin.locations(b"pages")] == [
        (b"", "standalone", "OPEN"),
        (b"m", "standalone", "OPEN"),
    ]
    found = admin.locate(b"pages", b"zoo").region
    assert (found.start_key, found.why) == (b"m", "this store is one process: everything is here")
    assert (admin.transitions(), admin.decisions()) == ([], [])


def test_one_process_refuses_what_needs_another_with_the_next_step(alone: Serving) -> None:
    admin = ClusterAdmin(alone.connect())
    region = admin.locations(b"pages")[0].name
    for work in (
        lambda: admin.move(region),
        lambda: admin.drain("standalone"),
        lambda: admin.balance(),
        lambda: admin.switch("balancer", False),
    ):
        with pytest.raises(IOError, match="there is no other server; start it with --servers N"):
            work()
    with pytest.raises(IOError, match="'columnar disable pages' turns requests for its table away"):
        admin.unassign(region)
    assert admin.assign(region).text.endswith("everything is here")


def test_unknown_tables_are_refused_by_both(alone: Serving, store: ClusterStore) -> None:
    for connection in (alone.connect(), store.connect()):
        admin = ClusterAdmin(connection)
        for work in (lambda a=admin: a.locations(b"none"), lambda a=admin: a.locate(b"none", b"r")):
            with pytest.raises(IOError, match="TableNotFoundException: none"):
                work()
