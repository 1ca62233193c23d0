"""A store whose port answers for a cluster: tables and rows of one process, servers of a planned cluster.

The regions of its tables are those of the cluster, so commands and pages find both by the same names.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from columnar.client import Connection
from columnar.cluster.row_forms import THRIFT1
from columnar.thrift.cluster_methods import ClusterMethods
from tests.support.operated_cluster import OperatedCluster
from tests.support.serving import Serving

SPLITS = [b"d", b"h", b"m", b"r", b"w"]


class ClusterStore:
    """The store.  Owned by the test's thread; the cluster is used on the store's loop alone."""

    def __init__(self, folder: Path, servers: int = 3, **settings: Any) -> None:
        self.serving = Serving(folder, **settings).start()
        connection = self.connect()
        connection.admin.create_table("pages", {"text": {}}, splits=SPLITS)
        self.serving.do(lambda: self._make(servers))

    def _make(self, servers: int) -> None:
        self.doors = self.serving.store.ports
        descriptions = self.serving.store.serving.operations.descriptions
        infos = [info for served in descriptions.of_users() for info in served.regions]
        self.cluster = OperatedCluster(infos, servers)
        self.answer_as(may_end_servers=False)

    def answer_as(self, *, may_end_servers: bool) -> None:
        """Answer calls as to a client that may end servers, or may not; runs on the loop."""
        descriptions = self.serving.store.serving.operations.descriptions
        methods = ClusterMethods(descriptions, self.cluster.control, may_end_servers=may_end_servers)
        for name in dir(methods):
            if name.startswith("columnar"):
                self.doors.services[THRIFT1].handlers[name] = getattr(methods, name)  # type: ignore[index]

    def connect(self) -> Connection:
        return self.serving.connect()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.serving.store.port}"

    def stop(self) -> None:
        self.serving.stop()
