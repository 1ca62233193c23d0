"""The master's parts as the handlers of a server that is not the master know them: calls for them go to the master.

    methods of the master      each raises ``ForwardToMaster`` at once (``list_master_methods``)
    reads of the catalogue     as a standalone's; once they reach the catalogue they raise it, too

The client's message is then forwarded unchanged, and nothing was done on this server.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from columnar.errors import ForwardToMaster
from columnar.master.staging import Staging

# ``leading.Leading``, or ``RemoteMaster``: changes, alterations, region_changes, triggers, views, snapshots and cluster
# are the master's own objects, or stand for them; cluster None: there is no other server.
MasterParts: TypeAlias = Any


class _Part:
    def __init__(self, **attributes: Any) -> None:
        """``attributes``: the attributes of the part that this server has itself."""
        self.__dict__.update(attributes)

    def __getattr__(self, name: str) -> Any:
        raise ForwardToMaster(name)


class RemoteMaster:
    def __init__(self, staging: str) -> None:
        """``staging``: the folder, which all servers share: files that a command brings go to the owners of regions."""
        self.changes = self.alterations = self.region_changes = self.triggers = self.views = self.cluster = _Part()
        self.snapshots = _Part(staging=Staging(staging))


def list_master_methods(master: MasterParts, service: int) -> frozenset[str]:
    """The methods that the master alone answers, where it is another process; ``service``: THRIFT1 or THRIFT2."""
    if not isinstance(master, RemoteMaster):
        return frozenset()
    from columnar.cluster.method_routing import (  # a standalone needs not the table of all methods
        METHOD_ROUTES,
        MethodRoute,
    )

    return frozenset(name for name, route in METHOD_ROUTES[service].items() if route is MethodRoute.MASTER)
