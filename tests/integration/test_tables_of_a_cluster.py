"""Snapshots, files and backups of tables whose regions are at all servers, by commands at any of them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from columnar.client import Connection, Source, View
from columnar.client.cluster import ClusterAdmin
from tests.support.cluster_process import ClusterProcess
from tests.support.deep import cases
from tests.support.many_nodes import CLUSTERS, NodesCluster, cluster_of
from tests.support.shell import Shell
from tests.support.standalone_store import ENVIRONMENT, StoreProcess, dump_of

COUNT = 3
ROWS = [b"%02d" % number for number in range(100)]
SPLITS = [b"%d" % number for number in range(1, 10)]
WAIT_MS = 60_000


@pytest.fixture(scope="module", params=cases("tables of nodes and of servers", deep=CLUSTERS, short=CLUSTERS[1:]))
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClusterProcess | NodesCluster]:
    with cluster_of(request.param, tmp_path_factory.mktemp("tables") / "data", COUNT) as store:
        yield store


@pytest.fixture
def shells(cluster: ClusterProcess | NodesCluster) -> Iterator[list[Shell]]:
    """Commands at each node; tables, views and snapshots are dropped afterwards."""
    ports = cluster.ports() if isinstance(cluster, NodesCluster) else [cluster.port] * COUNT
    yield [Shell(f"127.0.0.1:{port}") for port in ports]
    with closing(cluster.connection()) as connection:
        for snapshot in connection.snapshots.list_snapshots():
            connection.snapshots.delete_snapshot(snapshot.name)
        for view in connection.views.list():
            connection.views.drop(view.table)
    cluster.drop_all()


def fill(connection: Connection, name: str, value: bytes) -> None:
    with connection.table(name).batch() as batch:
        for row in ROWS:
            batch.put(row, {b"f:q": value, b"f:row": row})


def make(connection: Connection, name: str) -> None:
    """Make a table with regions at all servers."""
    connection.create_table(name, {"f": {"max_versions": 3}}, splits=SPLITS)
    assert len({one.server for one in ClusterAdmin(connection).locations(name.encode())}) == COUNT


def test_a_snapshot_is_taken_at_one_cloned_at_another_and_restored_at_a_third(
    cluster: ClusterProcess | NodesCluster, shells: list[Shell]
) -> None:
    with closing(cluster.connection()) as connection:
        make(connection, "t")
        fill(connection, "t", b"first")
        then = dump_of(cluster.connection(), b"t")[b"t"]
        assert shells[0].json("snapshot", "take", "s1", "t")["regions"] == len(SPLITS) + 1
        fill(connection, "t", b"second")
        shells[1].out("snapshot", "clone", "s1", "copy")
        assert dump_of(cluster.connection(), b"copy")[b"copy"] == then
        assert len({one.server for one in ClusterAdmin(connection).locations(b"copy")}) == COUNT
        fill(connection, "copy", b"its own")
        assert connection.table("t").row(ROWS[0])[b"f:q"] == b"second"
        shells[2].out("snapshot", "restore", "s1", "--yes")
        assert dump_of(cluster.connection(), b"t")[b"t"] == then
        assert connection.table("copy").row(ROWS[0])[b"f:q"] == b"its own"


def test_files_are_loaded_into_regions_of_all_servers_and_a_view_counts_them(
    cluster: ClusterProcess | NodesCluster, shells: list[Shell], tmp_path: Path
) -> None:
    first, later = (cells_file(tmp_path, value, at) for value, at in ((b"first", 1), (b"later", 2)))
    with closing(cluster.connection()) as connection:
        make(connection, "loaded")
        done = shells[0].json("bulk-load", "loaded", first)
        assert (done["cells"], done["ingested_regions"], done["written_regions"]) == (len(ROWS), len(SPLITS) + 1, 0)
        assert [(row, cells[b"f:q"]) for row, cells in connection.table("loaded").scan()] == [
            (r, b"first") for r in ROWS
        ]
        again = shells[1].json("bulk-load", "loaded", later)
        assert (again["ingested_regions"], again["written_regions"]) == (0, len(SPLITS) + 1), "rows are there already"
        assert [(row, cells[b"f:q"]) for row, cells in connection.table("loaded").scan()] == [
            (r, b"later") for r in ROWS
        ]
        connection.views.add(View("by_value", Source("loaded", key=("f:q",))))
        while not any(one.state == "live" for one in connection.views.list()):
            assert connection.views.wait("by_value", timeout_ms=WAIT_MS)
        shells[2].json("bulk-load", "loaded", cells_file(tmp_path, b"last", 3))
        assert connection.views.wait("by_value", timeout_ms=WAIT_MS)
        assert [(one.key, one.count) for one in connection.view("by_value").groups()] == [(b"last", len(ROWS))]


def cells_file(folder: Path, value: bytes, timestamp: int) -> str:
    path = folder / f"{timestamp}.tsv"
    path.write_bytes(b"".join(b"%s\tf:q\t%s\t%d\n" % (row, value, timestamp) for row in ROWS))
    return str(path)


def test_an_exported_table_is_imported_with_the_same_digest(
    cluster: ClusterProcess | NodesCluster, shells: list[Shell], tmp_path: Path
) -> None:
    with closing(cluster.connection()) as connection:
        make(connection, "t")
        for value in (b"first", b"second"):
            fill(connection, "t", value)
    exported = shells[0].json("export", "t", str(tmp_path / "export"))
    shells[1].out("import", str(tmp_path / "export"), "again")
    assert shells[2].json("digest", "again")["digest"] == exported["digest"]
    assert shells[0].json("digest", "t")["digest"] == exported["digest"]


def test_a_backup_of_all_servers_is_served_by_one_process(
    cluster: ClusterProcess | NodesCluster, shells: list[Shell], tmp_path: Path
) -> None:
    with closing(cluster.connection()) as connection:
        make(connection, "t")
        fill(connection, "t", b"first")
    then = dump_of(cluster.connection(), b"t")
    backups, restored = str(tmp_path / "backups"), tmp_path / "restored"
    shells[1].out("backup", backups)
    shells[0].out("check")
    shells[2].out("restore-backup", backups, "--data", str(restored))
    checked = subprocess.run(
        [sys.executable, "-m", "columnar", "check", "--data", str(restored)],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    with StoreProcess(restored) as alone:
        assert dump_of(alone.connection(), b"t") == then
