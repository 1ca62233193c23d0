"""Folders that a version without nodes wrote and whose store was killed: nodes serve them, and one process again."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from columnar.cli import main
from tests.support.cluster_process import ClusterProcess
from tests.support.many_nodes import many_nodes
from tests.support.older_folder import KINDS, TABLE, contents, found, unpack


@pytest.mark.parametrize("kind", KINDS)
def test_nodes_have_all_rows_and_one_process_has_them_afterwards(kind: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    unpack(kind, data)
    older = int((data / "FORMAT").read_text().split()[1])
    assert older in (6, 7)
    with many_nodes(tmp_path) as cluster:
        assert (data / "FORMAT").read_text() == "columnar-data 9\n"
        for number, node in enumerate(cluster.nodes):
            connection = node.connection()
            assert found(connection) == contents()
            connection.table(TABLE).put(b"new%d" % number, {b"f:other": b"of a node"})
            connection.close()
    (data / "CLUSTER").unlink()
    with ClusterProcess(data, KINDS[kind]) as store:
        assert (data / "FORMAT").read_text() == "columnar-data 8\n", "the version that wrote it knows it"
        connection = store.connection()
        assert found(connection) == contents()
        assert [row for row, _ in connection.table(TABLE).scan(row_start=b"new")] == [b"new0", b"new1", b"new2"]
        connection.close()
        store.stop()
    checked = CliRunner().invoke(main, ["check", "--data", str(data)])
    assert checked.exit_code == 0, checked.output
