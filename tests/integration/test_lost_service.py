"""A coordination service that has lost its data: nodes end, and nobody serves the folder until a person says so."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.support.many_nodes import WAIT_S, many_nodes, until

ENDED = 4


def test_a_service_that_lost_its_data_is_adopted_only_by_a_person(tmp_path: Path) -> None:
    """An empty etcd at the same address might as well be another machine's localhost."""
    with many_nodes(tmp_path, "--folder-unprobed", count=2) as cluster:
        connection = cluster.nodes[0].connection()
        connection.create_table("t", {"f": {}})
        connection.table("t").put(b"a", {b"f:q": b"1"})
        connection.close()
        cluster.service.kill()
        for folder in tmp_path.glob("e[0-9]"):
            shutil.rmtree(folder)
        cluster.service.start()
        for node in cluster.nodes:
            assert node.has_ended(WAIT_S), "its record is missing"
            assert node.status == ENDED
            node.kill()
        one = cluster.nodes[0]
        one.begin()
        assert one.has_ended(WAIT_S)
        assert one.status == 2
        log = one.log.read_text()
        assert f"columnar: {cluster.coordination} knows nothing of this data folder" in log
        assert "stop every node, then remove the file CLUSTER in the data folder" in log
        with cluster.client() as store:
            assert store.list_keys("nodes") == {}, "nobody has a lease"  # type: ignore[attr-defined]
        one.kill()
        (cluster.data / "CLUSTER").unlink()
        cluster.start()
        connection = cluster.nodes[1].connection()
        assert connection.table("t").row(b"a") == {b"f:q": b"1"}
        connection.close()


def test_a_service_of_one_folder_refuses_another(tmp_path: Path) -> None:
    with many_nodes(tmp_path, "--folder-unprobed", count=1) as cluster:
        words = [*cluster.nodes[0]._command, "--data", str(tmp_path / "other"), "--name", "n9"]
        words += ["--port", "0", "--peer-port", "0", "--web-port", "-1"]
        refused = subprocess.run(words, capture_output=True, text=True, timeout=WAIT_S)
        assert refused.returncode == 2
        assert f"has the records of the cluster {(cluster.data / 'cluster-id').read_text().strip()}" in refused.stderr
        assert f"{tmp_path / 'other'} has no store: is the shared folder mounted there" in refused.stderr
        assert not (tmp_path / "other").exists(), "a second store on the disk of a machine whose mount is missing"
        assert "give each cluster a name of its own at the end of --coordination" in refused.stderr
        until(lambda: cluster.nodes[0].lives)
