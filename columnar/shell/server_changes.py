"""Restarts and stops of servers, followed to their end, even if the server that answers the command is itself stopped.

The server answers when the change begins, and closes the connection when it leaves.  Then the command polls the store
over new connections until the change is over:

    begun --polls--> over: the servers are as requested, or the change has failed
                     given up: a leader that ended meanwhile has left the change half done, so it is requested again
                     no answer for SILENT_S, or not over after LONGEST_S: the change continues, and the command ends

A request whose answer was lost, because a leader or a server has ended, is followed in the same way.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import click
from thriftpy2.protocol.cybin import ProtocolError
from thriftpy2.transport import TTransportException

from columnar.client import ClusterAdmin, Connection
from columnar.client.cluster import ClusterChange, ClusterStatus, ServerStatus
from columnar.client.errors import IOError, hbase_class
from columnar.model.cluster_status_records import BEING_CHANGED, CHANGE_FAILED
from columnar.shell.connecting import Refused, Server
from columnar.shell.private_connection import LONGEST_S

POLL_S: Final = 0.5  # between two polls
SILENT_S: Final = 60.0  # the other servers answer all the while: if none does, the address is not theirs
_LOST: Final = (TTransportException, ProtocolError, OSError, EOFError)  # the connection of a call, with its answer
_AT_LEADER: Final = ("NotServingRegionException", "MasterNotRunningException", "CallTimeoutException")  # that ended


def order_servers(found: ClusterStatus, node: str = "") -> list[str]:
    """Return the servers that are up, in the order of a rolling restart: node by node, the leader's node last.

    ``node``: of this node alone, named with or without its incarnation.  Raises Refused if it has none.
    """
    leader = found.living_nodes[0] if found.living_nodes else ""
    nodes = {one.name: found.nodes.get(one.name, "") for one in found.servers if one.state == "up"}
    if not node:
        return sorted(nodes, key=lambda name: (nodes[name] == leader, nodes[name], name))
    if not leader:
        raise Refused("this store runs on one machine and has no nodes: 'columnar restart SERVER' restarts a server")
    if not any(node in _names_of(one) for one in (*found.living_nodes, *found.nodes.values())):
        raise Refused(f"there is no node {node}; there are {', '.join(found.living_nodes)}")
    names = sorted(name for name, one in nodes.items() if node in _names_of(one))
    if not names:
        raise Refused(f"node {node} has no server that is up; 'columnar servers' shows them")
    return names


def _names_of(node: str) -> tuple[str, str]:
    return node, node.rpartition(".")[0]


class ServerChanges:
    """The changes of servers that one command makes; closed with the command."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._has_ended = False  # the command's own connection
        self._own: Connection | None = None  # in its place

    def close(self) -> None:
        own, self._own = self._own, None
        if own is not None:
            own.close()

    @property
    def admin(self) -> ClusterAdmin:
        if self._has_ended and self._own is None:
            self._own = self._server.patient(LONGEST_S)
        return ClusterAdmin(self._own or self._server.connection)

    def restart(self, name: str) -> ClusterChange:
        before = self._incarnation(name)

        def is_restarted(found: ServerStatus) -> bool:
            return found.state == "up" and found.incarnation > before

        found = self._to_its_end(name, lambda: self.admin.restart(name), is_restarted, "restarted")
        if isinstance(found, ClusterChange):
            return found
        return ClusterChange(f"{name} is up again as {name}.{found.incarnation}", True, (), (), 0)

    def stop(self, name: str) -> ClusterChange:
        found = self._to_its_end(name, lambda: self.admin.stop(name), lambda found: found.state == "down", "stopped")
        if isinstance(found, ClusterChange):
            return found
        who = f"{name}.{found.incarnation}" if found.incarnation else name
        text = f"{who} has stopped; 'columnar restart {name}' starts it again"
        return ClusterChange(text, True, (), (), 0)

    def _incarnation(self, name: str) -> int:
        """Return the number of the server's last start; 0: it was never started, or there is no such server."""
        try:
            found = self.admin.servers()
        except (*_LOST, IOError) as error:
            if _is_refusal(error):
                raise
            return self._when_over(name, f"{name} is to be changed").incarnation
        return max((one.incarnation for one in found.servers if one.name == name), default=0)

    def _to_its_end(
        self,
        name: str,
        request: Callable[[], ClusterChange],
        is_as_requested: Callable[[ServerStatus], bool],
        done: str,
    ) -> ClusterChange | ServerStatus:
        """Request a change until it was carried out; return its answer, or the server's status if that was lost.

        Raises Refused, and the error of a request that is refused.
        """
        begun_s = time.monotonic()
        patient_s = begun_s  # until then a refusal is followed, too
        while True:
            try:
                change = request()
                text = change.text
                if change.done:
                    return change
            except (*_LOST, IOError) as error:
                # A leader that has just been elected may refuse what it does in a moment, when all nodes are linked.
                now_s = time.monotonic()
                if not _is_refusal(error):
                    patient_s = now_s + SILENT_S
                elif now_s >= patient_s:
                    raise
                text = f"{name} is to be {done}, and the answer was lost"
            found = self._when_over(name, text)
            if is_as_requested(found):
                return found
            # A leader that ended left the change as it was then.  A failure is noted by the leader that met it.
            if _failure(found) or time.monotonic() - begun_s > LONGEST_S:
                raise _failed(f"{name} was not {done}", found)
            time.sleep(POLL_S)

    def _when_over(self, name: str, text: str) -> ServerStatus:
        """Wait until no change of the server is under way; return its status."""
        self.close()
        self._has_ended = True
        self._say(text)
        begun_s = heard_s = time.monotonic()
        last = ""
        while True:
            found, now_s = self._read_status(name), time.monotonic()
            if found is not None:
                heard_s = now_s
                if BEING_CHANGED not in found.notes and (found.state in ("up", "down") or _failure(found)):
                    self.close()  # later answers may take longer than polls
                    return found
                said = f"{name} is {found.state}, with {found.regions} regions and {found.connections} clients"
                if said != last:
                    self._say(said)
                last = said
            if now_s - heard_s > SILENT_S:
                where = f"nobody has answered at {self._server.address} for {SILENT_S:g} s"
                raise Refused(f"{text}, and {where}; it goes on: ask another server, by 'columnar servers'")
            if now_s - begun_s > LONGEST_S:
                raise Refused(f"{text}, and is not over after {LONGEST_S:g} s; the log of the store says why")
            time.sleep(POLL_S)

    def _read_status(self, name: str) -> ServerStatus | None:
        """Return the server's status, or None if no server answers at the moment, or a new leader does not know it."""
        try:
            if self._own is None:
                self._own = self._server.patient(0)
            return next((one for one in self.admin.servers().servers if one.name == name), None)
        except (*_LOST, IOError):
            self.close()
            return None

    def _say(self, text: str) -> None:
        if self._server.output.is_terminal:
            click.echo(text, err=True)


def _is_refusal(error: Exception) -> bool:
    """Return whether a store has answered that it does not do what was requested."""
    return isinstance(error, IOError) and hbase_class(error) not in _AT_LEADER


def _failure(found: ServerStatus) -> str:
    return next((note for note in found.notes if note.startswith(CHANGE_FAILED)), "")


def _failed(what: str, found: ServerStatus) -> Refused:
    notes = "; ".join(found.notes)
    return Refused(f"{what}: {notes or f'it is {found.state}'}; the log of the store says more")
