"""Restarts and stops of servers, followed to their end, even if the server that answers the command is itself stopped.

The server answers when the change begins, and closes the connection when it leaves.  Then the command polls the store
over new connections until the change is over:

    begun --polls--> over: the servers are as requested, or the change has failed
                     no answer for SILENT_S, or not over after LONGEST_S: the change continues, and the command ends
"""

from __future__ import annotations

import time
from typing import Final

import click
from thriftpy2.transport import TTransportException

from columnar.client import ClusterAdmin, Connection
from columnar.client.cluster import ClusterChange, ServerStatus
from columnar.client.errors import IOError
from columnar.model.cluster_status_records import BEING_CHANGED
from columnar.shell.connecting import Refused, Server
from columnar.shell.private_connection import LONGEST_S

POLL_S: Final = 0.5  # between two polls
SILENT_S: Final = 60.0  # the other servers answer all the while: if none does, the address is not theirs


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
        before = max((one.incarnation for one in self.admin.servers().servers if one.name == name), default=0)
        change = self.admin.restart(name)
        if change.done:
            return change
        found = self._when_over(name, change)
        if found.state == "up" and found.incarnation > before:
            return ClusterChange(f"{name} is up again as {name}.{found.incarnation}", True, (), (), 0)
        raise _failed(f"{name} was not restarted", found)

    def stop(self, name: str) -> ClusterChange:
        change = self.admin.stop(name)
        if change.done:
            return change
        found = self._when_over(name, change)
        if found.state == "down":
            text = f"{name}.{found.incarnation} has stopped; 'columnar restart {name}' starts it again"
            return ClusterChange(text, True, (), (), 0)
        raise _failed(f"{name} was not stopped", found)

    def _when_over(self, name: str, change: ClusterChange) -> ServerStatus:
        """Wait until no change of the server is under way; return its status."""
        self.close()
        self._has_ended = True
        self._say(change.text)
        begun_s = heard_s = time.monotonic()
        last = ""
        while True:
            found, now_s = self._read_status(name), time.monotonic()
            if found is not None:
                heard_s = now_s
                if BEING_CHANGED not in found.notes:
                    self.close()  # later answers may take longer than polls
                    return found
                text = f"{name} is {found.state}, with {found.regions} regions and {found.connections} clients"
                if text != last:
                    self._say(text)
                last = text
            if now_s - heard_s > SILENT_S:
                where = f"nobody has answered at {self._server.address} for {SILENT_S:g} s"
                raise Refused(f"{change.text}, and {where}; it goes on: ask another server, by 'columnar servers'")
            if now_s - begun_s > LONGEST_S:
                raise Refused(f"{change.text}, and is not over after {LONGEST_S:g} s; the log of the store says why")
            time.sleep(POLL_S)

    def _read_status(self, name: str) -> ServerStatus | None:
        """Return the server's status, or None if no server answers at the moment."""
        try:
            if self._own is None:
                self._own = self._server.patient(0)
            return next(one for one in self.admin.servers().servers if one.name == name)
        except (TTransportException, OSError, EOFError, IOError):
            self.close()
            return None

    def _say(self, text: str) -> None:
        if self._server.output.is_terminal:
            click.echo(text, err=True)


def _failed(what: str, found: ServerStatus) -> Refused:
    notes = "; ".join(found.notes)
    return Refused(f"{what}: {notes or f'it is {found.state}'}; the log of the store says more")
