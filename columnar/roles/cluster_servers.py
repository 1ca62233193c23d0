"""Interfaces of a master to its servers, and to what dead ones left."""

from __future__ import annotations

from typing import Protocol, TypeVar

from columnar.master.dead_servers import DeadServerLog
from columnar.model import owner_messages as messages
from columnar.model.owner import Incarnation
from columnar.model.region_messages import Message

R = TypeVar("R")


class Servers(Protocol):
    async def request_server(self, server: Incarnation, message: Message[R]) -> R:
        """Send ``message`` and return the answer; concurrent requests leave in the order of the calls.

        Errors as of ``PeerLink.send_request``.
        """

    async def fence(self, server: Incarnation) -> None:
        """Return when it answers nothing any more and was reported as ended."""

    async def gone(self, server: Incarnation) -> None: ...

    def has_worked(self, server: Incarnation) -> bool:
        """Return whether its process has used a processor since the last call, a moment ago."""


class DeadServerLogs(Protocol):
    """The remains of incarnations that are over."""

    async def read_dead_server_log(self, server: Incarnation) -> DeadServerLog: ...

    async def remove(self, server: Incarnation) -> None:
        """Observe its clock, and remove its folder.  HostError."""

    async def extents(self, server: Incarnation, *, is_over: bool) -> messages.Segments:
        """The extents of the log of a server that lives, or that left a damaged log, now.  HostError, DamagedData."""

    def free_bytes(self) -> int | None:
        """Return how much of the disk is free, by the last probe; None: that is not known now."""

    def is_folder_stalled(self) -> bool:
        """Return whether the data folder does not answer."""
