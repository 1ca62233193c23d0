"""The master's parts, as the handlers of a region server use them: the master's own objects, or stand-ins."""

from __future__ import annotations

from typing import Any, TypeAlias

from columnar.errors import ForwardToMaster
from columnar.master.staging import Staging

# ``leading.Leading`` or ``RemoteMaster``.  Its changes, alterations, region_changes, triggers, views, snapshots and
# cluster are the master's own objects, or stand for them; cluster is None if there is no other server.
MasterParts: TypeAlias = Any


class _Part:
    def __init__(self, **attributes: Any) -> None:
        """Pass the attributes of the part that this server has itself."""
        self.__dict__.update(attributes)

    def __getattr__(self, name: str) -> Any:
        raise ForwardToMaster(name)


class RemoteMaster:
    """Stands in for the master's parts in the handlers of a region server, and sends calls for them to the master.

        methods of the master      each immediately raises ``ForwardToMaster`` (``list_master_methods``)
        reads of the catalogue     run as in a standalone process, and raise ``ForwardToMaster`` when they reach the
        catalogue

    The client's message is then forwarded unchanged; this server has done nothing for it.
    """

    def __init__(self, staging: str) -> None:
        """Pass the staging folder, which all servers share, so that owners of regions can take files of a command."""
        self.changes = _Part(feeds=_Part())
        self.alterations = self.region_changes = self.triggers = self.views = self.cluster = _Part()
        self.view_generations = self.rights = _Part()
        self.snapshots = _Part(staged=_Part(staging=Staging(staging)))


def list_master_methods(master: MasterParts, service: int) -> frozenset[str]:
    """Return the methods of ``service`` (THRIFT1 or THRIFT2) that go to a remote master; none if it is local."""
    if not isinstance(master, RemoteMaster):
        return frozenset()
    from columnar.cluster.method_routing import (  # a standalone server does not need the table of all methods
        METHOD_ROUTES,
        MethodRoute,
    )

    return frozenset(name for name, route in METHOD_ROUTES[service].items() if route is MethodRoute.MASTER)
