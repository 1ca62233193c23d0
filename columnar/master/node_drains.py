"""Drains of whole nodes, at the master: a node is emptied before it stops, and a leader among them gives its place up.

    drain     no server of the node gets a region any more, and the regions that it has leave it, four at a time of a
              server.  The drain ends by ``undrain``, or until a restart: each server's with its next start
    resign    a node that leads gives the leadership up when its servers are empty, if another node can lead.  So its
              end later costs nobody a wait for the next leader.  A node without servers is empty at once

Owned by the loop.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Final

from columnar.errors import CallerError, NotAllowed
from columnar.master import cluster_status_builder as builder
from columnar.master.instructions import DrainNode
from columnar.master.placement_records import ServerState
from columnar.master.process_control import Servers, check_request, wait_for
from columnar.model.cluster_status_records import Change
from columnar.model.owner import Incarnation
from columnar.model.region_info import counted

_log = logging.getLogger(__name__)

NO_NODES: Final = "this store runs on one machine and has no nodes; 'columnar drain SERVER' empties a server"


@dataclass(frozen=True, slots=True)
class _Node:
    name: str  # with its incarnation
    servers: tuple[str, ...]
    leads: bool


class NodeDrains:
    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self._state = servers.state
        self._resigning: asyncio.Task[None] | None = None

    async def drain_node(self, name: str, on: bool, until_restart: bool, wait_s: float, dry_run: bool) -> Change:
        """Keep the servers of a node empty if ``on``; otherwise let them get regions again.

        ``name``: with or without its incarnation.  Returns after ``wait_s`` at the latest, with the number of regions
        that are left on the node, and whether it leads and is about to resign.  Raises CallerError and NotAllowed.
        """
        node = self._find_node(name)
        if not node.servers:
            return self._drain_without_servers(node, on, dry_run)
        request = DrainNode(node.servers, on, self._incarnations(node) if on and until_restart else ())
        check_request(self._servers, request)
        if on:
            self._check_others(node)
        if dry_run:
            left = self._left_on(node)
            text = f"{counted(left)} would leave {node.name}" if on else f"{node.name} would get regions again"
            return Change(text, is_done=False, left=left)
        await self._servers.request(request)
        if not on:
            return Change(f"{node.name} gets regions again")
        is_resigning = node.leads and self._begin_resignation(node)
        await wait_for(self._servers, wait_s, lambda: not self._left_on(node))
        return self._drained(node, until_restart, is_resigning)

    def _drain_without_servers(self, node: _Node, on: bool, dry_run: bool) -> Change:
        """Have the node resign if it leads; nothing else is to be done, and nothing is kept."""
        if dry_run:
            return Change(f"{node.name} has no servers, and only may lead", is_done=False)
        is_resigning = on and node.leads and self._begin_resignation(node)
        text = f"{node.name} has no servers" + (", and leads until another node does" if is_resigning else "")
        return Change(text, is_resigning=is_resigning)

    def _drained(self, node: _Node, until_restart: bool, is_resigning: bool) -> Change:
        left = self._left_on(node)
        text = f"{node.name} is empty until its next start" if until_restart else f"{node.name} is empty, and stays so"
        if left:
            text = f"{counted(left)} left on {node.name}"
        elif is_resigning:
            text = f"{text}, and leads until another node does"
        return Change(text, remarks=tuple(self._state.plans.remarks), left=left, is_resigning=is_resigning)

    def _find_node(self, name: str) -> _Node:
        node_of, living = self._servers.nodes()
        if not living:
            raise NotAllowed(NO_NODES)
        known = dict.fromkeys((*living, *sorted(node_of.values())))
        found = [one for one in known if name in (one, one.rpartition(".")[0])]
        if not found:
            raise CallerError(f"there is no node {name}; there are {', '.join(known)}")
        servers = tuple(sorted(server for server, node in node_of.items() if node in found))
        if not servers and found[0] not in self._servers.nodes_without_servers():
            raise CallerError(f"node {found[0]} has no server yet")
        return _Node(found[0], servers, leads=found[0] == living[0])

    def _incarnations(self, node: _Node) -> tuple[Incarnation, ...]:
        """Return the present incarnations of the servers, after which a drain until a restart ends."""
        servers = self._state.current.servers
        found = ((name, servers[name].incarnation if name in servers else None) for name in node.servers)
        return tuple(Incarnation(name, one.number if one is not None else 0) for name, one in found)

    def _check_others(self, node: _Node) -> None:
        # A server that starts counts: a leader that has just been elected knows servers before they have linked.
        states = (ServerState.STARTING, ServerState.UP)
        others = {one.name for one in self._state.current.servers.values() if one.state in states}
        if not others - self._state.desired.drained - set(node.servers):
            raise NotAllowed(
                f"no other node could take the regions of {node.name}: 'columnar nodes' and 'columnar servers' show "
                "which are up and drained"
            )

    def _left_on(self, node: _Node) -> int:
        servers = self._state.current.servers
        return sum(builder.left_on(self._state, servers[name]) for name in node.servers if name in servers)

    # --- the leadership ------------------------------------------------------------------------------

    def _begin_resignation(self, node: _Node) -> bool:
        """Resign when the node is empty; returns whether another node can lead."""
        if not self._servers.successors():
            return False
        if self._resigning is None or self._resigning.done():
            self._resigning = self._servers.spawn(self._resign_when_empty(node))
        return True

    async def _resign_when_empty(self, node: _Node) -> None:
        def is_drained() -> bool:
            return self._state.desired.operator_settings.drained.issuperset(node.servers)

        await self._servers.until(lambda: not self._left_on(node) or not is_drained())
        successors = self._servers.successors()
        if is_drained() and successors:
            _log.info("node %s is drained, and resigns: %s can lead", node.name, ", ".join(successors))
            await self._servers.resign()
