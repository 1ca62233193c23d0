"""Drains of whole nodes by commands, followed to their end through a change of the leader.

The leader answers a drain.  If the drained node leads itself, it resigns when it is empty: calls fail for a moment, and
the next leader answers then.  So a command that waits repeats its call until the node is empty and does not lead.  A
node that is empty already may resign before its answer is out; the command repeats the call then, too.
"""

from __future__ import annotations

import time
from typing import Final

import click
from thriftpy2.protocol.cybin import ProtocolError
from thriftpy2.transport import TTransportException

from columnar.client import ClusterAdmin, Connection
from columnar.client.cluster import ClusterChange
from columnar.client.errors import IOError, hbase_class
from columnar.shell.connecting import Refused, Server
from columnar.shell.maintenance import maintenance_lock

STEP_S: Final = 5.0  # of one answer, so that a person sees what is left
POLL_S: Final = 0.2  # between two calls while the leader changes
REFUSED: Final = "ConstraintException"  # of a call that another leader would refuse too
LOST: Final = "CallTimeoutException"  # of a call whose answer is lost


class NodeDrain:
    """The drain of a node by one command; the command closes it."""

    def __init__(self, server: Server, node: str, *, until_restart: bool) -> None:
        self._server = server
        self._node = node
        self._until_restart = until_restart
        self._own: Connection | None = None  # in the place of the command's own, after that has failed

    def close(self) -> None:
        own, self._own = self._own, None
        if own is not None:
            own.close()

    def request_drain(self, wait_s: float = 0.0) -> ClusterChange:
        """Request the drain, and wait up to ``wait_s`` until the node is empty.  Raises the errors of a call."""
        admin = ClusterAdmin(self._own or self._server.connection)
        return admin.drain_node(self._node, until_restart=self._until_restart, wait_s=wait_s)

    def begin_drain(self, until_s: float) -> ClusterChange:
        """Request the drain.  Raises the errors of a call, and Refused if its answer is lost until ``until_s``."""
        try:
            return self.request_drain()
        except IOError as error:
            if hbase_class(error) != LOST:
                raise
        while (change := self._repeat(0.0)) is None:
            if time.monotonic() >= until_s:
                raise Refused("no leader says whether the drain has begun; 'columnar nodes' shows who leads")
        return change

    def wait_until_empty(self, change: ClusterChange, until_s: float) -> ClusterChange:
        """Return the answer once the node is empty and does not lead, or the last one at ``until_s``.

        ``change``: the answer to the first request.  ``until_s``: of the monotonic clock.  Raises Refused, and IOError
        if the drain is refused meanwhile.
        """
        while (change.regions_left or change.resigning) and time.monotonic() < until_s:
            if self._server.output.is_terminal:
                click.echo(change.text, err=True)
            if not change.regions_left:
                time.sleep(POLL_S)  # the leader resigns
            wait_s = min(STEP_S, max(0.0, until_s - time.monotonic()))
            change = self._repeat(wait_s) or change
        return change

    def _repeat(self, wait_s: float) -> ClusterChange | None:
        """Request the drain again; returns None if no leader answers at the moment."""
        try:
            if self._own is None:
                self._own = self._server.patient(STEP_S)
            return self.request_drain(wait_s)
        except IOError as error:
            if hbase_class(error) == REFUSED:
                raise
        except (TTransportException, ProtocolError, OSError, EOFError):
            self.close()
        time.sleep(POLL_S)
        return None


def drain_node(server: Server, node: str, *, until_restart: bool, wait: bool, timeout_s: float) -> ClusterChange:
    """Drain a node under the maintenance lock; with ``wait`` return when it is empty and does not lead.

    Raises Refused if regions are left after ``timeout_s``, or another maintenance lasts for longer.
    """
    until_s = time.monotonic() + timeout_s
    drain = NodeDrain(server, node, until_restart=until_restart)
    try:
        with maintenance_lock(server, f"drain --node {node}", node, timeout_s=timeout_s):
            change = drain.begin_drain(until_s)
            if wait:
                change = drain.wait_until_empty(change, until_s)
    finally:
        drain.close()
    if wait and change.regions_left:
        raise Refused(
            f"{change.text} after {timeout_s:g} s; 'columnar transitions' shows what they wait for, and the drain goes "
            "on"
        )
    return change
