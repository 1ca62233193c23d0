"""Fences of whole nodes by operators, at the master: a person's word that a machine is off.

    a node that lives     its lease is ended, as the law of leases has it: never sooner than its servers stop answering
    a node that ended     its regions wait for a fence at the file system that fails, or that does not come to an end

From the word on the node counts as shut out of the data folder, so other owners get its regions.  If the word is wrong,
nothing acknowledged is lost: each next owner writes to a new folder of the region.

Owned by the loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from columnar.errors import CallerError, NotAllowed
from columnar.master.placement_records import Server, ServerState
from columnar.master.process_control import Servers, wait_for
from columnar.model.cluster_status_records import Change
from columnar.model.owner import Incarnation, incarnation_of
from columnar.model.region_info import counted

OVER_S: Final = 60.0  # until the lease is over and the next owners are named
MEANING: Final = "its machine must be off, or cut from the data folder"


class NodeFences:
    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self._state = servers.state

    def list_nodes(self) -> list[Incarnation]:
        """Return the nodes that may be fenced; those that wait for a fence come first."""
        return list(dict.fromkeys((*self._servers.unfenced_nodes(), *self._living())))

    def _living(self) -> tuple[Incarnation, ...]:
        _, living = self._servers.nodes()
        return tuple(map(incarnation_of, living))

    async def fence_node(self, name: str, dry_run: bool) -> Change:
        """Count the node as off; return when other owners may have its regions.

        ``name``: with or without its incarnation.  Raises NotAllowed if the node leads, CallerError if there is none.
        """
        node, living = self._find_node(name), self._living()
        if living[0] == node:
            raise NotAllowed(
                f"{node} leads, and answers this call, so its machine is not off. 'columnar drain --node {node.name}' "
                "lets another node lead; if it hangs, end its process with 'kill -9': another node leads then"
            )
        regions = sum(len(server.regions) for server in self._servers_of(node))
        going = f"{counted(regions)} for other owners"
        if dry_run:
            lease = "its lease would end" if node in living else "its lease is over"
            return Change(f"{node} would count as off: {MEANING}; {lease}, {going}", is_done=False)
        self._servers.fence_node(node)
        if await wait_for(self._servers, OVER_S, lambda: self._is_over(node)):
            return Change(f"{node} counts as off; {going}")
        return Change(f"{node} counts as off, and is not over yet; 'columnar servers' says why", is_done=False)

    def _find_node(self, name: str) -> Incarnation:
        known = self.list_nodes()
        found = next((node for node in known if name in (node.name, str(node))), None)
        if found is None:
            names = ", ".join(map(str, known))
            raise CallerError(
                f"there is no server {name}, and no node that lives or waits for a fence; nodes are {names}"
            )
        return found

    def _is_over(self, node: Incarnation) -> bool:
        if node in self._living() or node in self._servers.unfenced_nodes():
            return False
        return not any(server.state is ServerState.FENCING for server in self._servers_of(node))

    def _servers_of(self, node: Incarnation) -> Iterator[Server]:
        node_of, _ = self._servers.nodes()
        servers = self._state.current.servers
        return (servers[name] for name, owner in node_of.items() if owner == str(node) and name in servers)
