"""Interfaces of a master to its servers, and to the logs of dead servers."""

from __future__ import annotations

from typing import Protocol, TypeVar

from columnar.master.dead_servers import DeadServerLog
from columnar.model import owner_messages as messages
from columnar.model.owner import Incarnation
from columnar.model.region_messages import Message

R = TypeVar("R")


class Servers(Protocol):
    async def request_server(self, server: Incarnation, message: Message[R]) -> R:
        """Send ``message`` and return the answer.  Concurrent requests are sent in the order of the calls.

        Raises the errors of ``PeerLink.send_request``.
        """

    async def fence(self, server: Incarnation) -> None:
        """Kill the server.  Returns when the server answers no more requests and was reported as ended."""

    async def gone(self, server: Incarnation) -> None: ...

    def is_linked(self, server: Incarnation) -> bool: ...

    async def relinked(self, member: Incarnation) -> bool:
        """Wait until the server has a link, or has ended; return whether it has one."""


class DeadServerLogs(Protocol):
    """The logs and folders of incarnations that have ended."""

    async def read_dead_server_log(self, server: Incarnation, *, is_by_time: bool) -> DeadServerLog:
        """Return the server's log.  ``is_by_time``: its process may still run, so the log is taken over before."""

    async def remove(self, server: Incarnation) -> None:
        """Observe the server's clock, then remove its folder.  Raises HostError."""

    async def extents(self, server: Incarnation, *, is_over: bool) -> messages.Segments:
        """Return the present extents of the log of a living server, or of a dead server's damaged log.

        Raises HostError, DamagedData.
        """

    def list_delays(self) -> tuple[str, ...]:
        """Return sentences for operators about logs that cannot be read yet, for reasons other than an error."""

    def free_bytes(self) -> int | None:
        """Return the free bytes of the disk at the last probe, or None if unknown."""

    def is_folder_stalled(self) -> bool:
        """Return whether the data folder does not answer now."""
